"""Finding what a provider must not let out: objects that are neither built in nor the core's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from qak_contract_tests._hits import Hit

_PLAIN = (str, int, float, bool, type(None))


def foreign_objects(value: object, path: str) -> Iterator[str]:
    """Say where in a value something stands whose type is not exactly a built-in one or one of the core."""
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind in {dict, MappingProxyType}:
        assert isinstance(value, Mapping)
        for key, item in value.items():
            yield from foreign_objects(key, f"a key of {path}")
            yield from foreign_objects(item, f"{path}[{key!r}]")
    elif kind in {list, tuple}:
        assert isinstance(value, list | tuple)
        for position, item in enumerate(value):
            yield from foreign_objects(item, f"{path}[{position}]")
    elif dataclasses.is_dataclass(value) and kind.__module__.partition(".")[0] == "qak_core":
        for field in dataclasses.fields(value):
            yield from foreign_objects(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield f"{path} is an object of {kind.__module__}.{kind.__qualname__}"


def field_problems(hit: Hit) -> Iterator[str]:
    """Say which fields of a result have not the type of the protocol; id, content, score and metadata apart."""
    if not isinstance(hit.source, Mapping) and hit.source is not None and not dataclasses.is_dataclass(hit.source):
        yield f"source must be a mapping or absent, got {type(hit.source).__name__}"
    for name in ("source_id", "title", "uri", "mime_type", "locator"):
        value: Any = getattr(hit, name)
        if name == "source_id" and type(value) is int:
            continue
        if value is not None and not isinstance(value, str):
            yield f"{name.replace('_', ' ')} must be text or absent, got {value!r}"


def score_problem(score: object) -> str | None:
    """Say why this is no score, ``None`` if it is one or absent."""
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        return f"a score must be a finite number or absent, got {score!r}"
    return None


def metadata_problems(metadata: object) -> Iterator[str]:
    """Say what in a result's metadata is not flat."""
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        yield f"metadata must be a mapping, got {type(metadata).__name__}"
        return
    for key, value in metadata.items():
        if not isinstance(key, str) or not 0 < len(key) <= 80:
            yield f"a metadata key must be text of 1 to 80 characters, got {key!r}"
        elif not isinstance(value, str | bool | int | float):
            yield f"metadata[{key!r}] must be text, a boolean or a number, got {type(value).__name__}"
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"metadata[{key!r}] must be finite, got {value!r}"
