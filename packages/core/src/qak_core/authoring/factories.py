"""What a configuration names as ``module:callable``."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from typing import Any

_TARGET = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")


def named_targets(settings: object, *names: str) -> dict[str, str]:
    """Return every ``module:callable`` of settings, by the name of its setting.

    Args:
        settings: an object with an attribute for each of ``names``.
        names: settings that hold one, none (``None``), or a mapping from id to one, named ``setting.id``.
    """
    targets: dict[str, str] = {}
    for name in names:
        held = getattr(settings, name)
        if isinstance(held, Mapping):
            targets |= {f"{name}.{key}": target for key, target in held.items()}
        elif held is not None:
            targets[name] = held
    return targets


def target_problems(targets: Mapping[str, str]) -> list[str]:
    """Return a line for each that is no ``module:callable``; nothing is imported."""
    return [
        f"{name}: expected 'module:callable', got {target[:80]!r}"
        for name, target in targets.items()
        if not _TARGET.fullmatch(target)
    ]


def resolve_target(name: str, target: str, problems: list[str]) -> Any:
    """Return the callable that is meant; ``None`` with a line in ``problems`` where there is none.

    Of what goes wrong only the class is told, here and in :func:`make_target`: the text may hold an address or a key.
    """
    try:
        found = pkgutil.resolve_name(target)
    except Exception as error:  # noqa: BLE001 - the host's module may raise anything when imported
        problems.append(f"{name}: {target} cannot be imported, it raised {type(error).__name__}")
        return None
    if not callable(found):
        problems.append(f"{name}: {target} must be callable, got {type(found).__name__}")
        return None
    return found


def make_target(name: str, target: str, problems: list[str]) -> Any:
    """Return what the callable makes; ``None`` with a line in ``problems`` where it fails."""
    factory = resolve_target(name, target, problems)
    if factory is None:
        return None
    try:
        return factory()
    except Exception as error:  # noqa: BLE001 - a factory is the host's code; that it failed is the finding
        problems.append(f"{name}: calling {target} raised {type(error).__name__}")
    return None
