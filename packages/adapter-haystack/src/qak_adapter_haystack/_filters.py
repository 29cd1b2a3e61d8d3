"""The neutral filter grammar in Haystack's, and back; pure functions.

Haystack's filters are ``{"field": "meta.x", "operator": "==", "value": …}`` and ``{"operator": "AND", "conditions":
[…]}``. A retriever's own filters are replaced by those of a call, or merged in ways that may drop them, so whatever is
to hold goes into each call as one conjunction.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidRequest
from qak_core.authoring import Comparison, Filter

_COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "in": "in",
    "nin": "not in",
}
_NEUTRAL = {haystack: neutral for neutral, haystack in _COMPARISONS.items()}
_ORDERS = {"gt", "gte", "lt", "lte"}
_LOGIC = ("AND", "OR", "NOT")
_MAX_DEPTH = 16
_DATE = re.compile(r"\d{4}-\d\d-\d\d([Tt ].*)?")

NativeFilter = dict[str, Any]


def to_haystack(wanted: Filter) -> NativeFilter:
    """Translate a neutral filter.

    Raises:
        KnowledgeFiltersUnsupported: it orders texts that are no ISO dates, which Haystack can't.
    """
    if not isinstance(wanted, Comparison):
        return {"operator": wanted.operator.upper(), "conditions": [to_haystack(part) for part in wanted.filters]}
    value = list(wanted.value) if isinstance(wanted.value, tuple) else wanted.value
    if wanted.operator in _ORDERS and isinstance(value, str) and not _DATE.fullmatch(value):
        raise KnowledgeFiltersUnsupported("Haystack orders numbers and ISO dates, no other texts")
    return comparison(wanted.key, _COMPARISONS[wanted.operator], value)


def comparison(key: str, operator: str, value: object) -> NativeFilter:
    """Return a comparison of a metadata key, given with or without ``meta.``."""
    return {"field": f"meta.{key.removeprefix('meta.')}", "operator": operator, "value": value}


def from_haystack(given: object) -> dict[str, Any]:
    """Translate Haystack's filter into the neutral grammar's JSON form, which the host's runtime will check.

    Raises:
        KnowledgeFiltersUnsupported: it compares something else than metadata.
        KnowledgeInvalidRequest: it is no filter of Haystack's.
    """
    native = read_native(given)
    if "conditions" not in native:
        field = native["field"]
        if field in {"id", "content", "score", "blob", "embedding", "sparse_embedding"}:
            raise KnowledgeFiltersUnsupported("only metadata can be compared")
        return {
            "type": _NEUTRAL[native["operator"]],
            "key": field.removeprefix("meta."),
            "value": native["value"],
        }
    parts = [from_haystack(part) for part in native["conditions"]]
    if native["operator"] != "NOT":
        return {"type": native["operator"].lower(), "filters": parts}
    return {"type": "not", "filter": parts[0] if len(parts) == 1 else {"type": "and", "filters": parts}}


def read_native(given: object, depth: int = _MAX_DEPTH) -> NativeFilter:
    """Return a copy of one of Haystack's filters.

    Raises:
        KnowledgeInvalidRequest: it has another shape.
    """
    if depth and isinstance(given, Mapping):
        operator = given.get("operator")
        if set(given) == {"operator", "conditions"} and operator in _LOGIC:
            conditions = given["conditions"]
            if isinstance(conditions, list | tuple) and conditions:
                return {"operator": operator, "conditions": [read_native(part, depth - 1) for part in conditions]}
        elif set(given) == {"field", "operator", "value"} and operator in tuple(_NEUTRAL):
            field, value = given["field"], given["value"]
            if isinstance(field, str):
                return {"field": field, "operator": operator, "value": copy.deepcopy(value)}
    raise KnowledgeInvalidRequest(
        "a filter of Haystack's has field, operator and value, or operator (AND, OR, NOT) and conditions, nothing else"
    )


def meets(wanted: NativeFilter, document: Any) -> bool:
    """Whether a document meets a filter of Haystack's, as Haystack itself compares.

    Raises:
        Exception: whatever Haystack's comparison does, as on a text that is no date beside one.
    """
    from haystack.utils.filters import document_matches_filter  # whoever made a document has imported Haystack

    return bool(document_matches_filter(wanted, document))


def is_comparable(wanted: NativeFilter) -> bool:
    """Whether each value of one of Haystack's filters can be compared at all, as with itself."""
    from haystack import Document

    if "conditions" in wanted:
        return all(map(is_comparable, wanted["conditions"]))
    try:
        meets({**wanted, "field": "meta.value"}, Document(meta={"value": wanted["value"]}))
    except Exception:  # noqa: BLE001 - a host may have given any object as value
        return False
    return True


def is_native(given: object) -> bool:
    """Whether a filter means to be Haystack's and not the neutral grammar's."""
    return isinstance(given, Mapping) and "operator" in given and "type" not in given


def all_native(filters: Sequence[NativeFilter]) -> NativeFilter | None:
    """Return the filter that matches what all of them match."""
    if len(filters) < 2:
        return filters[0] if filters else None
    return {"operator": "AND", "conditions": list(filters)}


def beside(own: Mapping[str, Any], given: NativeFilter) -> NativeFilter:
    """Return what to send to a retriever with filters of its own so that both hold, under either filter policy.

    ``REPLACE`` would drop its own, so they are repeated. ``MERGE`` keeps them only beside the same logical operator
    and where no field is named twice on the top level; otherwise it logs a warning with the values of both.
    """
    both: NativeFilter = {"operator": "AND", "conditions": [copy.deepcopy(dict(own)), given]}
    operator = own.get("operator") if "conditions" in own else "AND"
    if operator == "NOT":
        both = {"operator": "NOT", "conditions": [both]}
    return {"operator": operator, "conditions": [both]}


def keys(wanted: Filter) -> Iterator[str]:
    """Walk over the metadata keys that a neutral filter compares."""
    if isinstance(wanted, Comparison):
        yield wanted.key
    else:
        for part in wanted.filters:
            yield from keys(part)
