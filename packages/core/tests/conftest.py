"""What the core's tests share: the ``clause`` marker, and a loop that reports whatever asyncio would complain about."""

import asyncio
import gc

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "clause(*ids): the clauses of protocol 1 that a test proves")


@pytest.fixture
def run():
    """Run a coroutine within a bounded time; nothing may be left behind that nobody looked at."""

    def run_and_look(coroutine, *, limit_s=30.0):
        complaints = []

        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            return await asyncio.wait_for(coroutine, limit_s)

        gc.freeze()  # so that collecting costs no more than this test has made
        try:
            return asyncio.run(main())
        finally:
            gc.collect()  # a task that nobody looked at complains when it is collected
            gc.unfreeze()
            assert complaints == []

    return run_and_look
