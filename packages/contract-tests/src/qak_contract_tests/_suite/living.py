"""From opening to closing (protocol section 1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping

from qak_contract_tests._probe import SOON_S, Probe, soon
from qak_contract_tests._running import run_in_own_loop
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_core import KnowledgeClosed, KnowledgeError, ProviderHealth

_STATES = ("ready", "unconfigured", "degraded", "unavailable")


class LivingClauses(ContractBase):
    """Clauses on health, closing and event loops."""

    @clause("health.states")
    async def test_health_is_a_known_state(self, probe: Probe) -> None:
        answer = await soon(probe.health(), "health()")
        if isinstance(answer, ProviderHealth):
            answer = {"status": answer.status, "message": answer.message}
        if not isinstance(answer, Mapping):
            fail(f"health() must be a mapping or a ProviderHealth, got {type(answer).__name__}")
        status, message = answer.get("status"), answer.get("message")
        if status not in _STATES:
            fail(f"the health status must be one of {', '.join(_STATES)}, got {status!r}")
        if status not in {"ready", "degraded"}:
            fail(f"a provider that is open must be ready or degraded, got {status!r}")
        if message is not None and (not isinstance(message, str) or len(message) > 500):
            fail(f"the health message must be text of at most 500 characters, got {message!r}")

    @clause("close.once")
    async def test_closing_again_does_no_harm(self, probe: Probe) -> None:
        await soon(probe.close(), "close()")
        try:
            await soon(probe.close(), "close()")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong here
            fail(f"closing again must do no harm, it ended with {type(error).__name__}")

    @clause("close.refuses")
    async def test_closed_provider_refuses(self, probe: Probe) -> None:
        if callable(getattr(probe.provider, "close", None)):
            await probe.close()
            error = await soon(probe.refusal(probe.corpus.common_query), "a retrieval after close()")
        else:  # then the runtime is what closes
            runtime = probe.runtime()
            await runtime.close()
            error = await _error_of(runtime.search(probe.corpus.common_query, owner_id=probe.corpus.owner_id))
        if not isinstance(error, KnowledgeClosed):
            said = "an answer" if error is None else getattr(error, "code", type(error).__name__)
            fail(f"a retrieval after close() must end with knowledge_closed, got {said}")

    @clause("close.in_flight")
    async def test_closing_ends_what_is_running(self, probe: Probe) -> None:
        running = [asyncio.ensure_future(probe.outcome(probe.corpus.common_query)) for _ in range(3)]
        try:  # soon() lets the retrievals, which were there first, take their first step before close() does
            await soon(probe.close(), "close() during a retrieval")
            _, left = await asyncio.wait(running, timeout=SOON_S)
            if left:
                fail(f"{len(left)} retrievals did not end within {SOON_S:g} s after close()")
        finally:
            for task in running:
                task.cancel()

    @clause("close.alone")
    async def test_closing_one_leaves_another_working(self, probe: Probe) -> None:
        document = probe.corpus.of(probe.corpus.owner_id)[0]
        async with self._opened() as other:
            await other.find(document.question)
            await other.close()
        outcome = await probe.outcome(document.question)
        if isinstance(outcome, Exception) or not probe.holds(outcome, document):
            fail("closing another provider of the kind must not touch this one, it stopped answering")

    @clause("close.leaves_nothing")
    async def test_closed_provider_leaves_no_task_and_no_thread(self, probe: Probe) -> None:
        await probe.close()
        before = asyncio.all_tasks()
        await self._live_once()  # threads that all providers share may start here
        threads = threading.active_count()
        await self._live_once()
        await self._live_once()
        if not await _comes_true(lambda: asyncio.all_tasks() <= before):
            left = sorted(task.get_name() for task in asyncio.all_tasks() - before)
            fail(f"a closed provider must leave no task, it left {', '.join(left)}")
        if not await _comes_true(lambda: threading.active_count() < threads + 2):
            fail(f"a closed provider must leave no thread, it left {[thread.name for thread in threading.enumerate()]}")

    @clause("provider.loops")
    def test_providers_work_in_one_loop_after_another(self) -> None:
        async def live() -> None:
            async with self._opened() as probe:
                await probe.find(probe.corpus.common_query)
                await probe.health()
                await probe.close()

        run_in_own_loop(live, self.timeout_s)
        try:
            run_in_own_loop(live, self.timeout_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the first loop did not have it
            fail(f"the second event loop failed with {type(error).__name__}: {error}; keep nothing of a loop globally")

    async def _live_once(self) -> None:
        async with self._opened() as probe:
            await probe.find(probe.corpus.common_query)
            await probe.close()


async def _error_of(call: Awaitable[object]) -> KnowledgeError | None:
    try:
        await call
    except KnowledgeError as error:
        return error
    return None


async def _comes_true(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, a second at most."""
    for _ in range(100):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return condition()
