"""Components and pipelines of Haystack as a provider of protocol 1."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from qak_adapter_haystack._convert import to_results
from qak_adapter_haystack._errors import ERRORS
from qak_adapter_haystack._filters import NativeFilter, all_native, is_comparable, is_native, read_native
from qak_adapter_haystack._running import Runnable
from qak_adapter_haystack._sockets import Names, Plan, plan
from qak_adapter_haystack._tracing import quiet
from qak_adapter_haystack._wanted import Wanted
from qak_adapter_haystack.settings import MADE, CallerFilters, HaystackSettings, problems_of
from qak_core import (
    CancelSignal,
    KnowledgeBase,
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
    run_blocking,
)

_MAX_FETCHED = 512
_OVERFETCH = 8  # how many times more to ask for when documents are left out here
_CLOSE_TIMEOUT_S = 5.0

_log = logging.getLogger("qak_adapter_haystack")


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

    def close(self) -> None:
        """End a warming up that is under way."""
        for part in (self.retriever, self.embedder):
            if part is not None:
                part.close()


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
        first_page: int | None = None,
        query_inputs: Sequence[str] | None = None,
        top_k_inputs: Sequence[str] | None = None,
        filters_inputs: Sequence[str] | None = None,
        output: str | None = None,
        run_in_thread: bool | None = None,
        disable_tracing: bool = True,
        max_workers: int = 8,
        health: HealthCheck | None = None,
        aclose: Callable[[], object] | None = None,
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
            owner_key: metadata key that must hold the owner's id, exactly; without one, all owners see everything.
            first_page: the number under ``page`` of the first page, 0 or 1; by default ``page`` is not read.
            query_inputs: where the query goes, as ``socket`` or ``component.socket``; found out by default.
            top_k_inputs: where ``top_k`` goes; by default to the component that gives the documents.
            filters_inputs: where filters go; by default to every free input of that name.
            output: where the documents come out; found out by default.
            run_in_thread: whether to call ``run`` in a thread instead of ``run_async``; by default where a part is not
                async. For a ``run_async`` that blocks.
            disable_tracing: keep calls out of Haystack's telemetry and tracing.
            max_workers: threads for what is not async, 1 to 64; further calls wait in order.
            health: the host's own check, which may be async; without one the provider is ready.
            aclose: called once on closing, may be async; components are closed by their owner.

        Raises:
            SettingsError: with every problem found.
        """
        self._reading = Reading(
            score=score,
            id_key=id_key,
            citation_keys=dict(citation_keys or {}),
            owner_key=owner_key and owner_key.removeprefix("meta."),
            first_page=first_page,
        )
        problems = problems_of(
            self._reading,
            caller_filters=caller_filters,
            filters=filters,
            max_workers=max_workers,
            base_ids=knowledge_bases or (),
        )
        self._key, self._label = key, label
        self._caller_filters = caller_filters
        self._disable_tracing = disable_tracing
        self._in_thread = run_in_thread
        self._pool = BlockingPool(max(1, max_workers), name="qak-haystack")
        self._life = Lifetime(self._pool, ERRORS, health=health, aclose=aclose)
        self._names = Names(query=query_inputs, top_k=top_k_inputs, filters=filters_inputs, output=output)
        given = {} if retriever is None else {"": retriever}
        given |= knowledge_bases or {}
        if not given:
            problems.append("retriever or knowledge_bases is required, got neither")
        self._bases = {base_id: self._base(base_id, one, text_embedder, problems) for base_id, one in given.items()}
        every = [base for base in self._bases.values() if base is not None]
        filterable = all(base.plan.filters for base in every)
        self._can_filter = filterable and caller_filters != "none"
        self._host_filter: Filter | None = None
        self._host_native: NativeFilter | None = None
        if filters is not None and not problems:
            if is_native(filters):
                self._host_native = read_native(filters)
                if not is_comparable(self._host_native):
                    problems.append(
                        "filters: Haystack can't compare with one of the values; it orders numbers and ISO dates, and "
                        "'in' and 'not in' need a list"
                    )
            else:
                self._host_filter = parse_filter(filters)
        if problems:
            raise SettingsError(problems, subject="the arguments of HaystackProvider")

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
        """Ask the retriever, or the knowledge bases that are named, and convert what they find.

        Raises:
            KnowledgeError: the signal's, ``knowledge_base_unknown``, ``knowledge_filters_unsupported``,
                ``knowledge_invalid_request``, ``knowledge_invalid_response``, ``knowledge_closed``, or what the error
                table makes of the vendor's.
        """
        with self._life.retrieval(context.signal) as signal:
            wanted = self._wanted(request, context)
            sent = wanted.sent()
            bases = route(self._bases, request.knowledge_base_ids)
            calls = {
                name: partial(self._ask, name, base, request, wanted, sent, signal) for name, base in bases.items()
            }
            return await answer(calls, signal, top_k=request.top_k)

    async def health(self) -> ProviderHealth | Mapping[str, Any]:
        """Say how the provider is: closed, ready, or what the host's own check says."""
        return await self._life.health()

    async def close(self) -> None:
        """End what is running, take nothing more, and let the host close what is its own; once."""
        for base in self._bases.values():
            base.close()
        await self._life.close()

    def __repr__(self) -> str:
        return f"HaystackProvider({self._key!r})"

    async def _ask(
        self,
        name: str,
        base: _Base,
        request: RetrievalRequest,
        wanted: Wanted,
        sent: NativeFilter | None,
        signal: CancelSignal,
    ) -> list[RetrievalResult]:
        """Ask one base for exactly ``top_k`` results, and again for more where too many had to be left out."""
        top_k = request.top_k
        fetch = _OVERFETCH * top_k if wanted.restricts and not base.plan.filters else top_k
        prefix = name if len(self._bases) > 1 else ""
        while True:
            with quiet() if self._disable_tracing else nullcontext():
                documents = await ERRORS.guard(base.ask(request.query, fetch, sent, signal))
            results = to_results(documents, self._reading, limit=top_k, base=prefix, wanted=wanted)
            if len(results) == top_k or len(documents) < fetch or fetch == _MAX_FETCHED or not base.plan.top_k:
                return results
            fetch = min(_MAX_FETCHED, fetch * _OVERFETCH)

    def _wanted(self, request: RetrievalRequest, context: RetrievalContext) -> Wanted:
        """Return what every document must meet, for host, owner and caller."""
        caller: Filter | None = None
        native = [self._host_native] if self._host_native is not None else []
        if request.filters is not None:
            if not self._can_filter or (is_native(request.filters) and self._caller_filters != "native"):
                raise KnowledgeFiltersUnsupported
            if is_native(request.filters):
                native.append(read_native(request.filters))
                if not is_comparable(native[-1]):
                    raise KnowledgeFiltersUnsupported("Haystack can't compare with one of the values")
            else:
                caller = parse_filter(request.filters)
        scope = Scope(
            owner_key=self._reading.owner_key, owner_id=context.owner_id, wanted=all_of(self._host_filter, caller)
        )
        return Wanted(scope=scope, native=all_native(native))

    def _base(self, base_id: str, given: Any, embedder: Any, problems: list[str]) -> _Base:
        subject = f"knowledge base {base_id!r}" if base_id else "the retriever"
        retriever, own = given if isinstance(given, tuple) and len(given) == 2 else (given, embedder)
        found = plan(retriever, self._names, embedder=own, subject=subject, problems=problems)
        if found is None:
            return None  # type: ignore[return-value]  # the constructor raises
        return _Base(
            plan=found,
            retriever=Runnable(retriever, self._pool, in_thread=self._in_thread),
            embedder=None if own is None else Runnable(own, self._pool, in_thread=self._in_thread),
        )


def create(settings: Mapping[str, Any]) -> HaystackProvider:
    """Make the provider that ``settings`` describe; imports Haystack through the factories they name.

    What the factories made is closed with the provider.

    Raises:
        SettingsError: with every problem found.
    """
    subject = "the settings of adapter haystack"
    read = read_settings(HaystackSettings, settings, subject=subject)
    arguments = load_targets(read, make=MADE, resolve=("health", "aclose"), subject=subject)
    made = [arguments["retriever"], arguments["text_embedder"], *arguments["knowledge_bases"].values()]
    return HaystackProvider(**{**arguments, "aclose": partial(_close_all, made, arguments["aclose"])})


async def _close_all(things: Sequence[Any], aclose: Callable[[], object] | None) -> None:
    """Close all of them, whatever one of them raises, and let the host close what is its own."""
    for one in (part for thing in things for part in (thing if isinstance(thing, tuple) else (thing,))):
        try:
            if callable(close := getattr(one, "close_async", None)):
                await close()
            elif callable(close := getattr(one, "close", None)):
                await run_blocking(CancelSignal(_CLOSE_TIMEOUT_S), close)
        except Exception as error:  # noqa: BLE001 - the others are to be closed too
            _log.warning("closing a %s raised %s", type(one).__name__, type(error).__name__)
    if aclose is not None and inspect.isawaitable(closing := aclose()):
        await closing
