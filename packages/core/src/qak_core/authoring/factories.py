"""What a configuration names as ``module:callable``."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from qak_core._redaction import redact
from qak_core.errors import SettingsError

_TARGET = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")


def target_problems(settings: object, *names: str) -> list[str]:
    """Return a line for each setting that holds no ``module:callable``; nothing is imported.

    Args:
        settings: an object with an attribute for each of ``names``.
        names: settings that hold a text, none (``None``), or a mapping from id to one.
    """
    return [
        f"{label}: expected 'module:callable', got {redact(target[:80])!r}"
        for name in names
        for label, target in _named(name, getattr(settings, name)).items()
        if not _TARGET.fullmatch(target)
    ]


def load_targets(
    settings: Any, *, make: Collection[str], resolve: Collection[str] = (), subject: str
) -> dict[str, Any]:
    """Return the settings as arguments, with objects in place of what they name.

    Args:
        settings: a dataclass.
        make: fields whose ``module:callable`` is called for the object.
        resolve: fields whose callable is the object.
        subject: what to call the settings in the message.

    Raises:
        SettingsError: with every problem found. Of what goes wrong in the host's code only the class is told, since the
            text may hold an address or a key.
    """
    problems: list[str] = []
    arguments = {field.name: getattr(settings, field.name) for field in fields(settings)}
    for name in (*make, *resolve):
        held = arguments[name]
        found = {label: _object(label, target, name in make, problems) for label, target in _named(name, held).items()}
        arguments[name] = (
            {key: found[f"{name}.{key}"] for key in held} if isinstance(held, Mapping) else found.get(name)
        )
    if problems:
        raise SettingsError(problems, subject=subject)
    return arguments


def _named(name: str, held: Any) -> dict[str, str]:
    if isinstance(held, Mapping):
        return {f"{name}.{key}": target for key, target in held.items()}
    return {} if held is None else {name: held}


def _object(label: str, target: str, is_made: bool, problems: list[str]) -> Any:
    try:
        found = pkgutil.resolve_name(target)
    except Exception as error:  # noqa: BLE001 - the host's module may raise anything when imported
        problems.append(f"{label}: {target} cannot be imported, it raised {type(error).__name__}")
        return None
    if not callable(found):
        problems.append(f"{label}: {target} must be callable, got {type(found).__name__}")
        return None
    if not is_made:
        return found
    try:
        made = found()
    except Exception as error:  # noqa: BLE001 - a factory is the host's code; that it failed is the finding
        problems.append(f"{label}: calling {target} raised {type(error).__name__}")
        return None
    if made is None:
        problems.append(f"{label}: calling {target} returned nothing")
    return made
