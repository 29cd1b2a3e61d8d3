"""Calling a blocking vendor without blocking the event loop, or its default pool."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from qak_core.errors import KnowledgeClosed
from qak_core.signals import CancelSignal, wait_for_either

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SHARED_WORKERS = 8


class BlockingPool:
    """An adapter's own bounded threads.

    Not the event loop's default pool: names are resolved there, so a slow vendor must not fill it. Not a
    ``ThreadPoolExecutor``: the interpreter waits for its threads at exit, so a hanging vendor would keep the gateway
    from ending; these are daemon threads. They start when first needed. A thread cannot be stopped: a call that is
    given up keeps its thread until the vendor returns, and what it returns is dropped.
    """

    def __init__(self, max_workers: int = 4, *, name: str = "qak") -> None:
        """Create the pool, without a thread yet.

        Args:
            max_workers: threads at most; further calls wait in order.
            name: of the threads.
        """
        if max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, got {max_workers!r}")
        self._max_workers = max_workers
        self._name = name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = 0  # calls submitted and not yet finished
        self._closed = False

    async def run(self, signal: CancelSignal, fn: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run ``fn`` in a thread and return its value, or raise as soon as the signal ends.

        ``fn`` is not started at all if the signal ends while it waits for a thread.

        Raises:
            KnowledgeCancelled: the signal was cancelled.
            KnowledgeTimeout: its deadline passed.
            KnowledgeClosed: the pool is closed.
        """
        signal.raise_if_cancelled()
        context = contextvars.copy_context()
        future = self._submit(partial(context.run, partial(fn, *args, **kwargs)))
        wrapped = asyncio.wrap_future(future)
        try:
            await wait_for_either(wrapped, signal)
            if wrapped.done():
                return wrapped.result()
            raise signal.error() or KnowledgeClosed()
        finally:
            wrapped.cancel()  # cancels the call too, if no thread has taken it yet

    def close(self) -> None:
        """Take no more calls and refuse those that wait; does not wait for a vendor that is still busy."""
        with self._lock:
            self._closed = True
            while True:
                try:
                    item = self._calls.get_nowait()
                except Empty:
                    break
                if item is not None and item[0].set_running_or_notify_cancel():
                    item[0].set_exception(KnowledgeClosed())
            for _ in range(self._threads):
                self._calls.put(None)

    def _submit(self, call: Callable[[], _T]) -> Future[_T]:
        future: Future[_T] = Future()
        with self._lock:
            if self._closed:
                raise KnowledgeClosed
            self._calls.put((future, call))
            self._waiting += 1
            if self._threads < min(self._max_workers, self._waiting):
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            settle: Callable[[], None] | None = None
            if future.set_running_or_notify_cancel():
                try:
                    settle = partial(future.set_result, call())
                except StopIteration as error:  # no future can hold one (PEP 479)
                    settle = partial(future.set_exception, RuntimeError(f"the call raised {type(error).__name__}"))
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the call
                    settle = partial(future.set_exception, error)
            with self._lock:
                self._waiting -= 1  # before the caller goes on: the next call needs no further thread
            if settle is not None:
                settle()
            del item, future, call, settle  # a waiting thread must not keep the last answer alive


async def run_blocking(signal: CancelSignal, fn: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a blocking ``fn`` in a bounded pool that all callers of this function share; see :meth:`BlockingPool.run`.

    For occasional calls. An adapter whose retrievals block keeps a :class:`BlockingPool` of its own, so that its vendor
    can't hold up another's.

    Raises:
        KnowledgeCancelled: the signal was cancelled.
        KnowledgeTimeout: its deadline passed.
    """
    return await _shared_pool().run(signal, fn, *args, **kwargs)


@lru_cache(maxsize=1)
def _shared_pool() -> BlockingPool:
    return BlockingPool(_SHARED_WORKERS, name="qak-shared")
