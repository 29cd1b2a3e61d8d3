"""Running a clause in an event loop of its own, for a bounded time, and saying how it ended."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from qak_core.authoring import redact_credentials

if TYPE_CHECKING:
    from qak_contract_tests._suite.base import ContractBase
    from qak_contract_tests.clauses import Clause

_MAX_DETAIL_CHARS = 500
_GRACE_S = 5.0  # for an event loop to cancel what is left in it


@dataclass(frozen=True, kw_only=True, slots=True)
class ClauseOutcome:
    """How a clause ended for one provider.

    Attributes:
        id: of the clause.
        outcome: ``waived`` is a clause that failed and was declared to.
        detail: what was got and expected, or the reason of the waiver; empty when passed.
        provider: key and label that the provider gave, empty texts when it gave none.
    """

    id: str
    outcome: Literal["passed", "failed", "waived"]
    detail: str
    provider: Mapping[str, str]


class ClauseTimeout(AssertionError):
    """A clause took longer than its contract allows."""


class ProviderEnds(AssertionError):
    """The provider raised what ends a program."""


class StaleWaiver(AssertionError):
    """A clause is waived, yet the provider keeps it."""


def run_clause(contract: ContractBase, clause: Clause, body: Callable[..., Any]) -> None:
    """Run one clause against the contract's provider, mind its waiver, and leave the outcome on the contract."""
    __tracebackhide__ = True
    reason = contract.waivers.get(clause.id)
    try:
        if inspect.iscoroutinefunction(body):
            run_in_own_loop(lambda: _with_provider(contract, body), contract.timeout_s)
        else:
            body(contract)
        if reason is not None:
            raise StaleWaiver(f"{clause.id} is waived ({reason}), but the provider keeps it: remove the waiver")
    except Exception as error:
        stale = isinstance(error, StaleWaiver)
        if reason is not None and not stale:
            contract.qak_outcome = _outcome(contract, clause, "waived", reason)
            return
        contract.qak_outcome = _outcome(contract, clause, "failed", _one_line(error))
        raise
    contract.qak_outcome = _outcome(contract, clause, "passed", "")


def run_in_own_loop(start: Callable[[], Coroutine[Any, Any, None]], timeout_s: float) -> None:
    """Run a coroutine to its end in a fresh event loop.

    The loop runs in a thread, because nothing else on every platform gets the test run out of a provider that blocks
    its event loop for ever; only then the (daemon) thread is left behind.

    Raises:
        ClauseTimeout: it took longer than ``timeout_s`` seconds.
    """
    __tracebackhide__ = True
    ended: Future[None] = Future()

    async def bounded() -> None:
        try:
            async with asyncio.timeout(timeout_s) as limit:
                await start()
        except TimeoutError:
            if not limit.expired():
                raise
            raise ClauseTimeout(
                f"the clause did not end within {timeout_s:g} s; a call of the provider hangs"
            ) from None

    def work() -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(bounded())
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            ended.set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name="qak-contract-clause", daemon=True
    )
    thread.start()
    thread.join(timeout_s + _GRACE_S)
    if thread.is_alive():
        raise ClauseTimeout(
            f"the event loop did not end within {timeout_s + _GRACE_S:g} s; the provider blocks it, or ignores that "
            "its tasks are cancelled"
        )
    error = ended.exception()
    if isinstance(
        error, SystemExit | KeyboardInterrupt | asyncio.CancelledError
    ):  # it would end the test run, and with 0 if it likes
        raise ProviderEnds(f"the provider raised {type(error).__name__}, expected an error that its caller can catch")
    if error is not None:
        raise error.with_traceback(_from_the_clause_on(error.__traceback__))


async def _with_provider(contract: ContractBase, body: Callable[..., Awaitable[None]]) -> None:
    """Open the provider, run the body, and close before the body's failure is raised.

    What a provider did wrong is not thrown into the author's context manager, which need not expect it.
    """
    failure: Exception | None = None
    async with contract._opened() as probe:
        try:
            await body(contract, probe)
        except Exception as error:  # noqa: BLE001 - raised again below
            failure = error
    if failure is not None:
        raise failure


def _from_the_clause_on(trace: TracebackType | None) -> TracebackType | None:
    """Leave out how the event loop got to the clause: an author reads what the clause and the provider did."""
    while trace is not None and trace.tb_frame.f_globals["__name__"].startswith((__name__, "asyncio.")):
        trace = trace.tb_next
    return trace


def _outcome(
    contract: ContractBase, clause: Clause, outcome: Literal["passed", "failed", "waived"], detail: str
) -> ClauseOutcome:
    return ClauseOutcome(id=clause.id, outcome=outcome, detail=detail, provider=contract.qak_identity)


def _one_line(error: BaseException) -> str:
    """Say what went wrong; a vendor's error may be quoted in it, so credentials are taken out."""
    text = redact_credentials(" ".join(str(error).split()))[:_MAX_DETAIL_CHARS]
    return text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}"
