"""LangChain retrievers and vector stores behind protocol 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qak_adapter_langchain._convert import NUMBER_KEYS, convert
from qak_adapter_langchain._errors import ERRORS, FILTER_ERRORS
from qak_adapter_langchain._filters import Translator, native_arguments, translator_for
from qak_adapter_langchain._sources import VendorSource
from qak_adapter_langchain.settings import MADE, CallerFilters, LangChainSettings, problems_of
from qak_core import (
    CancelSignal,
    KnowledgeBase,
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
    Filter,
    HealthCheck,
    Lifetime,
    Reading,
    Scope,
    ScoreKind,
    all_of,
    answer,
    load_targets,
    parse_filter,
    read_settings,
    route,
)

_FETCH_FACTOR = 8  # how many times more to ask for when results are sorted out here
_MAX_FETCH = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """A source with how it is filtered."""

    source: VendorSource
    translate: Callable[[Filter, RetrievalContext], Mapping[str, Any] | None] | None


class LangChainProvider:
    """Anything of LangChain that finds documents, as a knowledge provider."""

    def __init__(
        self,
        retriever: Any = None,
        *,
        key: str = "langchain",
        label: str = "LangChain",
        knowledge_bases: Mapping[str, Any] | None = None,
        score: ScoreKind = "none",
        score_key: str = "relevance_score",
        filters: Mapping[str, Any] | None = None,
        caller_filters: CallerFilters = "neutral",
        translator: Translator | None = None,
        id_key: str | None = None,
        citation_keys: Mapping[str, str] | None = None,
        owner_key: str | None = None,
        first_page: int | None = 0,
        disable_tracing: bool = True,
        run_in_thread: bool | None = None,
        max_workers: int = 8,
        health: HealthCheck | None = None,
        aclose: Callable[[], object] | None = None,
    ) -> None:
        """Serve a retriever, knowledge bases of one retriever each, or both.

        Args:
            retriever: any object with ``ainvoke`` (a retriever, one with retries or fallbacks, a lambda), or a vector
                store. Beside ``knowledge_bases`` it answers what names none of them.
            key: of the description.
            label: of the description.
            knowledge_bases: published id to retriever or vector store; all are asked when a request names none.
            score: what a vector store's numbers are. Distances are turned away; similarities become scores, unless
                several sources are asked at once, whose numbers don't compare.
            score_key: metadata key under which a retriever, which returns documents alone, has its score.
            filters: the host's own filter, in the neutral grammar; every result meets it, whatever a request asks for.
            caller_filters: how a request's filters are applied: ``neutral``, in that grammar, by ``translator`` or one
                for InMemoryVectorStore, Chroma or Qdrant, and refused where there is none; ``results``, in that
                grammar, to what was found; ``native``, passed on as ``filter`` in the store's own form; ``none``.
            translator: turns the whole filter (host's, owner and caller's) and the context into the search's keyword
                arguments, or says ``None`` to refuse.
            id_key: metadata key of a document's id; by default the document's own id.
            citation_keys: field of :class:`~qak_core.Source` to the metadata key that is looked at first.
            owner_key: metadata key that must hold the owner's id, exactly; without one, all owners see everything.
            first_page: the number under ``page`` of the first page, 0 or 1; ``None`` for ``page`` not to be read.
            disable_tracing: keep queries and documents from LangSmith and from the callbacks of an outer run.
            run_in_thread: call the blocking form in the provider's own threads (``True``) or the async one on the loop
                (``False``); decided for each object where ``None``.
            max_workers: threads for blocking calls, 1 to 64; further calls wait in order.
            health: the host's own check, which may be async; without one the provider is ready.
            aclose: called once on closing, may be async; LangChain closes no client.

        Raises:
            SettingsError: with every problem found.
        """
        self._reading = Reading(
            score=score,
            id_key=id_key,
            citation_keys=dict(citation_keys or {}),
            owner_key=owner_key,
            first_page=first_page,
            known_ids=(),
            drop=(*NUMBER_KEYS, score_key),
        )
        problems = problems_of(
            self._reading,
            caller_filters=caller_filters,
            filters=filters,
            max_workers=max_workers,
            base_ids=knowledge_bases or (),
        )
        vendors = {} if retriever is None else {"": retriever}
        vendors |= knowledge_bases or {}
        if not vendors:
            problems.append("retriever or knowledge_bases is required, got neither")
        self._key, self._label = key, label
        self._score_key = score_key
        self._caller_filters = caller_filters
        self._own_translator = translator
        self._pushes_ours_only = translator is None and caller_filters in {"native", "results"}
        self._filter = None if filters is None or problems else parse_filter(filters)
        self._pool = BlockingPool(max(1, max_workers), name="qak-langchain")
        self._life = Lifetime(self._pool, ERRORS, health=health, aclose=aclose)
        make = partial(
            VendorSource,
            with_numbers=score == "similarity",
            run_in_thread=run_in_thread,
            disable_tracing=disable_tracing,
            pool=self._pool,
        )
        self._bases: dict[str, _Base] = {}
        for name, vendor in vendors.items():
            try:
                source = make(vendor)
                self._bases[name] = _Base(source=source, translate=self._translator(source))
            except ValueError as error:
                problems.append(f"{f'knowledge base {name!r}' if name else 'the retriever'}: {error}")
        if problems:
            raise SettingsError(problems, subject="the arguments of LangChainProvider")
        translated = all(base.translate is not None for base in self._bases.values())
        passed_on = all(base.source.takes({"filter"}) for base in self._bases.values())
        self._can_filter = {"neutral": translated, "none": False, "native": passed_on}.get(caller_filters, True)

    def describe(self) -> ProviderDescription:
        """Say who this is."""
        ids = [base_id for base_id in self._bases if base_id]
        return ProviderDescription(
            key=self._key,
            label=self._label,
            capabilities={
                "filters": self._can_filter,
                "scores": self._reading.score == "similarity" and ("" in self._bases or len(ids) == 1),
                "citations": True,
                "knowledge_bases": bool(ids),
                "management": False,
            },
            knowledge_bases=[KnowledgeBase(id=base_id) for base_id in ids],
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the retrievers, and return what the owner may see of it.

        Raises:
            KnowledgeError: ``knowledge_base_unknown``, ``knowledge_filters_unsupported``,
                ``knowledge_invalid_request``, ``knowledge_closed``, the signal's, or the vendor's translated; where one
                of several knowledge bases fails, it is named in ``degraded`` instead.
        """
        with self._life.retrieval(context.signal) as signal:
            scope = self._scope(request, context)
            bases = route(self._bases, request.knowledge_base_ids)
            calls = {
                name: partial(self._search, name, base, request, context, scope, signal) for name, base in bases.items()
            }
            return await answer(calls, signal, top_k=request.top_k)

    async def health(self) -> ProviderHealth | Mapping[str, Any]:
        """Say how the provider is: closed, ready, or what the host's own check says."""
        return await self._life.health()

    async def close(self) -> None:
        """End what is running, take nothing more, and let the host close what is its own; once."""
        await self._life.close()

    def __repr__(self) -> str:
        return f"LangChainProvider({self._key!r})"

    def _translator(self, source: VendorSource) -> Callable[..., Mapping[str, Any] | None] | None:
        if self._own_translator is not None:
            return self._own_translator
        ready = translator_for(source.store)
        if ready is None or (self._pushes_ours_only and not source.takes({"filter"})):
            return None
        owner_key = self._reading.owner_key if self._pushes_ours_only else None
        ours = Scope(owner_key=owner_key, wanted=self._filter).whole()
        if ours is not None:
            try:
                ready(ours)
            except KnowledgeFiltersUnsupported:
                if self._pushes_ours_only:
                    return None
                raise ValueError(f"filters: {type(source.store).__name__} has no filter that says this") from None
        return lambda wanted, _context: ready(wanted)

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> Scope:
        caller: Filter | None = None
        if request.filters:
            if not self._can_filter:
                raise KnowledgeFiltersUnsupported
            caller = None if self._caller_filters == "native" else parse_filter(request.filters)
        return Scope(owner_key=self._reading.owner_key, owner_id=context.owner_id, wanted=all_of(self._filter, caller))

    async def _search(
        self,
        name: str,
        base: _Base,
        request: RetrievalRequest,
        context: RetrievalContext,
        scope: Scope,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        lenient = request.filters and (self._caller_filters == "native" or self._own_translator is not None)
        errors = FILTER_ERRORS if lenient else ERRORS
        return await errors.guard(self._found(name, base, request, context, scope, signal))

    async def _found(
        self,
        name: str,
        base: _Base,
        request: RetrievalRequest,
        context: RetrievalContext,
        scope: Scope,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        """Search, and again for more where too many of the documents had to be sorted out."""
        source, top_k = base.source, request.top_k
        native = bool(request.filters) and self._caller_filters == "native"
        arguments = self._arguments(base, request, context, scope, native=native)
        # A host's translator may read a key in its own way, so what it was given is not compared again.
        accept = scope.admits if self._own_translator is None or native else scope.owned_by
        sorts_out = base.translate is None or (self._pushes_ours_only and not native and bool(request.filters))
        count = top_k * (_FETCH_FACTOR if scope.restricts and sorts_out else 1)
        prefix = name if len(self._bases) > 1 else ""
        while True:
            hits = await source.search(request.query, count, arguments, signal)
            results = convert(hits, self._reading, limit=top_k, score_key=self._score_key, base=prefix, accept=accept)
            if len(results) == top_k or source.k_name is None or len(hits) < count or count == _MAX_FETCH:
                return results
            count = min(_MAX_FETCH, count * _FETCH_FACTOR)

    def _arguments(
        self, base: _Base, request: RetrievalRequest, context: RetrievalContext, scope: Scope, *, native: bool
    ) -> Mapping[str, Any]:
        arguments: Mapping[str, Any] | None = {}
        wanted = (replace(scope, wanted=self._filter) if self._pushes_ours_only else scope).whole()
        # What a host's translator returns can't be joined with a native filter.
        if base.translate is not None and wanted is not None and not (native and self._own_translator):
            arguments = base.translate(wanted, context)
        if native and request.filters and arguments is not None:
            arguments = native_arguments(base.source.store, request.filters, arguments)
        if arguments is None or not base.source.takes(arguments):
            raise KnowledgeFiltersUnsupported
        return arguments


def create(settings: Mapping[str, Any]) -> LangChainProvider:
    """Make the provider that ``settings`` describe.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter langchain"
    read = read_settings(LangChainSettings, settings, subject=subject)
    return LangChainProvider(**load_targets(read, make=MADE, resolve=("health", "aclose"), subject=subject))
