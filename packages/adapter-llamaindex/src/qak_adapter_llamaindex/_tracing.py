"""Keeping queries and documents out of the host's tracing while a retrieval of ours runs.

LlamaIndex reports to two process-wide mechanisms, dispatchers and callback managers, and has no switch for a single
call. Both learn here to stay silent where this context variable says so; everywhere else they work as ever.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_silent: ContextVar[bool] = ContextVar("qak_llamaindex_silent", default=False)
_lock = threading.Lock()
_taught: set[type] = set()

_REPORTERS = (
    ("llama_index_instrumentation.dispatcher", "Dispatcher", "event aevent span_enter span_exit span_drop"),
    ("llama_index.core.callbacks.base", "CallbackManager", "on_event_start on_event_end start_trace end_trace"),
)


@contextmanager
def untraced() -> Iterator[None]:
    """Report nothing of what LlamaIndex does inside, in this task or thread and in those that inherit its context."""
    for module, name, methods in _REPORTERS:
        reporter = getattr(sys.modules.get(module), name, None)  # not imported yet: nothing to silence
        if reporter is not None and reporter not in _taught:
            _teach(reporter, methods.split())
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def _teach(reporter: type, methods: list[str]) -> None:
    with _lock:
        if reporter not in _taught:
            for name in methods:
                setattr(reporter, name, _silenceable(getattr(reporter, name)))
            _taught.add(reporter)


def _silenceable(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def report_async(*args: Any, **kwargs: Any) -> Any:
            return None if _silent.get() else await method(*args, **kwargs)

        return report_async

    @functools.wraps(method)
    def report(*args: Any, **kwargs: Any) -> Any:
        return "" if _silent.get() else method(*args, **kwargs)  # on_event_start promises an id

    return report
