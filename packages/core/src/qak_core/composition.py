"""Which provider a gateway gets (protocol section 11)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from qak_core.registry import create_provider

LOCAL_LIBRARY_SWITCH = "QWEN_AUDIO_DOMAIN_LIBRARY"


def choose_provider(
    injected: object | None = None,
    *,
    configured: Callable[[], Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Any:
    """Return the one provider of a runtime, or ``None`` for a gateway without knowledge.

    Args:
        injected: what the host program composed itself; it always wins.
        configured: creates the provider that a configuration names.
        environ: looked at last: ``QWEN_AUDIO_DOMAIN_LIBRARY=on`` gives the local library.

    Raises:
        CompositionError: the provider that is due cannot be created; there is no silent fall-back to another one.
    """
    if injected is not None:
        return injected
    if configured is not None:
        return configured()
    environ = os.environ if environ is None else environ
    if environ.get(LOCAL_LIBRARY_SWITCH, "").strip().lower() == "on":
        return create_provider("local", {})
    return None
