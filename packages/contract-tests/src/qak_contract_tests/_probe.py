"""Asking one opened provider, as the clauses need it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from qak_contract_tests._hits import Hit, documents_of, read_hits
from qak_contract_tests.clauses import fail
from qak_contract_tests.corpus import Corpus, Document
from qak_core import (
    CancelSignal,
    KnowledgeAnswer,
    KnowledgeRuntime,
    ProviderContractError,
    ProviderDescription,
    RetrievalContext,
    RetrievalRequest,
    normalize_response,
)

SOON_S = 2.0
"""What "soon" and "at once" mean where nothing has to be asked of a vendor any more; generous for slow machines."""

HOSTILE_QUERIES = (
    '"',
    "'",
    '"unbalanced',
    "lamp AND",
    "NOT",
    "NEAR(",
    "*",
    "%",
    "-lamp",
    "title:*",
    "(((",
    "\\",
    "'; DROP TABLE documents; --",
    '{"match_all": {}}',
    "{{7*7}} ${7*7} <%= 7 %>",
    "../../etc/passwd\tand\nmore",
    "\x07bell\u202eright-to-left",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "\ud800",
    "漢" * 500,
    "or " * 166,
)

_STRANGE_FILTERS: tuple[Mapping[str, Any], ...] = (
    {"type": "regex", "key": "department", "value": "("},
    {"type": "and", "filters": []},
    {"department": {"$regex": "("}},
    {"no such field": [1, {"deeper": None}]},
    {"$where": "1 = 1"},
    {"": ""},
)

_T = TypeVar("_T")


class Probe:
    """A seeded provider, and the corpus that is in it."""

    def __init__(self, provider: Any, corpus: Corpus, filters: Mapping[str, Any]) -> None:
        self.provider = provider
        self.corpus = corpus
        self.filters = filters

    def declares(self, capability: str) -> bool:
        """Whether the provider declares a capability; a description that cannot be read declares none."""
        capabilities = read_description(self.provider).get("capabilities")
        return isinstance(capabilities, Mapping) and capabilities.get(capability) is True

    def context(self, owner_id: str | None = None, signal: CancelSignal | None = None) -> RetrievalContext:
        """Return a trusted context, of the corpus' first owner by default."""
        return RetrievalContext(
            owner_id=self.corpus.owner_id if owner_id is None else owner_id, signal=signal or CancelSignal(60.0)
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        """Call the provider; one whose retrieve is not async still gives its value."""
        answer = self.provider.retrieve(request, context)
        return await answer if inspect.isawaitable(answer) else answer

    async def ask(
        self,
        query: str,
        *,
        owner_id: str | None = None,
        top_k: int = 5,
        knowledge_base_ids: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
        signal: CancelSignal | None = None,
    ) -> Any:
        """Retrieve, and return the answer as it came."""
        request = RetrievalRequest(query=query, top_k=top_k, knowledge_base_ids=knowledge_base_ids, filters=filters)
        return await self.retrieve(request, self.context(owner_id, signal))

    async def find(self, query: str, **arguments: Any) -> list[Hit]:
        """Retrieve, and return what was found."""
        return read_hits(await self.ask(query, **arguments))

    async def answers(self) -> list[list[Hit]]:
        """Ask every harmless question of the first owner, and what many documents match."""
        found = [await self.find(document.question) for document in self.corpus.of(self.corpus.owner_id)]
        return [*found, await self.find(self.corpus.common_query, top_k=8)]

    async def documents(self, query: str, **arguments: Any) -> set[str]:
        """Return the ids of the documents that show in an answer; a refusal shows none."""
        outcome = await self.outcome(query, **arguments)
        if isinstance(outcome, Exception):
            return set()
        return {document_id for hit in outcome for document_id in documents_of(hit, self.corpus)}

    async def outcome(self, query: str, **arguments: Any) -> list[Hit] | Exception:
        """Retrieve, and return what was found or raised."""
        try:
            return await self.find(query, **arguments)
        except Exception as error:  # noqa: BLE001 - what a provider raises is what is looked at
            return error

    async def refusal(self, query: str, **arguments: Any) -> Exception | None:
        """Return what a retrieval raised, or ``None`` if it answered."""
        outcome = await self.outcome(query, **arguments)
        return outcome if isinstance(outcome, Exception) else None

    def holds(self, hits: Sequence[Hit], document: Document) -> bool:
        """Whether a result is of the document."""
        return any(document.id in documents_of(hit, self.corpus) for hit in hits)

    def normalize(self, hits: Sequence[Hit], query: str, top_k: int = 5) -> KnowledgeAnswer:
        """Return the answer as a model would get it."""
        return normalize_response([hit.raw for hit in hits], query=query, top_k=top_k)

    async def provoke(self) -> list[Exception]:
        """Make retrievals fail in every way that needs no vendor's help, closing the provider at last."""
        cancelled = CancelSignal()
        cancelled.cancel()
        query = self.corpus.common_query
        attempts: list[dict[str, Any]] = [
            {"query": query, "signal": cancelled},
            {"query": query, "signal": CancelSignal(0.0)},
            {"query": query, "knowledge_base_ids": ("no-such-base",)},
            *({"query": query, "filters": filters} for filters in (self.filters, *_STRANGE_FILTERS)),
            *({"query": hostile} for hostile in HOSTILE_QUERIES),
        ]
        raised = [await self.refusal(**attempt) for attempt in attempts]
        await self.close()
        raised.append(await self.refusal(query))
        return [error for error in raised if error is not None]

    async def health(self) -> Any:
        """Return what ``health`` says, ready where there is none."""
        check = getattr(self.provider, "health", None)
        if not callable(check):
            return {"status": "ready"}
        wanted = [p for p in inspect.signature(check).parameters.values() if p.default is p.empty]
        takes_signal = any(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in wanted)
        answer = check(CancelSignal(10.0)) if takes_signal else check()
        return await answer if inspect.isawaitable(answer) else answer

    async def close(self) -> None:
        """Close the provider if it can be closed."""
        if callable(close := getattr(self.provider, "close", None)):
            closed = close()
            if inspect.isawaitable(closed):
                await closed

    def runtime(self) -> KnowledgeRuntime:
        """Return a runtime around the provider; a wrong description, which has clauses of its own, is mended."""
        try:
            return KnowledgeRuntime(self.provider)
        except ProviderContractError:
            return KnowledgeRuntime(_Mended(self))


class _Mended:
    """The provider with a description that can be composed."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def describe(self) -> ProviderDescription:
        names = ("filters", "scores", "citations", "knowledge_bases", "management")
        return ProviderDescription(
            key="mended", label="Mended", capabilities={name: self._probe.declares(name) for name in names}
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        return await self._probe.retrieve(request, context)


def read_description(provider: Any) -> dict[str, Any]:
    """Return the fields of a description by their snake_case names; one that cannot be read has none."""
    try:
        described = provider.describe()
    except Exception:  # noqa: BLE001 - clauses of their own are about that
        return {}
    if inspect.iscoroutine(described):
        described.close()
    if isinstance(described, ProviderDescription):
        return {name: getattr(described, name) for name in ProviderDescription.__slots__}
    if not isinstance(described, Mapping):
        return {}
    older = {"protocolVersion": "protocol_version", "knowledgeBases": "knowledge_bases"}
    return {older.get(name, name): value for name, value in described.items() if isinstance(name, str)}


async def soon(call: Awaitable[_T], what: str) -> _T:
    """Await a call for two seconds at most; a call that ignores cancellation is left to the event loop's end."""
    task = asyncio.ensure_future(call)
    try:
        await asyncio.wait({task}, timeout=SOON_S)
        if not task.done():
            fail(f"{what} did not end within {SOON_S:g} s; expected it to follow the signal and to end")
        return task.result()
    finally:
        task.cancel()
