"""The deadline and the cancellation of one retrieval, in one object."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from qak_core.errors import KnowledgeCancelled, KnowledgeError, KnowledgeTimeout

_log = logging.getLogger("qak_core")


class CancelSignal:
    """Tells a provider how long it may still work, and when to stop (clause ``context.signal``).

    Thread-safe: a blocking vendor call in a worker thread may poll it while the event loop waits on it. A child made
    with :meth:`child` ends no later than its parent and can be cancelled alone.
    """

    __slots__ = ("_callbacks", "_cancelled", "_deadline", "_lock")

    def __init__(self, timeout_s: float | None = None) -> None:
        """Start the clock.

        Args:
            timeout_s: seconds from now until the deadline; ``None`` for no deadline.

        Raises:
            ValueError: ``timeout_s`` is not a number (NaN or another type).
        """
        if timeout_s is not None and (isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float)):
            raise ValueError(f"timeout_s must be seconds or None, got {type(timeout_s).__name__}")
        if timeout_s is not None and math.isnan(timeout_s):
            raise ValueError("timeout_s must be seconds or None, got NaN")
        self._deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._cancelled = False
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether work should stop: somebody cancelled, or the deadline has passed."""
        return self._cancelled or time.monotonic() >= self._deadline

    @property
    def timed_out(self) -> bool:
        """Whether work should stop because of the deadline alone."""
        return not self._cancelled and time.monotonic() >= self._deadline

    def remaining(self) -> float:
        """Return the seconds left: 0.0 once cancelled or late, ``math.inf`` without a deadline."""
        return 0.0 if self._cancelled else max(0.0, self._deadline - time.monotonic())

    def error(self) -> KnowledgeError | None:
        """Return the error this signal stands for now, or ``None`` while work may go on."""
        if self._cancelled:
            return KnowledgeCancelled()
        return KnowledgeTimeout() if self.cancelled else None

    def raise_if_cancelled(self) -> None:
        """Raise once work should stop.

        Raises:
            KnowledgeCancelled: somebody called :meth:`cancel`.
            KnowledgeTimeout: the deadline passed.
        """
        if (error := self.error()) is not None:
            raise error

    def cancel(self) -> None:
        """Ask for the work to stop; may be called from any thread, and again."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            _run(callback)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` once when :meth:`cancel` is called, at once if it has been.

        The deadline alone does not call it. ``callback`` runs in the cancelling thread and must be quick; what it
        raises is logged and harms nobody else.

        Returns:
            A function that takes the callback back; calling it late or twice is harmless.
        """
        key = object()
        with self._lock:
            if not self._cancelled:
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        _run(callback)
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def child(self, timeout_s: float | None = None) -> ChildSignal:
        """Return a signal that also ends with this one, and ``timeout_s`` seconds from now at the latest."""
        return ChildSignal(self, timeout_s)

    async def wait(self) -> None:
        """Return as soon as work should stop; without deadline and cancellation, never."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake_from_any_thread() -> None:
            with suppress(RuntimeError):  # the loop may be closed by then: nobody is left to wake
                loop.call_soon_threadsafe(wake)

        forget = self.on_cancel(wake_from_any_thread)
        # The loop's timer may fire a clock tick early, so look again until the deadline has really passed.
        try:
            while not self.cancelled:
                remaining = self.remaining()
                timer = None if remaining == math.inf else loop.call_later(remaining, wake)
                try:
                    await woken
                finally:
                    if timer is not None:
                        timer.cancel()
                if not self.cancelled:
                    woken = loop.create_future()
        finally:
            forget()

    def __repr__(self) -> str:
        if self._cancelled:
            return "CancelSignal(cancelled)"
        return f"CancelSignal(remaining={self.remaining():.3f}s)"


class ChildSignal(CancelSignal):
    """A signal bounded by its parent; :meth:`detach` it when the work is over."""

    __slots__ = ("detach",)

    def __init__(self, parent: CancelSignal, timeout_s: float | None = None) -> None:
        super().__init__(timeout_s)
        self._deadline = min(self._deadline, parent._deadline)
        self.detach = parent.on_cancel(self.cancel)
        """Forget the parent, so that a long-lived parent does not keep finished children."""


async def wait_for_either(future: asyncio.Future[Any], signal: CancelSignal) -> None:
    """Return as soon as ``future`` is done or work should stop; it is neither read nor cancelled."""
    ended = asyncio.ensure_future(signal.wait())
    try:
        await asyncio.wait({future, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()


def _run(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception as error:  # noqa: BLE001 - whoever cancels is not to suffer from those who listen
        _log.warning("a cancellation callback raised %s", type(error).__name__)
