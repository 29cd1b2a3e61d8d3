import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref

import pytest

from qak_core import CancelSignal, KnowledgeCancelled, KnowledgeClosed, KnowledgeTimeout
from qak_core.authoring import BlockingPool, run_blocking

from .._providers import until

pytestmark = pytest.mark.clause("context.signal", "runtime.deadline")

PATIENCE_S = 20


class Gate:
    """Blocks threads until it is opened; counts how many were inside at once."""

    def __init__(self):
        self.opened = threading.Event()
        self.lock = threading.Lock()
        self.inside = self.most = self.entered = 0

    def pass_through(self, value=None):
        with self.lock:
            self.inside += 1
            self.entered += 1
            self.most = max(self.most, self.inside)
        assert self.opened.wait(PATIENCE_S)
        with self.lock:
            self.inside -= 1
        return value


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.opened.set()


def test_a_call_runs_in_a_thread_with_its_arguments(run):
    def call(*args, **kwargs):
        return args, kwargs, threading.current_thread()

    args, kwargs, thread = run(BlockingPool(name="vendor").run(CancelSignal(), call, 1, b=2))
    assert (args, kwargs) == ((1,), {"b": 2})
    assert thread is not threading.main_thread()
    assert thread.daemon
    assert thread.name.startswith("vendor")


@pytest.mark.parametrize("max_workers", [0, -1])
def test_a_pool_needs_a_thread(max_workers):
    with pytest.raises(ValueError, match="max_workers"):
        BlockingPool(max_workers)


def test_a_pool_has_no_thread_before_it_is_used():
    before = threading.active_count()
    BlockingPool(8)
    assert threading.active_count() == before


@pytest.mark.parametrize("max_workers", [1, 3])
def test_no_more_calls_run_at_once_than_the_pool_has_threads(run, gate, max_workers):
    async def scenario():
        pool = BlockingPool(max_workers)
        calls = [asyncio.ensure_future(pool.run(CancelSignal(), gate.pass_through, number)) for number in range(12)]
        await until(lambda: gate.inside == max_workers)
        gate.opened.set()
        assert await asyncio.gather(*calls) == list(range(12))

    run(scenario())
    assert gate.most == max_workers


def test_calls_that_follow_each_other_share_one_thread(run):
    async def scenario():
        pool, threads = BlockingPool(4), set()
        for _ in range(500):
            threads.add(await pool.run(CancelSignal(), threading.current_thread))
        return threads

    assert len(run(scenario())) == 1


@pytest.mark.parametrize("ending", ["cancel", "deadline", "task"])
def test_a_queued_call_is_not_started_once_its_signal_has_ended(run, gate, ending):
    async def scenario():
        pool, started = BlockingPool(1), []
        first = asyncio.ensure_future(pool.run(CancelSignal(), gate.pass_through, "first"))
        await until(lambda: gate.inside == 1)
        signal = CancelSignal(0.02 if ending == "deadline" else None)
        queued = asyncio.ensure_future(pool.run(signal, started.append, 1))
        await asyncio.sleep(0)
        if ending == "cancel":
            signal.cancel()
        if ending == "task":
            queued.cancel()
        expected = {"cancel": KnowledgeCancelled, "deadline": KnowledgeTimeout, "task": asyncio.CancelledError}[ending]
        with pytest.raises(expected):
            await queued
        gate.opened.set()
        assert await first == "first"
        assert await pool.run(CancelSignal(), lambda: "after") == "after"
        assert started == []

    run(scenario())


@pytest.mark.parametrize(
    ("signal", "expected"), [(CancelSignal(0), KnowledgeTimeout), (CancelSignal(), KnowledgeCancelled)]
)
def test_a_signal_that_has_ended_starts_nothing(run, signal, expected):
    if expected is KnowledgeCancelled:
        signal.cancel()
    started = []
    with pytest.raises(expected):
        run(BlockingPool().run(signal, started.append, 1))
    assert started == []


def test_a_call_that_is_given_up_keeps_its_thread_and_its_answer_is_dropped(run, gate):
    async def scenario():
        pool = BlockingPool(1)
        with pytest.raises(KnowledgeTimeout):
            await pool.run(CancelSignal(0.02), gate.pass_through)
        with pytest.raises(KnowledgeTimeout):
            await pool.run(CancelSignal(0.02), gate.pass_through)
        assert gate.entered == 1
        gate.opened.set()
        assert await pool.run(CancelSignal(), lambda: "next") == "next"

    run(scenario())


class Own(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [ValueError("x"), Own("x"), OSError(5, "x"), KeyError("x")], ids=lambda it: type(it).__name__
)
def test_what_a_call_raises_is_raised_to_whoever_awaits_it(run, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        run(BlockingPool().run(CancelSignal(), fail))
    assert caught.value is error


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration])
def test_a_call_that_stops_iteration_fails_at_once(run, error):
    def fail():
        raise error

    with pytest.raises((RuntimeError, StopAsyncIteration)):
        run(BlockingPool().run(CancelSignal(), fail), limit_s=PATIENCE_S)


def test_an_error_that_comes_after_the_call_was_given_up_is_swallowed(run, gate):
    def fail():
        gate.pass_through()
        raise ValueError("late")

    async def scenario():
        pool = BlockingPool(1)
        with pytest.raises(KnowledgeTimeout):
            await pool.run(CancelSignal(0.02), fail)
        gate.opened.set()
        await pool.run(CancelSignal(), lambda: None)

    run(scenario())


def test_a_closed_pool_takes_no_more_calls_and_refuses_those_that_wait(run, gate):
    async def scenario():
        pool, started = BlockingPool(1), []
        first = asyncio.ensure_future(pool.run(CancelSignal(), gate.pass_through, "first"))
        await until(lambda: gate.inside == 1)
        queued = [asyncio.ensure_future(pool.run(CancelSignal(), started.append, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        pool.close()
        pool.close()
        outcomes = await asyncio.gather(*queued, return_exceptions=True)  # although the vendor still hangs
        assert [type(outcome) for outcome in outcomes] == [KnowledgeClosed] * 3
        with pytest.raises(KnowledgeClosed):
            await pool.run(CancelSignal(), started.append, 1)
        gate.opened.set()
        assert await first == "first"
        assert started == []

    run(scenario())


def test_the_threads_of_a_closed_pool_end(run):
    async def scenario():
        pool = BlockingPool(3, name="ending")
        barrier = threading.Barrier(3)
        await asyncio.gather(*(pool.run(CancelSignal(), barrier.wait, PATIENCE_S) for _ in range(3)))
        pool.close()
        await until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("ending")])

    run(scenario())


def test_an_idle_thread_keeps_no_answer_alive(run):
    class Answer:
        pass

    async def scenario():
        pool = BlockingPool(1)
        gone = weakref.ref(await pool.run(CancelSignal(), Answer))
        await pool.run(CancelSignal(), int)
        gc.collect()
        assert gone() is None

    run(scenario())


def test_context_variables_reach_the_call(run):
    variable = contextvars.ContextVar("variable", default="unset")

    async def ask(pool, value):
        variable.set(value)
        return await pool.run(CancelSignal(), variable.get)

    async def scenario():
        pool = BlockingPool(2)
        return await asyncio.gather(*(asyncio.create_task(ask(pool, number)) for number in range(10)))

    assert run(scenario()) == list(range(10))


def test_the_signal_can_be_polled_from_the_call(run):
    stopped = threading.Event()

    async def scenario():
        signal = CancelSignal(0.03)

        def work():
            while signal.remaining() > 0:
                stopped.wait(0.001)
            stopped.set()

        with pytest.raises(KnowledgeTimeout):
            await BlockingPool().run(signal, lambda: (work(), threading.Event().wait(0.05)))
        await until(stopped.is_set)

    run(scenario())


def test_run_blocking_shares_its_threads_among_all_loops(run):
    names = {run(run_blocking(CancelSignal(), lambda: threading.current_thread().name)) for _ in range(3)}
    assert all(name.startswith("qak-shared") for name in names)


def test_the_loop_goes_on_while_a_call_blocks(run, gate):
    async def scenario():
        call = asyncio.ensure_future(BlockingPool(1).run(CancelSignal(), gate.pass_through, "done"))
        await until(lambda: gate.inside == 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not call.done()
        gate.opened.set()
        assert await call == "done"

    run(scenario())


@pytest.mark.clause("close.once")
def test_a_vendor_that_hangs_does_not_keep_the_interpreter_alive():
    code = """
import asyncio, threading
from qak_core import CancelSignal, KnowledgeTimeout
from qak_core.authoring import BlockingPool, run_blocking

async def main():
    for call in (BlockingPool(2).run, run_blocking):
        try:
            await call(CancelSignal(0.05), threading.Event().wait)
        except KnowledgeTimeout:
            print("timeout")

asyncio.run(main())
print("over")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["timeout", "timeout", "over"], "")
