"""What every adapter around a framework is measured by: its own cost, blocking retrievers, and its import."""

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from measure import Figure, paired, percentile

from qak_core import RetrievalContext, RetrievalRequest

BLOCKED_S, WORKERS, CALLS = 0.05, 8, 50
REQUEST, CONTEXT = RetrievalRequest(query="lamp"), RetrievalContext(owner_id="bench")


def overhead(name: str, provider: Any, bare: Callable[[], Awaitable[Any]]) -> Figure:
    """Compare a retrieval with the bare call; one that blocks is to be given in a thread, as every program has to."""

    async def measure() -> tuple[float, float]:
        assert (await provider.retrieve(REQUEST, CONTEXT)).results
        calls: list[Callable[[], Awaitable[Any]]] = [lambda: provider.retrieve(REQUEST, CONTEXT), bare]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(300):
            for call, taken in zip(calls, times, strict=True):
                start = time.perf_counter()
                await call()
                taken.append(time.perf_counter() - start)
        await provider.close()
        return percentile(times[0], 10), percentile(times[1], 10)  # a busy machine is not what is measured

    ours, vendors = asyncio.run(measure())
    return Figure(
        name=name,
        seconds=ours,
        against="the bare call",
        against_seconds=vendors,
        limit="10 % or 0.3 ms more",
        within=ours - vendors <= max(0.1 * vendors, 0.0003),
    )


def blocking_retrievals(framework: str, make: Callable[[], Any]) -> list[Figure]:
    """Ask a provider with ``WORKERS`` threads around a retriever that blocks ``BLOCKED_S``, ``CALLS`` times at once."""

    async def measure() -> tuple[float, float]:
        provider, gaps = make(), [0.0]
        await provider.retrieve(REQUEST, CONTEXT)

        async def beat() -> None:
            last = time.perf_counter()
            while True:
                await asyncio.sleep(0.002)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

        heart = asyncio.ensure_future(beat())
        start = time.perf_counter()
        await asyncio.gather(*(provider.retrieve(REQUEST, CONTEXT) for _ in range(CALLS)))
        wall = time.perf_counter() - start
        heart.cancel()
        await provider.close()
        return wall, max(gaps)

    runs = [asyncio.run(measure()) for _ in range(3)]
    wall, gap = (min(column) for column in zip(*runs, strict=True))
    rounds = math.ceil(CALLS / WORKERS)
    return [
        Figure(
            name=f"{framework}: {CALLS} retrievals at once that block {BLOCKED_S * 1000:.0f} ms",
            seconds=wall,
            against=f"{rounds} rounds of {WORKERS} threads",
            against_seconds=rounds * BLOCKED_S,
            limit="1.25 x",
            within=wall <= 1.25 * rounds * BLOCKED_S,
        ),
        Figure(
            name=f"{framework}: longest gap of the event loop meanwhile", seconds=gap, limit="50 ms", within=gap < 0.05
        ),
    ]


def import_of(package: str) -> Figure:
    """Compare the import of an adapter's package with that of the core alone."""
    ours, core = paired(lambda: _python(f"import qak_core, {package}"), lambda: _python("import qak_core"), rounds=15)
    return Figure(
        name=f"python -c 'import qak_core, {package}'",
        seconds=ours,
        against="python -c 'import qak_core'",
        against_seconds=core,
        limit="25 ms more",
        within=ours - core <= 0.025,
    )


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
