"""The runtime: a provider, made safe to ask in the middle of a conversation (protocol section 3)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from qak_core._admission import Breaker, InFlight
from qak_core._redaction import safe_text
from qak_core._texts import Language
from qak_core.answers import KnowledgeAnswer
from qak_core.citations import CitationLedger
from qak_core.errors import (
    ERRORS_BY_CODE,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidRequest,
    KnowledgeInvalidResponse,
    KnowledgeTimeout,
    KnowledgeUnconfigured,
)
from qak_core.normalization import MAX_CONTENT_CHARS, normalize_response
from qak_core.protocol import (
    DEFAULT_TOP_K,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
)
from qak_core.provider import assert_provider, read_health
from qak_core.signals import CancelSignal, ChildSignal, wait_for_either

_log = logging.getLogger("qak_core")


class KnowledgeRuntime:
    """Asks one provider on behalf of owners; owns every rule that keeps retrieval safe.

    One runtime belongs to one event loop. Use it as an async context manager, or call :meth:`close`.

    Attributes:
        description: what the provider said of itself at composition; ``None`` without a provider.
    """

    def __init__(
        self,
        provider: object | None,
        *,
        timeout_s: float = 10.0,
        soft_deadline_s: float = 0.8,
        on_slow: Callable[[RetrievalContext], None] | None = None,
        health_timeout_s: float = 2.0,
        close_timeout_s: float = 5.0,
        max_in_flight: int = 64,
        max_in_flight_per_owner: int = 16,
        breaker_failures: int = 0,
        breaker_cooldown_s: float = 30.0,
        max_content_chars: int = MAX_CONTENT_CHARS,
        language: Language = "en",
    ) -> None:
        """Compose the runtime.

        Args:
            provider: any object of the protocol's shape; ``None`` for a gateway without knowledge.
            timeout_s: seconds for one search, everything included.
            soft_deadline_s: seconds after which ``on_slow`` is called.
            on_slow: called once in a search that takes long, so that a voice host can say something.
            health_timeout_s: seconds for a health check.
            close_timeout_s: seconds for the in-flight searches to end, and again for the provider to close.
            max_in_flight: searches at once, deaf ones that were cut off included.
            max_in_flight_per_owner: the same for one owner.
            breaker_failures: consecutive failures after which the provider is skipped; 0 for never.
            breaker_cooldown_s: seconds for which it is skipped.
            max_content_chars: code points of one result, at most 4,000.
            language: of the notice in the answers.

        Raises:
            ProviderContractError: the provider does not have the shape of the protocol.
            ValueError: a number is not positive.
        """
        _require_positive(
            timeout_s=timeout_s,
            soft_deadline_s=soft_deadline_s,
            health_timeout_s=health_timeout_s,
            close_timeout_s=close_timeout_s,
            max_in_flight=max_in_flight,
            max_in_flight_per_owner=max_in_flight_per_owner,
            breaker_cooldown_s=breaker_cooldown_s,
            max_content_chars=max_content_chars,
        )
        self._provider: Any = provider
        self.description: ProviderDescription | None = None if provider is None else assert_provider(provider)
        self.language: Language = language
        self._timeout_s = timeout_s
        self._soft_deadline_s = soft_deadline_s
        self._on_slow = on_slow
        self._health_timeout_s = health_timeout_s
        self._close_timeout_s = close_timeout_s
        self._max_content_chars = max_content_chars
        self._in_flight = InFlight(total=max_in_flight, per_owner=max_in_flight_per_owner)
        self._breaker = Breaker(failures=breaker_failures, cooldown_s=breaker_cooldown_s)
        self._ledger = CitationLedger()
        self._check_health: Callable[..., Any] | None = getattr(provider, "health", None)
        self._checking: asyncio.Task[object] | None = None
        self._running: dict[asyncio.Task[Any], CancelSignal] = {}
        self._closing: asyncio.Task[None] | None = None

    @property
    def provider(self) -> Any:
        """The provider itself, for its management methods; what a model may reach is :meth:`search` alone."""
        return self._provider

    @property
    def configured(self) -> bool:
        """Whether there is a provider, and so a ``knowledge`` capability and tool (clause ``runtime.gate``)."""
        return self.description is not None

    def describe(self) -> dict[str, Any]:
        """Return what a client may know: whether knowledge is configured, and the provider's description."""
        if self.description is None:
            return {"configured": False, "capabilities": {"knowledge": False}}
        return {
            "configured": True,
            "capabilities": {"knowledge": True},
            "provider": {
                "protocol_version": self.description.protocol_version,
                "key": self.description.key,
                "label": self.description.label,
                "capabilities": dict(self.description.capabilities),
                "knowledge_bases": [{"id": base.id, "label": base.label} for base in self.description.knowledge_bases],
            },
        }

    async def search(
        self,
        query: str,
        *,
        owner_id: str,
        session_id: str = "",
        turn_id: str = "",
        trace_id: str = "",
        top_k: int = DEFAULT_TOP_K,
        knowledge_base_ids: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
        signal: CancelSignal | None = None,
    ) -> KnowledgeAnswer:
        """Search within the deadline and return a normalised answer.

        Args:
            query: 1 to 500 code points are used.
            owner_id: on whose behalf; from the host only, as are the next three.
            session_id: the conversation.
            turn_id: the turn within which citation numbers are stable.
            trace_id: for the operator's logs.
            top_k: 1 to 8.
            knowledge_base_ids: at most 8 of the published ids; empty for all.
            filters: from the host program only; needs a provider that declares ``filters``.
            signal: the caller's own cancellation or shorter deadline.

        Raises:
            KnowledgeError: one of its subclasses, with the fixed text of its code and nothing of the provider's.
        """
        if self.description is None:
            raise KnowledgeUnconfigured
        request = RetrievalRequest(query=query, top_k=top_k, knowledge_base_ids=knowledge_base_ids, filters=filters)
        if signal is not None and not isinstance(signal, CancelSignal):
            raise KnowledgeInvalidRequest(f"signal must be a CancelSignal, got {type(signal).__name__}")
        own = (signal or CancelSignal()).child(self._timeout_s)
        try:
            context = RetrievalContext(
                owner_id=owner_id, session_id=session_id, turn_id=turn_id, trace_id=trace_id, signal=own
            )
            self._admit(request, self.description)
            own.raise_if_cancelled()
            outcome = await self._retrieve(request, context, own)
        finally:
            own.detach()
        if isinstance(outcome, KnowledgeError):
            raise outcome  # here, in a frame that knows nothing of the provider's exception
        return outcome

    async def health(self) -> ProviderHealth:
        """Ask the provider how it is, within the health deadline (clause ``health.states``); never raises."""
        if self.description is None:
            return ProviderHealth(status="unconfigured", message="No provider is composed.")
        if self._closing is not None:
            return ProviderHealth(status="unavailable", message="The runtime is closed.")
        if self._check_health is None:
            return ProviderHealth(status="ready")
        if self._checking is not None and not self._checking.done():  # deaf checks must not pile up either
            return ProviderHealth(status="unavailable", message="The last health check has not ended yet.")
        signal = CancelSignal(self._health_timeout_s)
        arguments = (signal,) if _takes_argument(self._check_health) else ()
        task = self._checking = asyncio.ensure_future(_call(self._check_health, *arguments))
        try:
            await asyncio.wait({task}, timeout=self._health_timeout_s)
        finally:
            self._abandon(task, signal)
        if not task.done():
            return ProviderHealth(status="unavailable", message="The health check did not answer in time.")
        if task.cancelled() or (error := task.exception()) is not None:
            self._log_failure("health", "", None if task.cancelled() else error)
            return ProviderHealth(status="unavailable", message="The health check failed.")
        return read_health(task.result())

    async def close(self) -> None:
        """Cancel what is in flight, then close the provider once; bounded, and harmless when called again."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> KnowledgeRuntime:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"KnowledgeRuntime({self.description.key if self.description else None!r})"

    def _admit(self, request: RetrievalRequest, description: ProviderDescription) -> None:
        if self._closing is not None:
            raise KnowledgeClosed
        if request.filters is not None and not description.can("filters"):
            raise KnowledgeFiltersUnsupported
        published = {base.id for base in description.knowledge_bases}
        if published and not published.issuperset(request.knowledge_base_ids):
            raise KnowledgeBaseUnknown

    async def _retrieve(
        self, request: RetrievalRequest, context: RetrievalContext, signal: ChildSignal
    ) -> KnowledgeAnswer | KnowledgeError:
        """Call the provider, and cut it off when the signal ends, whether it listens or not."""
        leave = self._in_flight.enter(context.owner_id)
        try:
            self._breaker.check()
        except KnowledgeError:
            leave()
            raise
        started = time.monotonic()
        task = asyncio.ensure_future(_call(self._provider.retrieve, request, context))
        self._running[task] = signal
        task.add_done_callback(lambda _: self._forget(task, leave))
        slow = None
        if self._on_slow is not None:
            slow = asyncio.get_running_loop().call_later(self._soft_deadline_s, self._on_slow, context)
        try:
            await wait_for_either(task, signal)
        finally:
            if slow is not None:
                slow.cancel()
            late = signal.error()
            self._abandon(task, signal)
        outcome = late or self._outcome(task, request, context)
        # A caller who is less patient than the runtime does not make the provider slow.
        impatient = isinstance(late, KnowledgeTimeout) and time.monotonic() - started < 0.99 * self._timeout_s
        if not impatient:
            self._breaker.record(outcome if isinstance(outcome, KnowledgeError) else None)
        return outcome

    def _outcome(
        self, task: asyncio.Task[object], request: RetrievalRequest, context: RetrievalContext
    ) -> KnowledgeAnswer | KnowledgeError:
        """Turn what a provider returned or raised into an answer or a fresh error (clause ``runtime.errors``)."""
        raised = None if task.cancelled() else task.exception()
        if task.cancelled() or raised is not None:
            self._log_failure("retrieve", context.trace_id, raised)
            # Nobody cancelled: a provider that says so has failed.
            if not isinstance(raised, KnowledgeError) or isinstance(raised, KnowledgeCancelled):
                return KnowledgeFailed()
            return next((error() for error in ERRORS_BY_CODE.values() if isinstance(raised, error)), KnowledgeFailed())
        try:
            return normalize_response(
                task.result(),
                query=request.query,
                top_k=request.top_k,
                max_content_chars=self._max_content_chars,
                language=self.language,
                turn=self._ledger.turn(context.owner_id, context.session_id, context.turn_id),
            )
        except KnowledgeInvalidResponse as error:
            self._log_failure("response", context.trace_id, error)
            return KnowledgeInvalidResponse()

    def _forget(self, task: asyncio.Task[Any], leave: Callable[[], None]) -> None:
        leave()
        del self._running[task]
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain when nobody else will

    def _abandon(self, task: asyncio.Task[Any], signal: CancelSignal | None = None) -> None:
        """Stop a task that is still running; whatever becomes of it is of no interest any more."""
        if not task.done():
            if signal is not None:
                signal.cancel()
            task.cancel()
            task.add_done_callback(self._swallow)

    def _swallow(self, task: asyncio.Task[Any]) -> None:
        outcome = "was cancelled" if task.cancelled() else "failed" if task.exception() is not None else "answered"
        _log.debug("provider %s %s after it was given up", self._key, outcome)

    def _log_failure(self, action: str, trace_id: str, error: BaseException | None) -> None:
        kind = "CancelledError" if error is None else type(error).__name__
        # An error of the protocol reaches the caller as it is; anything else is known from here only.
        _log.log(
            logging.INFO if isinstance(error, KnowledgeError) else logging.WARNING,
            "provider %s: %s failed with %s: %s (trace %s)",
            self._key,
            action,
            kind,
            safe_text(error),
            trace_id or "-",
        )

    @property
    def _key(self) -> str:
        return self.description.key if self.description else "-"

    async def _close(self) -> None:
        for task, signal in list(self._running.items()):
            signal.cancel()
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=self._close_timeout_s)
        close = getattr(self._provider, "close", None)
        if close is None:
            return
        task = asyncio.ensure_future(_call(close))
        try:
            await asyncio.wait({task}, timeout=self._close_timeout_s)
        finally:
            self._abandon(task)
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            self._log_failure("close", "", error)


async def _call(method: Callable[..., Any], *arguments: object) -> object:
    """Call a method that should be async; one that is not still gives its value."""
    value = method(*arguments)
    return await value if inspect.isawaitable(value) else value


def _takes_argument(method: Callable[..., Any]) -> bool:
    """Whether ``health`` wants the signal: the boundary's original form passes it, ours may leave it out."""
    with suppress(TypeError, ValueError):
        first = next(iter(inspect.signature(method).parameters.values()), None)
        if first is not None and first.kind in {first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD}:
            return first.default is first.empty or first.name == "signal"
    return False


def _require_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0:
            raise ValueError(f"{name} must be a number above 0, got {number!r}")
