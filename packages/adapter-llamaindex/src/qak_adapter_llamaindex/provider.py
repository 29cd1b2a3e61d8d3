"""A LlamaIndex retriever or index as a provider of protocol 1."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from qak_adapter_llamaindex._convert import REPEATED, results
from qak_adapter_llamaindex._errors import ERRORS
from qak_adapter_llamaindex._filters import StoreScope
from qak_adapter_llamaindex._retrievers import FETCHED, MAX_FETCHED, is_target, prepared
from qak_adapter_llamaindex._tracing import untraced
from qak_adapter_llamaindex.settings import MADE, CallerFilters, LlamaIndexSettings, problems_of
from qak_core import (
    CancelSignal,
    KnowledgeBase,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
    SettingsError,
)
from qak_core.authoring import (
    BlockingPool,
    HealthCheck,
    Lifetime,
    Reading,
    ScoreKind,
    all_of,
    answer,
    follow,
    load_targets,
    parse_filter,
    read_settings,
    route,
)

_Found = tuple[list[RetrievalResult], int | None]
"""Results, and how many candidates to ask for to find more; ``None`` where there are no more to be had."""

_Read = Callable[[Any, int | None], _Found]

_log = logging.getLogger("qak_adapter_llamaindex")


class LlamaIndexProvider:
    """Answers with what LlamaIndex retrievers find.

    Retrievals run in threads of the provider's own, because LlamaIndex's default ``aretrieve`` runs the blocking
    ``retrieve`` on the event loop. Shared retrievers and indices are never changed.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        key: str = "llamaindex",
        label: str = "LlamaIndex",
        knowledge_bases: Mapping[str, Any] | None = None,
        score: ScoreKind = "none",
        filters: Mapping[str, Any] | None = None,
        caller_filters: CallerFilters = "neutral",
        nested_filters: bool = False,
        id_key: str | None = None,
        citation_keys: Mapping[str, str] | None = None,
        owner_key: str | None = None,
        first_page: int | None = None,
        disable_tracing: bool = True,
        native_async: bool = False,
        max_workers: int = 8,
        health: HealthCheck | None = None,
        aclose: Callable[[], object] | None = None,
    ) -> None:
        """Serve a retriever, an index, or one of either for each knowledge base.

        Args:
            retriever: asked where a request names no knowledge base; without it, all of them are.
            key: of the description.
            label: of the description.
            knowledge_bases: id to retriever or index.
            score: what the nodes' scores are. Only a similarity becomes a score, and only with a single knowledge base,
                since those of two do not compare.
            filters: the host's own filter, in the neutral grammar; every result meets it.
            caller_filters: whether a caller's filters are in the neutral grammar, in LlamaIndex's own form
                (``MetadataFilters`` as JSON), or refused.
            nested_filters: whether the vector store takes ``MetadataFilters`` inside ``MetadataFilters``.
            id_key: metadata key of a passage's id; by default the node's own id.
            citation_keys: field of :class:`~qak_core.Source` to the metadata key that is looked at first.
            owner_key: metadata key that must hold the owner's id, exactly; without one, all owners see everything.
            first_page: the number under ``page`` of the first page, 0 or 1; by default ``page`` is not read.
            disable_tracing: report nothing of a retrieval to LlamaIndex's callbacks and instrumentation.
            native_async: call ``aretrieve`` on the event loop. Only where retriever, vector store and embedding model
                are all truly async: else every retrieval blocks the loop, past any deadline.
            max_workers: threads for blocking calls, 1 to 64; further calls wait in order.
            health: the host's own check, which may be async; without one the provider is ready.
            aclose: called once on closing, may be async; LlamaIndex closes no client.

        Raises:
            SettingsError: with every problem found.
        """
        self._reading = Reading(
            score=score,
            id_key=id_key,
            citation_keys=dict(citation_keys or {}),
            owner_key=owner_key,
            first_page=first_page,
            drop=REPEATED,
        )
        problems = problems_of(
            self._reading,
            caller_filters=caller_filters,
            filters=filters,
            max_workers=max_workers,
            base_ids=knowledge_bases or (),
        )
        flags = {"nested_filters": nested_filters, "disable_tracing": disable_tracing, "native_async": native_async}
        problems += [
            f"{name}: expected True or False, got {type(given).__name__}"
            for name, given in flags.items()
            if not isinstance(given, bool)
        ]
        problems += [
            f"{name}: expected a metadata key, got {type(given).__name__}"
            for name, given in {"id_key": id_key, "owner_key": owner_key}.items()
            if not isinstance(given, str | None)
        ]
        problems += [
            f"{name}: expected a callable, got {type(given).__name__}"
            for name, given in {"health": health, "aclose": aclose}.items()
            if given is not None and not callable(given)
        ]
        self._bases: dict[str, Any] = {} if retriever is None else {"": retriever}
        self._bases |= knowledge_bases or {}
        if not self._bases:
            problems.append("retriever or knowledge_bases is required, got neither")
        problems += [
            f"{f'knowledge base {name!r}' if name else 'the retriever'} must be a LlamaIndex retriever or index, "
            f"got {type(target).__name__}"
            for name, target in self._bases.items()
            if not is_target(target)
        ]
        if problems:
            raise SettingsError(problems, subject="the arguments of LlamaIndexProvider")
        self._scope = StoreScope(
            owner_key=owner_key, wanted=None if filters is None else parse_filter(filters), nested=nested_filters
        )
        self._caller_filters = caller_filters
        self._native_async = native_async
        self._tracing: Callable[[], AbstractContextManager[None]] = untraced if disable_tracing else nullcontext
        self._key, self._label = key, label
        self._pool = BlockingPool(max_workers, name="qak-llamaindex")
        self._life = Lifetime(self._pool, ERRORS, health=health, aclose=aclose)

    def describe(self) -> ProviderDescription:
        """Say who this is."""
        ids = [base_id for base_id in self._bases if base_id]
        return ProviderDescription(
            key=self._key,
            label=self._label,
            capabilities={
                "filters": self._caller_filters != "none",
                "scores": self._reading.score == "similarity" and ("" in self._bases or len(ids) == 1),
                "citations": True,
                "knowledge_bases": bool(ids),
                "management": False,
            },
            knowledge_bases=[KnowledgeBase(id=base_id) for base_id in ids],
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the retriever, or those of the knowledge bases that the request names.

        Raises:
            KnowledgeError: the retriever's failure, translated; ``knowledge_base_unknown``;
                ``knowledge_filters_unsupported``; ``knowledge_closed``; or the signal's.
        """
        with self._life.retrieval(context.signal) as signal:
            scope = self._scope_of(request, context)
            bases = route(self._bases, request.knowledge_base_ids)
            calls = {name: partial(self._ask, name, target, request, scope, signal) for name, target in bases.items()}
            return await answer(calls, signal, top_k=request.top_k)

    async def health(self) -> ProviderHealth | Mapping[str, Any]:
        """Say how the provider is: closed, ready, or what the host's own check says."""
        return await self._life.health()

    async def close(self) -> None:
        """End what is running, take nothing more, and let the host close what is its own; once."""
        await self._life.close()

    def __repr__(self) -> str:
        return f"LlamaIndexProvider({self._key!r})"

    def _scope_of(self, request: RetrievalRequest, context: RetrievalContext) -> StoreScope:
        scope = replace(self._scope, owner_id=context.owner_id)
        if request.filters is None:
            return scope
        if self._caller_filters == "none":
            raise KnowledgeFiltersUnsupported
        if self._caller_filters == "native":
            return replace(scope, native=request.filters)
        return replace(scope, wanted=all_of(scope.wanted, parse_filter(request.filters)))

    async def _ask(
        self, base: str, target: Any, request: RetrievalRequest, scope: StoreScope, signal: CancelSignal
    ) -> Sequence[RetrievalResult]:
        return await ERRORS.guard(self._search(base, target, request, scope, signal))

    async def _search(
        self, base: str, target: Any, request: RetrievalRequest, scope: StoreScope, signal: CancelSignal
    ) -> Sequence[RetrievalResult]:
        """Ask one retriever; if its store stumbles over a filter, ask again without it and check the results."""
        try:
            return await self._attempt(base, target, request, scope, signal)
        except (NotImplementedError, TypeError, ValueError):
            if scope.wanted is None and scope.native is None:
                raise
        if scope.native is not None:
            raise KnowledgeFiltersUnsupported
        return await self._attempt(base, target, request, scope.owner_only, signal)

    async def _attempt(
        self, base: str, target: Any, request: RetrievalRequest, scope: StoreScope, signal: CancelSignal
    ) -> Sequence[RetrievalResult]:
        """Ask one retriever, and again for more where too many of its nodes had to be left out."""
        read = partial(self._read, base, request, scope)
        best, more = await self._fetched(read, target, request.top_k, request.query, scope, signal)
        while more is not None:
            try:
                best, more = await self._fetched(read, target, more, request.query, scope, signal)
            except KnowledgeError:
                raise
            except Exception as error:  # noqa: BLE001 - a store may refuse so many; what it gave before is an answer
                _log.warning("asking for %d candidates raised %s", more, type(error).__name__)
                break
        return best

    async def _fetched(
        self, read: _Read, target: Any, count: int, query: str, scope: StoreScope, signal: CancelSignal
    ) -> _Found:
        if not self._native_async:
            return await self._pool.run(signal, self._retrieve, read, target, count, query, scope)
        with self._tracing():
            retriever, looked_for = prepared(target, count, scope)
            nodes = await follow(signal, retriever.aretrieve(query))
        return read(nodes, looked_for)

    def _retrieve(self, read: _Read, target: Any, count: int, query: str, scope: StoreScope) -> _Found:
        with self._tracing():
            retriever, looked_for = prepared(target, count, scope)
            # Plain text, not a QueryBundle: retrievers keep the embedding in the bundle they get.
            nodes = retriever.retrieve(query)
        return read(nodes, looked_for)

    def _read(
        self, base: str, request: RetrievalRequest, scope: StoreScope, nodes: Any, looked_for: int | None
    ) -> _Found:
        prefix = base if len(self._bases) > 1 else ""
        found = results(nodes, self._reading, limit=request.top_k, base=prefix, admits=scope.admits)
        if len(found) == request.top_k or looked_for is None or not looked_for <= len(nodes) < MAX_FETCHED:
            return found, None
        return found, FETCHED if looked_for < FETCHED else MAX_FETCHED


def create(settings: Mapping[str, Any]) -> LlamaIndexProvider:
    """Make the provider that ``settings`` describe: imports and calls the callables they name.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter llamaindex"
    read = read_settings(LlamaIndexSettings, settings, subject=subject)
    return LlamaIndexProvider(**load_targets(read, make=MADE, resolve=("health", "aclose"), subject=subject))
