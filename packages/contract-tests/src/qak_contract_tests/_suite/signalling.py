"""How long a provider works, and what it does meanwhile (protocol clauses ``context.signal`` and section 3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle, islice

from qak_contract_tests._hits import Hit
from qak_contract_tests._probe import SOON_S, Probe, soon
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_contract_tests.corpus import Document
from qak_core import CancelSignal

_MOMENTS_S = (0.0, 0.0, 0.001, 0.003, 0.01)
_MAX_GAP_S = 0.1


class SignallingClauses(ContractBase):
    """Clauses on deadlines, cancellation and concurrency."""

    @clause("context.signal.cancelled")
    async def test_cancelled_signal_ends_a_retrieval_at_once(self, probe: Probe) -> None:
        signal = CancelSignal(60.0)
        signal.cancel()
        call = probe.refusal(probe.corpus.common_query, signal=signal)
        _check_code(await soon(call, "a cancelled retrieval"), "knowledge_cancelled")

    @clause("context.signal.late")
    async def test_passed_deadline_ends_a_retrieval_at_once(self, probe: Probe) -> None:
        call = probe.refusal(probe.corpus.common_query, signal=CancelSignal(0.0))
        _check_code(await soon(call, "a late retrieval"), "knowledge_timeout")

    @clause("context.signal.during")
    async def test_cancelling_ends_a_running_retrieval(self, probe: Probe) -> None:
        document = probe.corpus.of(probe.corpus.owner_id)[0]
        for moment_s in _MOMENTS_S:
            signal = CancelSignal(60.0)
            task = asyncio.ensure_future(probe.outcome(document.question, signal=signal))
            await asyncio.sleep(moment_s)
            signal.cancel()
            outcome = await soon(task, "a retrieval whose signal was cancelled")
            _check_end(probe, outcome, document, "knowledge_cancelled")

    @clause("context.signal.deadline")
    async def test_deadline_ends_a_running_retrieval(self, probe: Probe) -> None:
        document = probe.corpus.of(probe.corpus.owner_id)[0]
        for timeout_s in (*_MOMENTS_S[2:], 0.03):
            call = probe.outcome(document.question, signal=CancelSignal(timeout_s))
            outcome = await soon(call, f"a retrieval with {timeout_s:g} s to go")
            _check_end(probe, outcome, document, "knowledge_timeout")

    @clause("context.signal.task")
    async def test_cancelled_task_ends_as_cancelled(self, probe: Probe) -> None:
        document = probe.corpus.of(probe.corpus.owner_id)[0]
        for moment_s in _MOMENTS_S:
            task = asyncio.ensure_future(probe.find(document.question))
            await asyncio.sleep(moment_s)
            task.cancel()
            await asyncio.wait({task}, timeout=SOON_S)
            if not task.done():
                fail(f"a retrieval whose task was cancelled did not end within {SOON_S:g} s")
            if not task.cancelled() and (task.exception() or not probe.holds(task.result(), document)):
                fail("a retrieval whose task is cancelled must let CancelledError pass, it ended otherwise")

    @clause("retrieve.concurrent")
    async def test_fifty_retrievals_at_once_are_each_right(self, probe: Probe) -> None:
        corpus = probe.corpus
        turns = zip(cycle(corpus.of(corpus.owner_id)), cycle(corpus.of(corpus.other_owner_id)), strict=True)
        documents = [document for pair in islice(turns, 25) for document in pair]
        answers = await asyncio.gather(
            *(probe.outcome(document.question, owner_id=document.owner_id) for document in documents)
        )
        wrong = [
            document
            for document, answer in zip(documents, answers, strict=True)
            if isinstance(answer, Exception) or not probe.holds(answer, document)
        ]
        if wrong:
            fail(f"{len(wrong)} of 50 retrievals at once went wrong, the first of them {wrong[0].question!r}")

    @clause("retrieve.nonblocking")
    async def test_event_loop_is_never_held(self, probe: Probe) -> None:
        gaps = []
        for _ in range(5):  # a busy machine may hold the loop too, a blocking provider does it every time
            async with self._opened() as fresh, _longest_gap() as gap:
                await fresh.outcome(fresh.corpus.common_query, top_k=8)
                await fresh.outcome("漢" * 250 + "long question " * 17)
                await fresh.health()
                await fresh.close()
            gaps.append(max(gap))
            if gaps[-1] <= _MAX_GAP_S:
                return
        fail(
            f"retrieve, health or close held the event loop for {min(gaps) * 1000:.0f} ms, expected at most "
            f"{_MAX_GAP_S * 1000:.0f}: run blocking calls by run_blocking() of the core"
        )


@asynccontextmanager
async def _longest_gap() -> AsyncIterator[list[float]]:
    """Collect how long the event loop kept a heartbeat waiting, in seconds."""
    gaps: list[float] = []
    last = time.perf_counter()

    async def beat() -> None:
        nonlocal last
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    heartbeat = asyncio.ensure_future(beat())
    try:
        yield gaps
    finally:
        heartbeat.cancel()
        gaps.append(time.perf_counter() - last)


def _check_code(error: Exception | None, code: str) -> None:
    if getattr(error, "code", None) != code:
        said = "an answer" if error is None else getattr(error, "code", type(error).__name__)
        fail(f"expected {code} at once, got {said}; call context.signal.raise_if_cancelled() before anything else")


def _check_end(probe: Probe, outcome: list[Hit] | Exception, document: Document, code: str) -> None:
    if isinstance(outcome, Exception):
        if getattr(outcome, "code", None) != code:
            fail(f"expected the answer or {code}, got {getattr(outcome, 'code', type(outcome).__name__)}")
    elif not probe.holds(outcome, document):
        fail(f"expected the answer or {code}, got {len(outcome)} other results: an end is not an empty answer")
