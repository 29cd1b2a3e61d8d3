import asyncio

import pytest

from qak_core import CancelSignal, KnowledgeCancelled, KnowledgeTimeout, KnowledgeUnavailable
from qak_core.authoring import follow

pytestmark = pytest.mark.clause("context.signal")


async def value(result):
    return result


async def hang():
    await asyncio.Event().wait()


def test_call_that_is_in_time_gives_its_value_or_what_it_raises():
    async def fail():
        raise ValueError("of the vendor")

    assert asyncio.run(follow(CancelSignal(), value(5))) == 5
    with pytest.raises(ValueError, match="of the vendor"):
        asyncio.run(follow(CancelSignal(), fail()))


def test_call_ends_with_the_signal():
    async def main():
        signal = CancelSignal()
        asyncio.get_running_loop().call_soon(signal.cancel)
        await follow(signal, hang())

    with pytest.raises(KnowledgeCancelled):
        asyncio.run(main())
    with pytest.raises(KnowledgeTimeout):
        asyncio.run(follow(CancelSignal(0.01), hang()))


def test_call_that_says_it_was_cancelled_although_nobody_did_has_failed():
    async def give_up():
        raise asyncio.CancelledError

    with pytest.raises(KnowledgeUnavailable):
        asyncio.run(follow(CancelSignal(), give_up()))


def test_call_that_is_deaf_is_left_behind_and_its_late_error_is_looked_at():
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        go_on, ended = asyncio.Event(), asyncio.Event()

        async def deaf():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                await go_on.wait()
            ended.set()
            raise RuntimeError("too late")

        with pytest.raises(KnowledgeTimeout):
            await follow(CancelSignal(0.01), deaf())
        go_on.set()
        await ended.wait()

    asyncio.run(main())
    assert complaints == []


def test_cancelling_the_task_that_waits_cancels_the_call():
    async def main():
        cancelled, started = asyncio.Event(), asyncio.Event()

        async def call():
            started.set()
            try:
                await hang()
            finally:
                cancelled.set()

        task = asyncio.ensure_future(follow(CancelSignal(), call()))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(main())
