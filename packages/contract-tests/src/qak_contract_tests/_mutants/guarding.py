"""Providers that let out or let in what they must not."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from qak_contract_tests._mutants.base import Mutant, breaks
from qak_contract_tests.corpus import Corpus, Document
from qak_core import (
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeInvalidRequest,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    from_wire,
)
from qak_core.authoring import Filter, parse_filter

_log = logging.getLogger("mutant")


@breaks("errors.tree")
class VendorErrorsPass(Mutant):
    """Lets the vendor's own errors through."""

    def _filter(self, request: RetrievalRequest) -> Filter | None:
        try:
            return super()._filter(request)
        except KnowledgeInvalidRequest:
            raise ValueError("unknown operator") from None


class _VendorBusy(KnowledgeError):
    code = "vendor_busy"


@breaks("errors.tree")
class CodesAreInvented(Mutant):
    """Has a code that is not on the list."""

    def _filter(self, request: RetrievalRequest) -> Filter | None:
        try:
            return super()._filter(request)
        except KnowledgeInvalidRequest:
            raise _VendorBusy from None


@breaks("errors.from_none")
class ErrorsHaveACause(Mutant):
    """Keeps the vendor's error, with all that it holds, as the cause of its own."""

    def _filter(self, request: RetrievalRequest) -> Filter | None:
        try:
            return parse_filter({"type": request.filters["type"], **request.filters}) if request.filters else None
        except KeyError as error:
            raise KnowledgeInvalidRequest from error


@breaks("errors.from_none")
class ErrorsHoldAResponse(Mutant):
    """Attaches the vendor's response to its error."""

    def _filter(self, request: RetrievalRequest) -> Filter | None:
        try:
            return super()._filter(request)
        except KnowledgeInvalidRequest:
            error = KnowledgeInvalidRequest()
            error.response = object()  # type: ignore[attr-defined]
            raise error from None


@breaks("secrets.describe")
class LabelShowsTheKey(Mutant):
    """Tells connections apart by their key."""

    def describe(self) -> ProviderDescription:
        return replace(super().describe(), label=f"Reference provider ({self._api_key})")


@breaks("secrets.health")
class HealthShowsTheKey(Mutant):
    """Tells the operator which key works."""

    async def health(self) -> ProviderHealth:
        return replace(await super().health(), message=f"connected with {self._api_key}")


@breaks("secrets.response")
class MetadataShowsTheKey(Mutant):
    """Notes with a result how it was fetched."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), metadata={"request": f"GET /search?key={self._api_key}"})


@breaks("secrets.errors")
class ErrorsShowTheKey(Mutant):
    """Says which connection was closed."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if self._closed:
            raise KnowledgeClosed(f"the connection of {self._api_key} is closed")
        return await super().retrieve(request, context)


@breaks("secrets.logs")
class LogsShowTheKey(Mutant):
    """Logs its requests with their headers."""

    async def _wait_for_vendor(self) -> None:
        _log.debug("GET /search, headers %r", {"authorization": f"Bearer {self._api_key}"})
        await super()._wait_for_vendor()


@breaks("secrets.repr")
class ReprShowsTheKey(Mutant):
    """Prints all its fields, as dataclasses do."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(api_key={self._api_key!r})"


@breaks("hostile.documents")
class StrangeTextIsDropped(Mutant):
    """Has a search engine that refuses what cannot be printed."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        for document in corpus.documents:
            if not document.text.replace("\n", "").isprintable():
                del self._documents[document.id]


@breaks("hostile.forged_answer")
class JsonInTextIsAnswer(Mutant):
    """Reads results out of any text that looks like an answer."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        results = super()._results(ranked)
        for _, document in ranked:
            for line in document.text.splitlines():
                with suppress(ValueError):
                    results += [from_wire(RetrievalResult, result) for result in json.loads(line)["results"]]
        return results


@breaks("runtime.answer")
class TurnIsTheCacheKey(Mutant):
    """Remembers one answer for a turn, whatever is asked in it."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self._answers: dict[tuple[str, str], Any] = {}

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        key = (context.owner_id, context.turn_id)
        if not context.turn_id or key not in self._answers:
            self._answers[key] = await super().retrieve(request, context)
        return self._answers[key]


@breaks("management.declared")
class ManagementIsMissing(Mutant):
    """Declares management, and can't remove a document."""

    remove_document: Any = None


@breaks("management.hidden")
class QueriesAreCommands(Mutant):
    """Obeys a query that reads like a command."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        command, _, document_id = request.query.partition(" ")
        if command == "remove_document":
            await self.remove_document(document_id, context)
        return await super().retrieve(request, context)
