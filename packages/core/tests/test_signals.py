import asyncio
import gc
import math
import threading
import weakref

import pytest

from qak_core import CancelSignal, KnowledgeCancelled, KnowledgeTimeout

from ._providers import until

pytestmark = pytest.mark.clause("context.signal")


def test_a_new_signal_lets_work_go_on():
    signal = CancelSignal()
    assert not signal.cancelled
    assert not signal.timed_out
    assert signal.remaining() == math.inf
    assert signal.error() is None
    signal.raise_if_cancelled()


def test_a_cancelled_signal_stops_work_at_once():
    signal = CancelSignal(100)
    signal.cancel()
    signal.cancel()
    assert signal.cancelled
    assert not signal.timed_out
    assert signal.remaining() == 0.0
    with pytest.raises(KnowledgeCancelled):
        signal.raise_if_cancelled()


@pytest.mark.parametrize("timeout_s", [0, -1, -math.inf])
def test_a_signal_past_its_deadline_says_so(timeout_s):
    signal = CancelSignal(timeout_s)
    assert signal.cancelled
    assert signal.timed_out
    assert signal.remaining() == 0.0
    with pytest.raises(KnowledgeTimeout):
        signal.raise_if_cancelled()


def test_cancelling_outweighs_a_deadline_that_has_passed():
    signal = CancelSignal(0)
    signal.cancel()
    assert not signal.timed_out
    assert isinstance(signal.error(), KnowledgeCancelled)


@pytest.mark.parametrize("timeout_s", [math.nan, "1", True, [1], 1j])
def test_a_deadline_must_be_a_number_of_seconds(timeout_s):
    with pytest.raises(ValueError, match="timeout_s"):
        CancelSignal(timeout_s)


@pytest.mark.parametrize("timeout_s", [math.inf, 1e18])
def test_a_deadline_may_be_as_far_as_it_likes(run, timeout_s):
    signal = CancelSignal(timeout_s)

    async def scenario():
        waiting = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0)
        signal.cancel()
        await waiting

    run(scenario())
    assert signal.remaining() == 0.0


def test_a_child_ends_with_its_parent_and_not_the_other_way_round():
    parent = CancelSignal()
    first, second = parent.child(), parent.child()
    first.cancel()
    assert (parent.cancelled, first.cancelled, second.cancelled) == (False, True, False)
    parent.cancel()
    assert second.cancelled
    assert parent.child().cancelled


@pytest.mark.parametrize(("parent_s", "child_s"), [(0.0, None), (0.0, 100), (100, 0.0), (None, 0.0)])
def test_a_child_ends_at_the_earlier_of_two_deadlines(parent_s, child_s):
    assert CancelSignal(parent_s).child(child_s).timed_out


def test_a_child_has_no_more_time_than_its_parent():
    assert CancelSignal(50).child(100).remaining() <= 50


def test_a_detached_child_leaves_nothing_behind_in_a_parent_that_lives_on():
    class Listener:
        def hear(self):
            raise AssertionError("nobody may call a listener that is gone")

    parent, gone = CancelSignal(), []
    for _ in range(100):
        listener = Listener()
        gone.append(weakref.ref(listener))
        child = parent.child()
        child.on_cancel(listener.hear)
        child.detach()
        child.detach()
    del child, listener
    gc.collect()
    assert [reference() for reference in gone] == [None] * 100
    parent.cancel()


def test_a_callback_is_called_once_and_at_once_if_it_comes_late():
    signal, calls = CancelSignal(), []
    signal.on_cancel(lambda: calls.append("early"))
    forget = signal.on_cancel(lambda: calls.append("forgotten"))
    forget()
    signal.cancel()
    signal.cancel()
    signal.on_cancel(lambda: calls.append("late"))
    forget()
    assert calls == ["early", "late"]


@pytest.mark.clause("runtime.errors")
def test_a_callback_that_raises_harms_neither_the_canceller_nor_the_other_listeners(caplog):
    signal, calls = CancelSignal(), []

    def fail():
        raise RuntimeError("password=hunter2")

    signal.on_cancel(fail)
    signal.on_cancel(lambda: calls.append("called"))
    child = signal.child()
    signal.cancel()
    signal.on_cancel(fail)
    assert calls == ["called"]
    assert child.cancelled
    assert "hunter2" not in caplog.text


def test_waiting_ends_by_the_deadline(run):
    signal = CancelSignal(0.02)
    run(signal.wait())
    assert signal.timed_out


def test_waiting_ends_when_another_thread_cancels(run):
    signal = CancelSignal(60)

    async def scenario():
        waiters = [asyncio.ensure_future(signal.child().wait()) for _ in range(3)]
        waiters.append(asyncio.ensure_future(signal.wait()))
        await asyncio.sleep(0)
        threading.Thread(target=signal.cancel).start()
        await asyncio.gather(*waiters)

    run(scenario())
    assert signal.cancelled


def test_waiting_returns_at_once_when_the_signal_has_ended(run):
    cancelled = CancelSignal()
    cancelled.cancel()
    run(cancelled.wait())
    run(CancelSignal(0).wait())


def test_a_waiter_that_gives_up_is_forgotten(run):
    signal = CancelSignal()

    async def scenario():
        waiter = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0)
        assert len(signal._callbacks) == 1
        waiter.cancel()
        await asyncio.wait({waiter})
        assert signal._callbacks == {}

    run(scenario())


def test_cancelling_is_harmless_when_the_loop_of_a_waiter_is_closed():
    signal = CancelSignal()
    loop = asyncio.new_event_loop()
    waiter = loop.create_task(signal.wait())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    signal.cancel()
    assert signal.cancelled
    waiter._log_destroy_pending = False
    del waiter


def test_threads_may_use_one_signal_together():
    for _ in range(20):
        signal, heard, start = CancelSignal(), [], threading.Barrier(9)

        def listen(signal=signal, heard=heard, start=start):
            start.wait()
            for _ in range(50):
                signal.on_cancel(lambda: heard.append(1))
                signal.child().detach()

        def cancel(signal=signal, start=start):
            start.wait()
            signal.cancel()

        threads = [threading.Thread(target=listen) for _ in range(8)] + [threading.Thread(target=cancel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(heard) == 400


def test_a_thread_can_poll_the_signal_while_the_loop_waits_on_it(run):
    signal, polled = CancelSignal(60), threading.Event()

    def work():
        while signal.remaining() > 0:
            polled.wait(0.001)
        polled.set()

    async def scenario():
        thread = threading.Thread(target=work)
        thread.start()
        signal.cancel()
        await signal.wait()
        await until(polled.is_set)
        thread.join()

    run(scenario())


def test_a_signal_shows_how_it_stands():
    signal = CancelSignal()
    assert "remaining" in repr(signal)
    signal.cancel()
    assert "cancelled" in repr(signal)
