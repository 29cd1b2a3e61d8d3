"""A LlamaIndex retriever or index as a provider of protocol 1."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from functools import partial
from typing import Any

from qak_adapter_llamaindex import _convert
from qak_adapter_llamaindex._errors import ERRORS
from qak_adapter_llamaindex._filters import Scope
from qak_adapter_llamaindex._retrievers import is_target, prepared
from qak_adapter_llamaindex._tracing import untraced
from qak_adapter_llamaindex.settings import CallerFilters, LlamaIndexSettings
from qak_core import (
    CancelSignal,
    KnowledgeBase,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
    SettingsError,
)
from qak_core.authoring import BlockingPool, FanOut, all_of, fan_out, parse_filter, read_settings, unique_ids


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
        score: _convert.ScoreKind = "none",
        filters: Mapping[str, Any] | None = None,
        caller_filters: CallerFilters = "neutral",
        nested_filters: bool = False,
        id_key: str | None = None,
        citation_keys: Mapping[str, str] | None = None,
        owner_key: str | None = None,
        disable_tracing: bool = True,
        native_async: bool = False,
        max_workers: int = 8,
        health: Callable[[], Any] | None = None,
        aclose: Callable[[], Any] | None = None,
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
            id_key: the metadata key that holds a passage's id; by default the node's own id.
            citation_keys: ``title``, ``uri``, ``mime_type``, ``source_id``, ``locator`` or ``page`` to the metadata key
                that holds it; looked at before the usual ones.
            owner_key: the metadata key that must hold the owner's id; without one, all owners see everything.
            disable_tracing: report nothing of a retrieval to LlamaIndex's callbacks and instrumentation.
            native_async: call ``aretrieve`` on the event loop. Only where retriever, vector store and embedding model
                are all truly async: else every retrieval blocks the loop, past any deadline.
            max_workers: threads for blocking calls; further calls wait in order.
            health: asked for the health; may be async; returns a ``ProviderHealth``, a mapping, or ``None`` for ready.
            aclose: called once on closing, to close what the host opened; may be async.

        Raises:
            ValueError: nothing to ask was given, or something that is neither retriever nor index.
            KnowledgeInvalidRequest: ``filters`` are not in the neutral grammar.
        """
        bases = dict(knowledge_bases or {})
        if retriever is None and not bases:
            raise ValueError("give a retriever, an index, or knowledge_bases; got none")
        for target in [*bases.values(), *([] if retriever is None else [retriever])]:
            if not is_target(target):
                raise ValueError(f"expected a LlamaIndex retriever or index, got {type(target).__name__}")
        self._retriever = retriever
        self._bases = bases
        self._reading = _convert.Reading(
            score=score if len(bases) < 2 else "none", id_key=id_key, citation_keys=dict(citation_keys or {})
        )
        self._scope = Scope(
            owner_key=owner_key, wanted=None if filters is None else parse_filter(filters), nested=nested_filters
        )
        self._caller_filters = caller_filters
        self._native_async = native_async
        self._tracing: Callable[[], AbstractContextManager[None]] = untraced if disable_tracing else nullcontext
        self._description = ProviderDescription(
            key=key,
            label=label,
            capabilities={
                "filters": caller_filters != "none",
                "scores": self._reading.score == "similarity",
                "citations": True,
                "knowledge_bases": bool(bases),
                "management": False,
            },
            knowledge_bases=tuple(KnowledgeBase(id=base_id) for base_id in bases),
        )
        self._pool = BlockingPool(max_workers, name="qak-llamaindex")
        self._health = health
        self._aclose = aclose
        self._running: set[CancelSignal] = set()
        self._closed = False

    def describe(self) -> ProviderDescription:
        """Say who this is."""
        return replace(self._description, capabilities=dict(self._description.capabilities))

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the retriever, or those of the knowledge bases that the request names.

        Raises:
            KnowledgeError: the retriever's failure, translated; ``knowledge_base_unknown``;
                ``knowledge_filters_unsupported``; ``knowledge_closed``; or the signal's.
        """
        if self._closed:
            raise KnowledgeClosed
        context.signal.raise_if_cancelled()
        targets = self._route(request.knowledge_base_ids)
        scope = self._scope_of(request, context)
        signal = context.signal.child()
        self._running.add(signal)
        try:
            calls = {base: partial(self._ask, base, target, request, scope, signal) for base, target in targets.items()}
            if len(calls) == 1 and not self._native_async:  # the threads mind the signal themselves
                found = FanOut(items=await calls.popitem()[1](), degraded=())
            else:
                found = await fan_out(calls, signal)
        except KnowledgeCancelled:
            found = None
        finally:
            self._running.discard(signal)
            signal.detach()
        if found is None:
            raise KnowledgeClosed if self._closed else KnowledgeCancelled
        best = found.items[: request.top_k]
        ids = unique_ids(result.id for result in best)
        kept = [one if one.id == own_id else replace(one, id=own_id) for one, own_id in zip(best, ids, strict=True)]
        return RetrievalResponse(results=kept, degraded=found.degraded)

    async def health(self) -> Any:
        """Ask the host's callable; without one, be ready until closed."""
        if self._closed:
            return ProviderHealth(status="unavailable", message="The provider is closed.")
        said = await _called(self._health) if self._health is not None else None
        return ProviderHealth(status="ready") if said is None else said

    async def close(self) -> None:
        """End what is running, take no more calls, and close what the host wants closed; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for signal in list(self._running):
            signal.cancel()
        self._pool.close()
        if self._aclose is not None:
            await _called(self._aclose)

    def _route(self, base_ids: Sequence[str]) -> dict[str, Any]:
        if not base_ids:
            return self._bases if self._retriever is None else {self._description.key: self._retriever}
        if not self._bases.keys() >= set(base_ids):
            raise KnowledgeBaseUnknown
        return {base_id: self._bases[base_id] for base_id in base_ids}

    def _scope_of(self, request: RetrievalRequest, context: RetrievalContext) -> Scope:
        scope = replace(self._scope, owner_id=context.owner_id)
        if request.filters is None:
            return scope
        if self._caller_filters == "none":
            raise KnowledgeFiltersUnsupported
        if self._caller_filters == "native":
            return replace(scope, native=request.filters)
        return replace(scope, wanted=all_of(scope.wanted, parse_filter(request.filters)))

    async def _ask(
        self, base: str, target: Any, request: RetrievalRequest, scope: Scope, signal: CancelSignal
    ) -> Sequence[RetrievalResult]:
        return await ERRORS.guard(self._search(base, target, request, scope, signal))

    async def _search(
        self, base: str, target: Any, request: RetrievalRequest, scope: Scope, signal: CancelSignal
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
        self, base: str, target: Any, request: RetrievalRequest, scope: Scope, signal: CancelSignal
    ) -> Sequence[RetrievalResult]:
        if not self._native_async:
            return await self._pool.run(signal, self._retrieve, base, target, request, scope)
        with self._tracing():
            nodes = await prepared(target, request.top_k, scope).aretrieve(request.query)
        return self._read(nodes, base, request, scope)

    def _retrieve(self, base: str, target: Any, request: RetrievalRequest, scope: Scope) -> Sequence[RetrievalResult]:
        with self._tracing():
            # Plain text, not a QueryBundle: retrievers keep the embedding in the bundle they get.
            nodes = prepared(target, request.top_k, scope).retrieve(request.query)
        return self._read(nodes, base, request, scope)

    def _read(self, nodes: object, base: str, request: RetrievalRequest, scope: Scope) -> Sequence[RetrievalResult]:
        return _convert.results(nodes, self._reading, base=base, admits=scope.admits)[: request.top_k]


def create(settings: Mapping[str, Any]) -> LlamaIndexProvider:
    """Make the provider that ``settings`` describe: imports and calls the callables they name.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter llamaindex"
    read = read_settings(LlamaIndexSettings, settings, subject=subject)
    problems: list[str] = []
    found = {name: _resolved(name, target, problems) for name, target in read.callables().items()}
    made = {name: _made(name, factory, problems) for name, factory in found.items() if name not in {"health", "aclose"}}
    if problems:
        raise SettingsError(problems, subject=subject)
    same = {item.name: getattr(read, item.name) for item in fields(read) if item.name not in read.CALLABLES}
    return LlamaIndexProvider(
        made.get("retriever"),
        knowledge_bases={base_id: made[f"knowledge_bases.{base_id}"] for base_id in read.knowledge_bases},
        health=found.get("health"),
        aclose=found.get("aclose"),
        **same,
    )


def _resolved(name: str, target: str, problems: list[str]) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001 - the host's module may raise anything when imported
        problems.append(f"{name}: {target!r} cannot be imported: {type(error).__name__}")
        return None
    if not callable(found):
        problems.append(f"{name}: {target!r} must be callable, got {type(found).__name__}")
        return None
    return found


def _made(name: str, factory: Any, problems: list[str]) -> Any:
    if factory is None:
        return None
    try:
        made = factory()
    except Exception as error:  # noqa: BLE001 - its text may hold a credential, so only its name is reported
        problems.append(f"{name}: calling it raised {type(error).__name__}")
        return None
    if not is_target(made):
        problems.append(f"{name}: it must return a LlamaIndex retriever or index, got {type(made).__name__}")
    return made


async def _called(function: Callable[[], Any]) -> Any:
    value = function()
    return await value if inspect.isawaitable(value) else value
