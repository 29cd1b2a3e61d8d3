import asyncio
import threading

import pytest

from qak_core import (
    CancelSignal,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    ProviderHealth,
)
from qak_core.authoring import BlockingPool, ErrorTable, Lifetime

pytestmark = pytest.mark.clause("close.once", "health.states")


def lifetime(**host):
    return Lifetime(BlockingPool(1), ErrorTable({}), **host)


def test_retrieval_follows_the_callers_signal_and_leaves_nothing_with_it():
    life, signal = lifetime(), CancelSignal()
    with life.retrieval(signal) as inner:
        signal.cancel()
        assert inner.cancelled
    with life.retrieval(outer := CancelSignal()):
        pass
    assert not outer._callbacks
    assert not life._running


@pytest.mark.parametrize("by_caller", [True, False])
def test_retrieval_that_is_ended_says_who_ended_it(by_caller):
    async def main():
        life, signal = lifetime(), CancelSignal()
        with life.retrieval(signal) as inner:
            if by_caller:
                signal.cancel()
            await life.close()
            inner.raise_if_cancelled()

    with pytest.raises(KnowledgeCancelled if by_caller else KnowledgeClosed):
        asyncio.run(main())


def test_no_retrieval_begins_after_the_end_of_its_signal_or_of_the_provider():
    life = lifetime()
    with pytest.raises(KnowledgeTimeout), life.retrieval(CancelSignal(0)):
        raise AssertionError
    asyncio.run(life.close())
    with pytest.raises(KnowledgeClosed), life.retrieval(CancelSignal()):
        raise AssertionError


@pytest.mark.parametrize("blocking", [True, False])
def test_aclose_is_called_once_and_what_it_raises_is_translated(blocking):
    calls = []

    def fail():
        calls.append(1)
        raise ConnectionError("postgres://u:p@db")

    async def fail_later():
        fail()

    async def main():
        life = lifetime(aclose=fail if blocking else fail_later)
        with pytest.raises(KnowledgeUnavailable) as caught:
            await life.close()
        assert caught.value.__context__ is None
        await life.close()

    asyncio.run(main())
    assert calls == [1]


def test_health_is_asked_off_the_loop_and_is_ready_without_a_check():
    threads = []
    said = ProviderHealth(status="degraded")

    def blocking():
        threads.append(threading.current_thread())
        return said

    async def later():
        return {"status": "degraded"}

    def broken():
        raise RuntimeError("sk-planted-0123456789")

    def health(check):
        return asyncio.run(lifetime(health=check).health())

    ready = ProviderHealth(status="ready")
    assert (health(blocking), health(later), health(None), health(lambda: None)) == (
        said,
        {"status": "degraded"},
        ready,
        ready,
    )
    assert threads[0] is not threading.main_thread()
    unavailable = health(broken)
    assert unavailable.status == "unavailable"
    assert "RuntimeError" in unavailable.message
    assert "planted" not in unavailable.message


def test_closed_provider_is_unavailable():
    async def main():
        life = lifetime(health=lambda: 1 / 0)
        await life.close()
        return await life.health()

    assert asyncio.run(main()).status == "unavailable"
