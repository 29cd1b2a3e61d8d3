"""LangChain retrievers and vector stores behind protocol 1."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from typing import Any, get_args

from qak_adapter_langchain._convert import Reading, convert
from qak_adapter_langchain._errors import ERRORS, FILTER_ERRORS
from qak_adapter_langchain._filters import Translator, native_arguments, translator_for
from qak_adapter_langchain._sources import VendorSource
from qak_adapter_langchain.settings import CallerFilters, LangChainSettings, ScoreKind
from qak_core import (
    CancelSignal,
    KnowledgeBase,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidRequest,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
    SettingsError,
    Source,
)
from qak_core.authoring import (
    BlockingPool,
    Comparison,
    FanOut,
    Filter,
    all_of,
    fan_out,
    matches,
    parse_filter,
    read_settings,
    unique_ids,
)

_FETCH_FACTOR = 8  # how many times more to ask for when results are sorted out here
_MAX_FETCH = 512

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """A source with how it is read and filtered."""

    source: VendorSource
    reading: Reading
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
        first_page: int = 0,
        disable_tracing: bool = True,
        run_in_thread: bool | None = None,
        max_workers: int = 8,
        health: Callable[[], Awaitable[ProviderHealth]] | None = None,
        aclose: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Serve a retriever, knowledge bases of one retriever each, or both.

        Args:
            retriever: any object with ``ainvoke`` (a retriever, one with retries or fallbacks, a lambda), or a vector
                store. Beside ``knowledge_bases`` it answers what names none of them.
            key: of the description.
            label: of the description.
            knowledge_bases: published id to retriever or vector store; all are asked when a request names none.
            score: what a vector store's numbers are. Distances are turned away; similarities become scores, unless
                there are several sources, whose numbers don't compare.
            score_key: metadata key under which a retriever, which returns documents alone, has its score.
            filters: the host's own filter, in the neutral grammar; every result meets it, whatever a request asks for.
            caller_filters: how a request's filters are applied: ``neutral``, in that grammar, by ``translator`` or one
                for InMemoryVectorStore, Chroma or Qdrant, and refused where there is none; ``results``, in that
                grammar, to what was found; ``native``, passed on as ``filter`` in the store's own form; ``none``.
            translator: turns the whole filter (host's, owner and caller's) and the context into the search's keyword
                arguments, or says ``None`` to refuse.
            id_key: metadata key of the id, for documents that have none of their own.
            citation_keys: a field of :class:`~qak_core.Source` to the metadata key that holds it.
            owner_key: metadata key that must hold the context's owner, exactly; other documents are never returned.
            first_page: the number under ``page`` of the first page, 0 or 1.
            disable_tracing: keep queries and documents from LangSmith and from the callbacks of an outer run.
            run_in_thread: call the blocking form in the provider's own threads (``True``) or the async one on the loop
                (``False``); decided for each object where ``None``.
            max_workers: threads for blocking calls.
            health: the host's own check; without one the provider is ready.
            aclose: called once on closing; LangChain closes no client.

        Raises:
            ValueError: with one line for each argument that can't be used.
        """
        if problems := _problems(score, caller_filters, citation_keys, first_page, knowledge_bases or {}):
            raise ValueError("\n".join(problems))
        vendors = {"": retriever} if retriever is not None else {}
        vendors |= knowledge_bases or {}
        if not vendors:
            raise ValueError("a retriever or knowledge_bases are needed, got neither")
        self._caller_filters = caller_filters
        self._own_translator = translator
        self._filter = _host_filter(filters)
        self._owner_key = owner_key
        self._health = health
        self._aclose = aclose
        self._pool = BlockingPool(max_workers, name=f"qak-{key}")
        self._closed = False
        self._running: set[CancelSignal] = set()
        self._scored = score == "similarity" and len(vendors) == 1
        reading = Reading(
            scored=self._scored,
            score_key=score_key,
            id_key=id_key,
            citation_keys=dict(citation_keys or {}),
            owner_key=owner_key,
            first_page=first_page,
        )
        make = partial(
            VendorSource,
            with_numbers=self._scored,
            run_in_thread=run_in_thread,
            disable_tracing=disable_tracing,
            pool=self._pool,
        )
        self._bases: dict[str, _Base] = {}
        for base, vendor in vendors.items():
            source = make(vendor)
            prefix = base if len(vendors) > 1 else ""
            self._bases[base] = _Base(
                source=source, reading=replace(reading, base=prefix), translate=self._translator(source)
            )
        translated = all(base.translate is not None for base in self._bases.values())
        can_filter = {"neutral": translated, "none": False}.get(caller_filters, True)
        self._description = ProviderDescription(
            key=key,
            label=label,
            capabilities={
                "filters": can_filter,
                "scores": self._scored,
                "citations": True,
                "knowledge_bases": bool(knowledge_bases),
                "management": False,
            },
            knowledge_bases=tuple(KnowledgeBase(id=base) for base in self._bases if base),
        )

    def describe(self) -> ProviderDescription:
        """Say who this is."""
        return replace(self._description, capabilities=dict(self._description.capabilities))

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the retrievers, and return what the owner may see of it.

        Raises:
            KnowledgeError: ``knowledge_base_unknown``, ``knowledge_filters_unsupported``,
                ``knowledge_invalid_request``, ``knowledge_closed``, the signal's, or the vendor's translated; where one
                of several knowledge bases fails, it is named in ``degraded`` instead.
        """
        context.signal.raise_if_cancelled()
        self._check_open()
        caller = self._caller_filter(request)
        bases = self._asked(request.knowledge_base_ids)
        signal = context.signal.child()
        self._running.add(signal)
        try:
            found = await self._ask(
                {name: partial(self._search, base, request, context, caller, signal) for name, base in bases.items()},
                signal,
            )
        except KnowledgeCancelled:
            if self._closed and not context.signal.cancelled:
                raise KnowledgeClosed from None
            raise
        finally:
            signal.detach()
            self._running.discard(signal)
        results = list(found.items[: request.top_k])
        ids = unique_ids(result.id for result in results)
        scores = self._falling([result.score for result in results])
        return RetrievalResponse(
            results=[
                result if (result.id, result.score) == (new_id, score) else replace(result, id=new_id, score=score)
                for result, new_id, score in zip(results, ids, scores, strict=True)
            ],
            degraded=found.degraded,
        )

    async def health(self) -> ProviderHealth:
        """Return what the host's own check says, ready without one."""
        if self._closed:
            return ProviderHealth(status="unavailable", message="The provider is closed.")
        return await ERRORS.guard(self._health()) if self._health is not None else ProviderHealth(status="ready")

    async def close(self) -> None:
        """Give up what is running and call the host's ``aclose``, once."""
        if self._closed:
            return
        self._closed = True
        for signal in list(self._running):
            signal.cancel()
        self._pool.close()
        if self._aclose is not None:
            await ERRORS.guard(self._aclose())

    def __repr__(self) -> str:
        return f"LangChainProvider({self._description.key!r})"

    async def _ask(
        self, calls: Mapping[str, Callable[[], Awaitable[list[RetrievalResult]]]], signal: CancelSignal
    ) -> FanOut[RetrievalResult]:
        if len(calls) > 1:
            return await fan_out(calls, signal)
        (call,) = calls.values()  # the only one has all the time there is
        return FanOut(items=await call(), degraded=())

    def _check_open(self) -> None:
        if self._closed:
            raise KnowledgeClosed

    def _translator(self, source: VendorSource) -> Callable[..., Mapping[str, Any] | None] | None:
        if self._own_translator is not None or self._caller_filters in {"native", "results"}:
            return self._own_translator
        ready = translator_for(source.store)
        if ready is None:
            return None
        if self._filter is not None:
            try:
                ready(self._filter)
            except KnowledgeFiltersUnsupported:
                raise ValueError(f"filters: {type(source.store).__name__} has no filter that says this") from None
        return lambda wanted, _context: ready(wanted)

    def _asked(self, ids: Sequence[str]) -> dict[str, _Base]:
        if not ids:
            return {"": self._bases[""]} if "" in self._bases else self._bases
        if not set(ids) <= set(self._bases) - {""}:
            raise KnowledgeBaseUnknown
        return {base: self._bases[base] for base in ids}

    def _caller_filter(self, request: RetrievalRequest) -> Filter | None:
        if not request.filters:
            return None
        if not self._description.can("filters"):
            raise KnowledgeFiltersUnsupported
        return None if self._caller_filters == "native" else parse_filter(request.filters)

    async def _search(
        self,
        base: _Base,
        request: RetrievalRequest,
        context: RetrievalContext,
        caller: Filter | None,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        lenient = request.filters and (self._caller_filters == "native" or self._own_translator is not None)
        errors = FILTER_ERRORS if lenient else ERRORS
        return await errors.guard(self._found(base, request, context, caller, signal))

    async def _found(
        self,
        base: _Base,
        request: RetrievalRequest,
        context: RetrievalContext,
        caller: Filter | None,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        """Search, and again for more where too many of the documents had to be sorted out."""
        source, top_k = base.source, request.top_k
        wanted = all_of(self._filter, self._owner_filter(context), caller)
        arguments = self._arguments(base, request, context, wanted)
        # A host's translator may read a key in its own way, so what it was given is not compared again.
        check = None if self._own_translator is not None else wanted

        def accept(metadata: Mapping[str, Any]) -> bool:
            if self._owner_key is not None and not _is_owner(metadata.get(self._owner_key), context.owner_id):
                return False
            return check is None or matches(check, metadata)

        sorted_out_here = wanted is not None and base.translate is None
        count = min(_MAX_FETCH, top_k * (_FETCH_FACTOR if sorted_out_here else 1))
        while True:
            hits = await source.search(request.query, count, arguments, signal)
            results = convert(hits, base.reading, limit=top_k, accept=accept)
            if len(results) == top_k or source.k_name is None or len(hits) < count or count == _MAX_FETCH:
                return results
            count = min(_MAX_FETCH, count * _FETCH_FACTOR)

    def _arguments(
        self, base: _Base, request: RetrievalRequest, context: RetrievalContext, wanted: Filter | None
    ) -> Mapping[str, Any]:
        arguments: Mapping[str, Any] | None = {}
        if request.filters and self._caller_filters == "native":
            arguments = native_arguments(base.source.store, request.filters)
        elif wanted is not None and base.translate is not None:
            arguments = base.translate(wanted, context)
        if arguments is None or not base.source.takes(arguments):
            raise KnowledgeFiltersUnsupported
        return arguments

    def _owner_filter(self, context: RetrievalContext) -> Filter | None:
        if self._owner_key is None:
            return None
        return Comparison(operator="eq", key=self._owner_key, value=context.owner_id)

    def _falling(self, scores: list[float | None]) -> list[float | None]:
        """Return the scores, or none at all where they rise along the answer: then they are distances after all."""
        known = [score for score in scores if score is not None]
        if all(better >= worse for better, worse in pairwise(known)):
            return scores
        _log.warning("%r: scores rise along an answer, so they are no similarities and were left out", self)
        return [None] * len(scores)


def create(settings: Mapping[str, Any]) -> LangChainProvider:
    """Make the provider that ``settings`` describe.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter langchain"
    read = read_settings(LangChainSettings, settings, subject=subject)
    problems: list[str] = []
    made = {name: _made(name, target, problems) for name, target in read.targets().items()}
    if problems:
        raise SettingsError(problems, subject=subject)
    arguments = {field.name: getattr(read, field.name) for field in fields(read)}
    arguments["retriever"] = made.get("retriever")
    arguments["knowledge_bases"] = {base: made[f"knowledge_bases.{base}"] for base in read.knowledge_bases}
    try:
        return LangChainProvider(**arguments)
    except ValueError as error:
        problems = str(error).splitlines()
    raise SettingsError(problems, subject=subject)


def _made(name: str, target: str, problems: list[str]) -> Any:
    """Call a factory; of what goes wrong only the class is told, since the text may hold an address or a key."""
    try:
        return pkgutil.resolve_name(target)()
    except Exception as error:  # noqa: BLE001 - a factory is foreign code; that it failed is the finding
        problems.append(f"{name}: {target} must be a function without arguments, it raised {type(error).__name__}")
    return None


def _problems(
    score: object,
    caller_filters: object,
    citation_keys: Mapping[str, str] | None,
    first_page: object,
    knowledge_bases: Mapping[str, Any],
) -> list[str]:
    problems = []
    if score not in get_args(ScoreKind):
        problems.append(f"score: expected one of {', '.join(get_args(ScoreKind))}, got {score!r}")
    if caller_filters not in get_args(CallerFilters):
        problems.append(f"caller_filters: expected one of {', '.join(get_args(CallerFilters))}, got {caller_filters!r}")
    known = [field.name for field in fields(Source)]
    problems += [
        f"citation_keys: {name!r} is no field of a source; known are {', '.join(known)}"
        for name in citation_keys or ()
        if name not in known
    ]
    problems += [
        f"knowledge_bases: an id is text without blanks around it, got {base!r}"
        for base in knowledge_bases
        if not base or base != base.strip()
    ]
    if isinstance(first_page, bool) or first_page not in {0, 1}:
        problems.append(f"first_page: expected 0 or 1, got {first_page!r}")
    return problems


def _host_filter(given: Mapping[str, Any] | None) -> Filter | None:
    if given is None:
        return None
    try:
        return parse_filter(given)
    except KnowledgeInvalidRequest as error:
        problem = error.message
    raise ValueError(f"filters: {problem}")


def _is_owner(found: object, owner_id: str) -> bool:
    return type(found) is str and found == owner_id
