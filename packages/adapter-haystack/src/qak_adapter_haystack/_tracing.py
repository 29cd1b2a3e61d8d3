"""Keeping one call out of Haystack's telemetry and tracing, and leaving the host's own as they are.

Both are process-wide switches in Haystack. Turning them off would silence the host too, so they are made to ask a
context variable first, which threads and tasks of the call inherit.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_quiet: ContextVar[bool] = ContextVar("qak_adapter_haystack_quiet", default=False)
_installing = threading.Lock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Send no telemetry event and open no span in what runs within, threads and tasks included."""
    _install()
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


class _Telemetry:
    """Haystack's telemetry, which looks absent within a quiet call: Haystack tests it for truth before it sends."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __bool__(self) -> bool:
        return bool(self.original) and not _quiet.get()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _install() -> None:
    """Put the two questions in place, again if somebody has replaced what they stand before."""
    from haystack.telemetry import _telemetry
    from haystack.tracing.tracer import NullTracer
    from haystack.tracing.tracer import tracer as proxy

    module: Any = _telemetry
    tracer: Any = proxy
    if isinstance(module.telemetry, _Telemetry | None) and "trace" in vars(tracer):
        return
    with _installing:
        if not isinstance(module.telemetry, _Telemetry | None):
            module.telemetry = _Telemetry(module.telemetry)
        if "trace" not in vars(tracer):
            original, null = tracer.trace, NullTracer()

            def trace(*args: Any, **kwargs: Any) -> Any:
                return (null.trace if _quiet.get() else original)(*args, **kwargs)

            # On the proxy that every module of Haystack holds: enable_tracing and disable_tracing replace what is
            # behind it, and is_tracing_enabled looks there, so all three keep their meaning.
            tracer.trace = trace
