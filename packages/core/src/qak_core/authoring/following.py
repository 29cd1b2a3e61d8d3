"""Following a signal with a vendor's call that runs on the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

from qak_core.errors import KnowledgeCancelled, KnowledgeUnavailable
from qak_core.signals import CancelSignal, wait_for_either

_T = TypeVar("_T")

_log = logging.getLogger("qak_core")


async def follow(signal: CancelSignal, call: Awaitable[_T]) -> _T:
    """Await a vendor's call until the signal ends; one that is deaf to cancellation is left behind, and its answer too.

    Raises:
        KnowledgeCancelled: the signal was cancelled.
        KnowledgeTimeout: its deadline passed.
        KnowledgeUnavailable: the call says that it was cancelled, although nobody did.
    """
    task = asyncio.ensure_future(call)
    try:
        await wait_for_either(task, signal)
        if not task.done():
            raise signal.error() or KnowledgeCancelled()
        if task.cancelled():
            raise KnowledgeUnavailable
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_look_at)


def _look_at(task: asyncio.Future[Any]) -> None:
    """Look at what a call that was given up raised, so that asyncio does not log the vendor's text."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.debug("a call that was given up failed with %s", type(error).__name__)
