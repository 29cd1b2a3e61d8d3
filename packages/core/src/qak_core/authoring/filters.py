"""One small filter grammar for all adapters, which each translates into its vendor's.

In JSON it reads as OpenAI's: ``{"type": "eq", "key": "department", "value": "engineering"}``, compared by ``eq``,
``ne``, ``gt``, ``gte``, ``lt``, ``lte``, ``in`` and ``nin``, and combined by ``{"type": "and", "filters": [...]}``,
``or`` and ``{"type": "not", "filter": {...}}``. Comparison is typed: ``1``, ``"1"`` and ``True`` all differ, and only
numbers with numbers and texts with texts have an order. A missing key matches ``ne`` and ``nin`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qak_core.errors import KnowledgeInvalidRequest

Value = str | bool | int | float
Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]

_ORDER = ("gt", "gte", "lt", "lte")
_OPERATORS = ("eq", "ne", *_ORDER, "in", "nin")
_MAX_FILTERS = 64
_MAX_DEPTH = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A metadata key compared with a value; with several for ``in`` and ``nin``."""

    operator: Operator
    key: str
    value: Value | tuple[Value, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compound:
    """Filters that all (``and``), some (``or``) or not (``not``, of one) match."""

    operator: Literal["and", "or", "not"]
    filters: tuple[Comparison | Compound, ...]


Filter = Comparison | Compound


def parse_filter(given: object) -> Filter:
    """Read a filter in its JSON form.

    Raises:
        KnowledgeInvalidRequest: it is none, has an unknown operator, more than 64 parts, or nests more than 8 deep.
    """
    return _parse(given, [_MAX_FILTERS], _MAX_DEPTH)


def all_of(*filters: Filter | None) -> Filter | None:
    """Return the filter that matches what all of them match; ``None`` stands for no restriction.

    The way to join a host's filter and a caller's: neither can replace the other.
    """
    given = tuple(part for part in filters if part is not None)
    if len(given) < 2:
        return given[0] if given else None
    return Compound(operator="and", filters=given)


def matches(wanted: Filter, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata matches, for stores that can't filter and for checking those that say they did."""
    if isinstance(wanted, Compound):
        found = (matches(part, metadata) for part in wanted.filters)
        if wanted.operator == "not":
            return not next(found)
        return all(found) if wanted.operator == "and" else any(found)
    if wanted.operator in {"ne", "nin"}:
        return not _meets("eq" if wanted.operator == "ne" else "in", metadata.get(wanted.key), wanted.value)
    return _meets(wanted.operator, metadata.get(wanted.key), wanted.value)


def _parse(given: object, left: list[int], depth: int) -> Filter:
    left[0] -= 1
    if left[0] < 0 or depth < 0:
        raise KnowledgeInvalidRequest(f"filters may have {_MAX_FILTERS} parts and be nested {_MAX_DEPTH} deep")
    if not isinstance(given, Mapping):
        raise KnowledgeInvalidRequest(f"a filter must be a JSON object, got {type(given).__name__}")
    operator: Any = given.get("type")
    if not isinstance(operator, str):
        operator = None
    if operator == "not" and set(given) == {"type", "filter"}:
        return Compound(operator="not", filters=(_parse(given["filter"], left, depth - 1),))
    if operator in {"and", "or"} and set(given) == {"type", "filters"}:
        parts = given["filters"]
        if not isinstance(parts, list | tuple) or not parts:
            raise KnowledgeInvalidRequest(f"{operator!r} needs a list of filters")
        return Compound(operator=operator, filters=tuple(_parse(part, left, depth - 1) for part in parts))
    if operator in _OPERATORS and set(given) == {"type", "key", "value"}:
        return Comparison(operator=operator, key=_key(given["key"]), value=_value(operator, given["value"]))
    raise KnowledgeInvalidRequest(
        f"a filter's type must be one of {', '.join(_OPERATORS)} with key and value, and or or with filters, "
        "or not with filter, and have nothing else"
    )


def _key(given: object) -> str:
    if not isinstance(given, str) or not given:
        raise KnowledgeInvalidRequest(f"a filter's key must be text, got {type(given).__name__}")
    return given


def _value(operator: str, given: object) -> Value | tuple[Value, ...]:
    if operator in {"in", "nin"}:
        if not isinstance(given, list | tuple) or not all(map(_is_value, given)):
            raise KnowledgeInvalidRequest(f"{operator!r} needs a list of texts, numbers or booleans")
        return tuple(given)
    orders = operator in _ORDER
    if not _is_value(given) or (orders and isinstance(given, bool)):
        raise KnowledgeInvalidRequest(f"{operator!r} needs a text or number{'' if orders else ' or boolean'}")
    return given  # type: ignore[return-value]


def _is_value(given: object) -> bool:
    return isinstance(given, str | bool | int) or (isinstance(given, float) and math.isfinite(given))


def _meets(operator: str, found: object, value: Value | tuple[Value, ...]) -> bool:
    if isinstance(value, tuple):
        return any(_meets("eq", found, one) for one in value)
    if isinstance(found, Sequence) and not isinstance(found, str):
        return any(_meets(operator, one, value) for one in found)
    if _kind(found) is not _kind(value):
        return False
    if operator == "eq":
        return found == value
    left: Any = found
    if operator in {"gt", "gte"}:
        return bool(left > value or (operator == "gte" and left == value))
    return bool(left < value or (operator == "lte" and left == value))


def _kind(value: object) -> type | None:
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None
