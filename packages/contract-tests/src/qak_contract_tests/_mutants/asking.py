"""Providers that take requests wrongly, or answer whom they must not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qak_contract_tests._mutants.base import Mutant, breaks
from qak_contract_tests.corpus import Document
from qak_contract_tests.reference import CAPABILITIES
from qak_core import KnowledgeFailed, RetrievalContext, RetrievalRequest


@breaks("request.query.hostile")
class QueryIsSyntax(Mutant):
    """Gives the query to a search language, which minds its quotes."""

    def _ranked(self, request: RetrievalRequest, documents: Sequence[Document]) -> list[tuple[float, Document]]:
        if request.query.count('"') % 2:
            raise KnowledgeFailed
        return super()._ranked(request, documents)


@breaks("request.top_k")
class TopKIsIgnored(Mutant):
    """Returns all that matches."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        return super()._results(self._everything)

    def _ranked(self, request: RetrievalRequest, documents: Sequence[Document]) -> list[tuple[float, Document]]:
        self._everything = super()._ranked(request, documents)
        return self._everything


@breaks("request.top_k.full")
class OwnersAreDroppedAfterwards(Mutant):
    """Takes the best top_k of everybody's documents, and drops those of others."""

    def _ranked(self, request: RetrievalRequest, documents: Sequence[Document]) -> list[tuple[float, Document]]:
        everybodys = sorted(self._documents.values(), key=lambda document: document.id)
        best = super()._ranked(request, everybodys)[: request.top_k]
        return [(score, document) for score, document in best if document in documents]


@breaks("request.filters")
class FiltersAreIgnored(Mutant):
    """Declares filters, and searches everything."""

    def _filter(self, request: RetrievalRequest) -> None:
        super()._filter(request)


@breaks("request.filters")
class UndeclaredFiltersAreIgnored(Mutant):
    """Declares no filters, and says nothing when it gets some."""

    offers = CAPABILITIES - {"filters"}

    def _filter(self, request: RetrievalRequest) -> None:
        """Take whatever comes."""


@breaks("request.knowledge_base_ids")
class KnowledgeBasesOnlyWeigh(Mutant):
    """Prefers the knowledge bases asked for, and fills up from the others."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        preferred = super()._scope(request, context)
        others = super()._scope(replace(request, knowledge_base_ids=()), context) if preferred else []
        return [*preferred, *(document for document in others if document not in preferred)]


@breaks("request.knowledge_base_ids", "request.knowledge_base_ids.unknown")
class UndeclaredKnowledgeBasesAreIgnored(Mutant):
    """Knows no knowledge bases, and searches everything when asked for one."""

    offers = CAPABILITIES - {"knowledge_bases"}

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        return super()._scope(replace(request, knowledge_base_ids=()), context)


@breaks("request.knowledge_base_ids.unknown")
class UnknownKnowledgeBaseMeansAll(Mutant):
    """Keeps the ids that it knows, and without one searches everything."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        known = [base_id for base_id in request.knowledge_base_ids if base_id in self._knowledge_base_ids]
        return super()._scope(replace(request, knowledge_base_ids=known), context)


@breaks("request.unchanged")
class FiltersAreWrittenTo(Mutant):
    """Adds the owner to the caller's own filters."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        answer = await super().retrieve(request, context)
        if isinstance(request.filters, dict):
            request.filters["owner_id"] = context.owner_id
        return answer


@breaks("context.trusted")
class OwnersAreIgnored(Mutant):
    """Searches the documents of all owners."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        found = []
        for owner_id in dict.fromkeys(document.owner_id for document in self._documents.values()):
            found += super()._scope(request, _as(context, owner_id))
        return found


@breaks("context.trusted.exact")
class OwnersIgnoreCase(Mutant):
    """Compares owners as if they were names."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        return super()._scope(request, _as(context, context.owner_id.lower()))


@breaks("context.trusted.exact")
class OwnersAreAPrefix(Mutant):
    """Finds the owner's folder by how its name begins."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        owners = sorted({document.owner_id for document in self._documents.values()})
        owner_id = next((owner for owner in owners if owner.startswith(context.owner_id)), context.owner_id)
        return super()._scope(request, _as(context, owner_id))


@breaks("context.trusted.query")
class QueryNamesTheOwner(Mutant):
    """Understands ``owner:`` in a query."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        named = re.search(r"owner(?:_id)?:([\w-]+)", request.query)
        return super()._scope(request, _as(context, named[1] if named else context.owner_id))


@breaks("context.trusted.filters")
class FilterReplacesTheOwner(Mutant):
    """Lets the caller's filters win over its own."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        filters = request.filters or {}
        if filters.get("key") == "owner_id" and isinstance(filters["value"], str):
            return super()._scope(replace(request, filters=None), _as(context, filters["value"]))
        return super()._scope(request, context)


@breaks("context.trusted.knowledge_base_ids")
class KnowledgeBaseReplacesTheOwner(Mutant):
    """Scopes by knowledge base where one is named, and by owner otherwise."""

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        own = super()._scope(request, context)
        if not request.knowledge_base_ids or request.filters:
            return own
        return [
            document
            for document in self._documents.values()
            if document.knowledge_base_id in request.knowledge_base_ids
        ]


def _as(context: RetrievalContext, owner_id: str) -> RetrievalContext:
    return replace(context, owner_id=owner_id)
