"""Flat metadata from whatever a vendor keeps beside a passage."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
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
