"""Asking several knowledge bases at once, and merging what they say fairly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from qak_core.errors import KnowledgeError, KnowledgeFailed, KnowledgeInvalidResponse, KnowledgeTimeout
from qak_core.signals import CancelSignal, wait_for_either

_T = TypeVar("_T")
_NOTHING = object()
_SHARE_OF_REMAINING = 0.9  # leaves time to answer with what the punctual sides found

_log = logging.getLogger("qak_core")


@dataclass(frozen=True, kw_only=True, slots=True)
class FanOut(Generic[_T]):
    """What several sides found together.

    Attributes:
        items: interleaved by rank, in the order of the sides.
        degraded: names of the sides that failed or were too late.
    """

    items: Sequence[_T]
    degraded: Sequence[str]


async def fan_out(
    calls: Mapping[str, Callable[[], Awaitable[Sequence[_T]]]],
    signal: CancelSignal,
    *,
    max_concurrent: int = 8,
    side_timeout_s: float | None = None,
) -> FanOut[_T]:
    """Run one call a side and interleave the results by rank.

    Scores of different sides are not comparable, so the ranks decide and no side can starve another. A side that fails
    or is late, even one that ignores cancellation, is named in ``degraded``; only when all fail is that an error.

    Args:
        calls: side name to the function that starts its retrieval.
        signal: ends all of them.
        max_concurrent: sides in flight at once.
        side_timeout_s: seconds for a side, at most (and by default) nine tenths of what the signal has left.

    Raises:
        KnowledgeError: the signal's, when it ended; else, when every side failed, the first side's.
    """
    if not calls:
        return FanOut(items=[], degraded=())
    gate = asyncio.Semaphore(max_concurrent)

    async def run(call: Callable[[], Awaitable[Sequence[_T]]]) -> Sequence[_T]:
        async with gate:
            signal.raise_if_cancelled()
            found = await call()
        if not isinstance(found, Sequence):
            raise KnowledgeInvalidResponse
        return found

    tasks = {name: asyncio.ensure_future(run(call)) for name, call in calls.items()}
    for task in tasks.values():
        task.add_done_callback(_look_at)
    share_s = _SHARE_OF_REMAINING * signal.remaining()
    try:
        await _wait(tasks.values(), signal, share_s if side_timeout_s is None else min(share_s, side_timeout_s))
    finally:
        punctual = {name: task for name, task in tasks.items() if task.done()}
        for task in tasks.values():
            task.cancel()
    signal.raise_if_cancelled()
    errors = {name: error for name in tasks if (error := _error(punctual.get(name))) is not None}
    if errors and len(errors) == len(tasks):
        raise next(iter(errors.values()))
    found = [task.result() for name, task in punctual.items() if name not in errors]
    return FanOut(items=interleave(found), degraded=tuple(errors))


def interleave(sides: Iterable[Sequence[_T]]) -> list[_T]:
    """Return the first items of all sides, then the second ones, and so on."""
    return [item for rank in zip_longest(*sides, fillvalue=_NOTHING) for item in rank if item is not _NOTHING]  # type: ignore[misc]


async def _wait(tasks: Iterable[asyncio.Task[Any]], signal: CancelSignal, timeout_s: float) -> None:
    """Wait until all tasks are done, the time is over or the signal ends."""
    everything = asyncio.ensure_future(asyncio.wait({*tasks}, timeout=None if timeout_s == float("inf") else timeout_s))
    try:
        await wait_for_either(everything, signal)
    finally:
        everything.cancel()


def _error(task: asyncio.Task[Any] | None) -> KnowledgeError | None:
    """Return why a side gave nothing, as an error of the protocol."""
    if task is None:
        return KnowledgeTimeout()
    error = None if task.cancelled() else task.exception()
    if isinstance(error, KnowledgeError):
        return error
    return KnowledgeFailed() if task.cancelled() or error is not None else None


def _look_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.debug("a side failed with %s", type(error).__name__)
