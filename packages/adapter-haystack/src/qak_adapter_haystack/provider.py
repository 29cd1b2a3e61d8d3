"""Components and pipelines of Haystack as a provider of protocol 1."""

from __future__ import annotations

import inspect
import logging
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from qak_adapter_haystack._convert import Rules, to_results
from qak_adapter_haystack._errors import ERRORS
from qak_adapter_haystack._filters import NativeFilter, all_native, comparison, is_native, read_native, to_haystack
from qak_adapter_haystack._running import Runnable
from qak_adapter_haystack._sockets import Names, Plan, plan
from qak_adapter_haystack._tracing import quiet
from qak_adapter_haystack.settings import CallerFilters, HaystackSettings, ScoreKind, option_problems
from qak_core import (
    CancelSignal,
    KnowledgeBase,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidResponse,
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
    all_of,
    fan_out,
    parse_filter,
    read_settings,
    run_blocking,
    unique_ids,
)

_MAX_FETCHED = 64  # as many candidates as the core looks at
_OVERFETCH = 8
_HEALTH_TIMEOUT_S = 5.0
_CLOSE_TIMEOUT_S = 5.0

_log = logging.getLogger("qak_adapter_haystack")

Health = Callable[[], ProviderHealth | Mapping[str, Any] | Awaitable[ProviderHealth | Mapping[str, Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """One retriever that can be asked."""

    plan: Plan
    retriever: Runnable
    embedder: Runnable | None

    async def ask(self, query: str, top_k: int, filters: NativeFilter | None, signal: CancelSignal) -> Sequence[Any]:
        asked: object = query
        if self.embedder is not None:
            embedded = await self.embedder.run(signal, {"text": query})
            asked = embedded.get("embedding") if isinstance(embedded, Mapping) else None
            if asked is None:
                raise KnowledgeInvalidResponse
        include = None if self.plan.leaf else self.plan.output.partition(".")[0]
        outputs = await self.retriever.run(signal, self.plan.inputs(asked, top_k, filters), include=include)
        return self.plan.documents(outputs)


class HaystackProvider:
    """A retriever component, an embedding retriever with its text embedder, or a pipeline behind protocol 1."""

    def __init__(
        self,
        retriever: Any = None,
        *,
        key: str = "haystack",
        label: str = "Haystack",
        text_embedder: Any = None,
        knowledge_bases: Mapping[str, Any] | None = None,
        score: ScoreKind = "none",
        filters: Mapping[str, Any] | None = None,
        caller_filters: CallerFilters = "neutral",
        id_key: str | None = None,
        citation_keys: Mapping[str, str] | None = None,
        owner_key: str | None = None,
        query_inputs: Sequence[str] | None = None,
        top_k_inputs: Sequence[str] | None = None,
        filters_inputs: Sequence[str] | None = None,
        output: str | None = None,
        run_in_thread: bool | None = None,
        max_workers: int = 8,
        disable_tracing: bool = True,
        health: Health | None = None,
        aclose: Callable[[], Any] | None = None,
    ) -> None:
        """Look at the sockets; nothing is run yet.

        Args:
            retriever: asked when no knowledge base is named: a component, a pipeline, or a pair of an embedding
                retriever and its text embedder. Without it all ``knowledge_bases`` are asked.
            key: of the provider.
            label: of the provider, for people.
            text_embedder: turns the query into what each given embedding retriever takes.
            knowledge_bases: id to its retriever, of the same kinds.
            score: ``similarity`` where a higher score is better; the scores of anything else are left out.
            filters: what every result must match, in the neutral grammar or Haystack's.
            caller_filters: what callers may give: filters in the ``neutral`` grammar, in Haystack's too (``native``),
                or ``none``.
            id_key: metadata key of a result's id; by default the document's id.
            citation_keys: field of :class:`~qak_core.Source` to the metadata key that is looked at first.
            owner_key: metadata key of the owner; results of others are never returned.
            query_inputs: where the query goes, as ``socket`` or ``component.socket``; found out by default.
            top_k_inputs: where ``top_k`` goes; by default to the component that gives the documents.
            filters_inputs: where filters go; by default to every free input of that name.
            output: where the documents come out; found out by default.
            run_in_thread: whether to call ``run`` in a thread instead of ``run_async``; by default where a part is not
                async. For a ``run_async`` that blocks.
            max_workers: threads for that.
            disable_tracing: keep calls out of Haystack's telemetry and tracing.
            health: says how the system is; by default ready.
            aclose: called once by :meth:`close`; components are closed by their owner.

        Raises:
            SettingsError: with every problem found.
        """
        problems = option_problems(
            score=score,
            caller_filters=caller_filters,
            filters=filters,
            citation_keys=citation_keys or {},
            max_workers=max_workers,
        )
        self._key, self._label = key, label
        self._rules = Rules(
            id_key=id_key,
            citation_keys=dict(citation_keys or {}),
            owner_key=owner_key,
            similarity=score == "similarity",
        )
        self._caller_filters = caller_filters
        self._disable_tracing = disable_tracing
        self._check_health, self._aclose = health, aclose
        self._closed = False
        self._running: set[CancelSignal] = set()
        self._in_thread = run_in_thread
        self._pool = BlockingPool(max(1, max_workers), name="qak-haystack")
        self._names = Names(query=query_inputs, top_k=top_k_inputs, filters=filters_inputs, output=output)
        self._default = None
        if retriever is not None:
            self._default = self._base(retriever, text_embedder, "the retriever", problems)
        elif not knowledge_bases:
            problems.append("a retriever or knowledge_bases is needed")
        self._bases = {
            base_id: self._base(given, text_embedder, f"knowledge base {base_id!r}", problems)
            for base_id, given in (knowledge_bases or {}).items()
        }
        every = [base for base in (self._default, *self._bases.values()) if base is not None]
        filterable = all(base.plan.filters for base in every)
        self._can_filter = filterable and caller_filters != "none"
        self._host_filter: Filter | None = None
        self._host_native: NativeFilter | None = None
        if filters is not None and not problems:
            if is_native(filters):
                self._host_native = read_native(filters)
                if not filterable:
                    problems.append(
                        "filters: a filter of Haystack's needs a retriever that takes filters; write it in the neutral "
                        "grammar, which is checked here, or give it to the retriever itself"
                    )
            else:
                self._host_filter = parse_filter(filters)
        if problems:
            raise SettingsError(problems, subject="the arguments of HaystackProvider")

    def describe(self) -> ProviderDescription:
        """Say who this is; scores of several knowledge bases do not compare, so those of all at once are left out."""
        return ProviderDescription(
            key=self._key,
            label=self._label,
            capabilities={
                "filters": self._can_filter,
                "scores": self._rules.similarity and not (self._default is None and len(self._bases) > 1),
                "citations": True,
                "knowledge_bases": bool(self._bases),
                "management": False,
            },
            knowledge_bases=[KnowledgeBase(id=base_id) for base_id in self._bases],
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the retriever, or the knowledge bases that are named, and convert what they find.

        Raises:
            KnowledgeError: the signal's, ``knowledge_base_unknown``, ``knowledge_filters_unsupported``,
                ``knowledge_invalid_request``, ``knowledge_invalid_response``, ``knowledge_closed``, or what the error
                table makes of the vendor's.
        """
        self._check_open()
        context.signal.raise_if_cancelled()
        native, wanted = self._filters(request, context)
        bases = self._asked(request.knowledge_base_ids)
        signal = context.signal.child()
        self._running.add(signal)
        calls = {
            base_id: partial(self._ask, base_id, base, request, context.owner_id, native, wanted, signal)
            for base_id, base in bases.items()
        }
        try:
            if len(calls) == 1:
                return _response(await next(iter(calls.values()))())
            answer = await fan_out(calls, signal)
        except KnowledgeCancelled:
            context.signal.raise_if_cancelled()
            self._check_open()  # it was close() that ended it
            raise
        finally:
            self._running.discard(signal)
            signal.detach()
        # Scores of two bases do not compare.
        return _response([replace(result, score=None) for result in answer.items[: request.top_k]], answer.degraded)

    async def health(self) -> ProviderHealth | Mapping[str, Any]:
        """Say how the provider is: closed, ready, or what the host's own check says."""
        if self._closed:
            return ProviderHealth(status="unavailable", message="The provider is closed.")
        if self._check_health is None:
            return ProviderHealth(status="ready")
        try:
            answer = await self._pool.run(CancelSignal(_HEALTH_TIMEOUT_S), self._check_health)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the host's check; its text may hold anything
            return ProviderHealth(status="unavailable", message=f"The health check raised {type(error).__name__}.")

    async def close(self) -> None:
        """End what is running, take nothing more, and let the host close what is its own; once."""
        if self._closed:
            return
        self._closed = True
        for signal in list(self._running):
            signal.cancel()
        self._pool.close()
        if self._aclose is not None:
            await ERRORS.guard(_call(self._aclose))

    def _check_open(self) -> None:
        if self._closed:
            raise KnowledgeClosed from None

    def __repr__(self) -> str:
        return f"HaystackProvider({self._key!r})"

    async def _ask(
        self,
        base_id: str,
        base: _Base,
        request: RetrievalRequest,
        owner_id: str,
        native: NativeFilter | None,
        wanted: Filter | None,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        """Ask one base for exactly ``top_k`` results, and again for more where too many had to be left out."""
        top_k, rechecked = request.top_k, wanted is not None or self._rules.owner_key is not None
        fetch = min(_MAX_FETCHED, _OVERFETCH * top_k) if rechecked and not base.plan.filters else top_k
        while True:
            with quiet() if self._disable_tracing else nullcontext():
                documents = await ERRORS.guard(base.ask(request.query, fetch, native, signal))
            results = to_results(documents, self._rules, base=base_id, owner_id=owner_id, wanted=wanted, limit=top_k)
            if len(results) == top_k or len(documents) < fetch or fetch == _MAX_FETCHED or not base.plan.top_k:
                return results
            fetch = _MAX_FETCHED

    def _filters(
        self, request: RetrievalRequest, context: RetrievalContext
    ) -> tuple[NativeFilter | None, Filter | None]:
        """Return what the retriever is to match, for host, owner and caller, and what is checked afterwards."""
        caller: Filter | None = None
        native = [self._host_native] if self._host_native is not None else []
        if request.filters is not None:
            if not self._can_filter or (is_native(request.filters) and self._caller_filters != "native"):
                raise KnowledgeFiltersUnsupported
            if is_native(request.filters):
                native.append(read_native(request.filters))
            else:
                caller = parse_filter(request.filters)
        wanted = all_of(self._host_filter, caller)
        if self._rules.owner_key is not None:
            native.append(comparison(self._rules.owner_key, "==", context.owner_id))
        if wanted is not None:
            native.append(to_haystack(wanted))
        return all_native(native), wanted

    def _asked(self, base_ids: Sequence[str]) -> Mapping[str, _Base]:
        if not all(base_id in self._bases for base_id in base_ids):
            raise KnowledgeBaseUnknown
        if base_ids:
            return {base_id: self._bases[base_id] for base_id in base_ids}
        return {"": self._default} if self._default is not None else self._bases

    def _base(self, given: Any, embedder: Any, subject: str, problems: list[str]) -> _Base:
        retriever, own = given if isinstance(given, tuple) and len(given) == 2 else (given, embedder)
        found = plan(retriever, self._names, embedder=own, subject=subject, problems=problems)
        if found is None:
            return None  # type: ignore[return-value]  # the constructor raises
        return _Base(
            plan=found,
            retriever=Runnable(retriever, self._pool, in_thread=self._in_thread),
            embedder=None if own is None else Runnable(own, self._pool, in_thread=self._in_thread),
        )


def _response(results: Sequence[RetrievalResult], degraded: Sequence[str] = ()) -> RetrievalResponse:
    unique = [
        result if result.id == result_id else replace(result, id=result_id)
        for result, result_id in zip(results, unique_ids(result.id for result in results), strict=True)
    ]
    return RetrievalResponse(results=unique, degraded=degraded)


def create(settings: Mapping[str, Any]) -> HaystackProvider:
    """Make the provider that ``settings`` describe; imports Haystack through the factories they name.

    What the factories made is closed with the provider.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter haystack"
    read = read_settings(HaystackSettings, settings, subject=subject)
    problems: list[str] = []
    made = {name: _make(name, target, problems) for name, target in read.targets().items()}
    if problems:
        raise SettingsError(problems, subject=subject)
    options = {option.name: getattr(read, option.name) for option in fields(read)}
    options |= {name: made.get(name) for name in ("retriever", "text_embedder")}
    options["knowledge_bases"] = {base_id: made[f"knowledge_bases.{base_id}"] for base_id in read.knowledge_bases}
    return HaystackProvider(**options, aclose=partial(_close_all, list(made.values())))


def _make(name: str, target: str, problems: list[str]) -> Any:
    """Call a factory; of what goes wrong only the class is told, since the text may hold an address or a key."""
    try:
        return pkgutil.resolve_name(target)()
    except Exception as error:  # noqa: BLE001 - the host's code; its failure is the finding
        problems.append(f"{name}: the factory {target} raised {type(error).__name__}")
    return None


async def _close_all(things: Sequence[Any]) -> None:
    """Close all of them, whatever one of them raises."""
    for one in (part for thing in things for part in (thing if isinstance(thing, tuple) else (thing,))):
        try:
            if callable(close := getattr(one, "close_async", None)):
                await close()
            elif callable(close := getattr(one, "close", None)):
                await run_blocking(CancelSignal(_CLOSE_TIMEOUT_S), close)
        except Exception as error:  # noqa: BLE001 - the others are to be closed too
            _log.warning("closing a %s raised %s", type(one).__name__, type(error).__name__)


async def _call(function: Callable[[], Any]) -> Any:
    value = function()
    return await value if inspect.isawaitable(value) else value
