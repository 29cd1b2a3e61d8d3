"""Flat metadata from whatever a vendor keeps beside a passage."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from qak_core._exact import exact_float, exact_int, exact_str

Plain = str | bool | int | float

_INTERNAL = frozenset({"embedding", "embeddings", "vector", "vectors", "_node_content", "_split_overlap"})


def flatten_metadata(metadata: object, *, drop: Collection[str] = ()) -> dict[str, Plain]:
    """Return the entries that are, or clearly stand for, a plain value; copied, nothing of the vendor's is kept.

    Args:
        metadata: the vendor's mapping; anything else gives an empty one.
        drop: further keys to leave out. Embeddings and keys that start with an underscore always are.
    """
    if not isinstance(metadata, Mapping):
        return {}
    return {
        str(key): plain
        for key, value in metadata.items()
        if isinstance(key, str | int)
        and key not in drop
        and key not in _INTERNAL
        and not str(key).startswith("_")
        and (plain := plain_value(value)) is not None
    }


def plain_value(value: object) -> Plain | None:
    """Return a value as text, boolean or finite number, or ``None`` where it has no such form.

    Dates and times become ISO 8601; UUID, Decimal, paths and enumerations their text; NumPy scalars their item.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is True or value is False:
        return value
    if isinstance(value, str):
        return exact_str(value)
    if isinstance(value, int):
        return exact_int(value)
    if isinstance(value, float):
        real = exact_float(value)
        return real if math.isfinite(real) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID | Decimal | PurePath):
        return str(value)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():  # a NumPy scalar, without importing NumPy
        plain = item()
        return plain_value(plain) if isinstance(plain, str | bool | int | float) else None
    return None


def plain_text(value: object, *, numbers: bool = False) -> str | None:
    """Return text without the blanks around it, or ``None`` where there is none; whole numbers too, if asked."""
    if value is None:  # most keys are absent
        return None
    plain = plain_value(value)
    if numbers and isinstance(plain, int) and not isinstance(plain, bool):
        return str(plain)
    return plain.strip() or None if isinstance(plain, str) else None


def plain_number(value: object) -> int | None:
    """Return a whole number from 0 up, also where it is written as digits or as a float."""
    if value is None:
        return None
    plain = plain_value(value)
    if isinstance(plain, str) and re.fullmatch("[0-9]{1,15}", plain):
        return int(plain)
    if isinstance(plain, bool | str) or plain is None or not 0 <= plain < 10**15 or plain != int(plain):
        return None
    return int(plain)


def plain_score(value: object) -> float | None:
    """Return a finite number, or ``None``: texts and booleans are no scores, whatever they look like."""
    plain = plain_value(value)
    if isinstance(plain, bool | str) or plain is None:
        return None
    try:
        return float(plain)
    except OverflowError:
        return None


def value_at(metadata: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, else the one at the end of a dotted path, else ``None``."""
    if key in metadata or "." not in key:
        return metadata.get(key)
    found: Any = metadata
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
