import asyncio

import pytest

from qak_core import (
    CancelSignal,
    KnowledgeCancelled,
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeTimeout,
    KnowledgeUnavailable,
)
from qak_core.authoring import FanOut, fan_out, interleave

from .._providers import until

pytestmark = pytest.mark.clause("composition")


class Side:
    """One side of a fan-out: answers, fails, or waits until it is released."""

    def __init__(self, answer=(), *, error=None, waits=False, deaf=False):
        self.answer, self.error, self.waits, self.deaf = answer, error, waits or deaf, deaf
        self.released = asyncio.Event()
        self.started = self.ended = False

    async def __call__(self):
        self.started = True
        while self.waits and not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                if not self.deaf:
                    self.ended = True
                    raise
        self.ended = True
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.mark.parametrize(
    ("sides", "items"),
    [
        ([], []),
        ([[]], []),
        ([["a1", "a2", "a3"], ["b1"], ["c1", "c2"]], ["a1", "b1", "c1", "a2", "c2", "a3"]),
        ([[None, None], [0]], [None, 0, None]),
        ([("a",), ["b"]], ["a", "b"]),
    ],
)
def test_sides_are_interleaved_by_rank_in_their_order(sides, items):
    assert interleave(sides) == items


def test_all_sides_are_asked_at_once_and_merged_in_the_order_given(run):
    async def scenario():
        sides = {name: Side([f"{name}1", f"{name}2"], waits=True) for name in "abc"}
        found = asyncio.ensure_future(fan_out(sides, CancelSignal()))
        await until(lambda: all(side.started for side in sides.values()))
        for name in "cab":
            sides[name].released.set()
            await asyncio.sleep(0)
        assert await found == FanOut(items=["a1", "b1", "c1", "a2", "b2", "c2"], degraded=())

    run(scenario())


@pytest.mark.parametrize(
    "error",
    [ValueError("password=hunter2"), KnowledgeUnavailable(), asyncio.CancelledError()],
    ids=lambda it: type(it).__name__,
)
def test_a_side_that_fails_is_named_and_harms_no_other(run, error, caplog):
    found = run(fan_out({"bad": Side(error=error), "good": Side(["x"])}, CancelSignal()))
    assert (list(found.items), list(found.degraded)) == (["x"], ["bad"])
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("answer", [None, 5, {"a": 1}, object()], ids=lambda it: type(it).__name__)
def test_a_side_that_answers_something_else_is_a_side_that_fails(run, answer):
    found = run(fan_out({"odd": Side(answer), "good": Side(["x"])}, CancelSignal()))
    assert (list(found.items), list(found.degraded)) == (["x"], ["odd"])


def test_a_side_that_fails_when_it_is_called_is_named_as_well(run):
    def broken():
        raise ValueError("x")

    found = run(fan_out({"broken": broken, "not async": lambda: ["y"], "good": Side(["x"])}, CancelSignal()))
    assert (list(found.items), list(found.degraded)) == (["x"], ["broken", "not async"])


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([KnowledgeUnavailable(), ValueError("x")], KnowledgeUnavailable),
        ([ValueError("x"), KnowledgeUnavailable()], KnowledgeFailed),
        ([asyncio.CancelledError()], KnowledgeFailed),
    ],
)
def test_when_every_side_fails_the_first_ones_error_is_raised(run, errors, expected):
    async def scenario():
        with pytest.raises(expected) as caught:
            await fan_out({str(number): Side(error=error) for number, error in enumerate(errors)}, CancelSignal())
        assert caught.value.__context__ is None

    run(scenario())


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_a_late_side_is_given_up_even_if_it_does_not_listen(run, deaf, error):
    async def scenario():
        late = Side(["late"], waits=True, deaf=deaf, error=error)
        found = await fan_out({"late": late, "good": Side(["x"])}, CancelSignal(60), side_timeout_s=0.02)
        assert (list(found.items), list(found.degraded)) == (["x"], ["late"])
        late.released.set()
        await until(lambda: late.ended)

    run(scenario())


@pytest.mark.clause("runtime.deadline")
def test_punctual_sides_are_answered_before_the_signals_own_deadline(run):
    async def scenario():
        signal, late = CancelSignal(1), Side(waits=True)
        found = await fan_out({"late": late, "good": Side(["x"])}, signal)
        assert (list(found.items), list(found.degraded)) == (["x"], ["late"])

    run(scenario())


def test_when_every_side_is_late_that_is_a_timeout(run):
    async def scenario():
        with pytest.raises(KnowledgeTimeout):
            await fan_out({"a": Side(waits=True), "b": Side(waits=True)}, CancelSignal(), side_timeout_s=0.02)

    run(scenario())


@pytest.mark.clause("context.signal")
@pytest.mark.parametrize("deaf", [False, True])
def test_cancelling_the_signal_ends_all_sides(run, deaf):
    async def scenario():
        signal, sides = CancelSignal(), {name: Side(waits=True, deaf=deaf) for name in "ab"}
        found = asyncio.ensure_future(fan_out(sides, signal))
        await until(lambda: all(side.started for side in sides.values()))
        signal.cancel()
        with pytest.raises(KnowledgeCancelled):
            await found
        for side in sides.values():
            side.released.set()
        await until(lambda: all(side.ended for side in sides.values()))

    run(scenario())


def test_cancelling_the_task_ends_all_sides(run):
    async def scenario():
        sides = {name: Side(waits=True) for name in "ab"}
        found = asyncio.ensure_future(fan_out(sides, CancelSignal()))
        await until(lambda: all(side.started for side in sides.values()))
        found.cancel()
        with pytest.raises(asyncio.CancelledError):
            await found
        await until(lambda: all(side.ended for side in sides.values()))

    run(scenario())


def test_a_signal_that_has_ended_calls_no_side(run):
    async def scenario():
        side = Side(["x"])
        with pytest.raises(KnowledgeError):
            await fan_out({"a": side}, CancelSignal(0))
        assert not side.started

    run(scenario())


def test_no_more_sides_run_at_once_than_allowed(run):
    async def scenario():
        sides = {str(number): Side([number], waits=True) for number in range(6)}
        found = asyncio.ensure_future(fan_out(sides, CancelSignal(), max_concurrent=2))
        for number in range(6):
            await until(lambda number=number: sides[str(number)].started)
            await asyncio.sleep(0)
            assert sum(side.started and not side.ended for side in sides.values()) <= 2
            sides[str(number)].released.set()
        assert list((await found).items) == list(range(6))

    run(scenario())


def test_without_sides_nothing_is_found(run):
    assert run(fan_out({}, CancelSignal())) == FanOut(items=[], degraded=())
