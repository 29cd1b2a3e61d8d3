"""From the neutral filter grammar to what each vector store takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from qak_core import KnowledgeFiltersUnsupported, RetrievalContext
from qak_core.authoring import Comparison, Compound, Filter, matches

Translator = Callable[[Filter, RetrievalContext], Mapping[str, Any] | None]
"""A host's own: the whole filter to the search's keyword arguments, or ``None`` where it can't be said."""

_ReadyTranslator = Callable[[Filter, Any], dict[str, Any]]

_OPPOSITE = {"eq": "ne", "ne": "eq", "in": "nin", "nin": "in"}
_MAX_INTEGER = 2**63


def translator_for(store: object) -> Callable[[Filter], dict[str, Any]] | None:
    """Return the ready translator for a vector store, or ``None`` for one that is not known here."""
    for name in class_names(store):
        if name in _READY:
            return partial(_translate, _READY[name], store)
    return None


def native_arguments(store: object, filters: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Pass a filter in the store's own JSON form on, to be met as well as what a ready translator made of ours.

    Raises:
        ValueError: Qdrant knows no such filter.
    """
    given = [dict(filters), *ours.values()]
    if _QDRANT in class_names(store):
        from qdrant_client import models  # its client wants its class

        given[0] = models.Filter.model_validate(filters)
        return {"filter": models.Filter(must=given)}
    return {"filter": _joined("$and", given)}


def class_names(value: object) -> list[str]:
    """Return the full names of a value's class and its bases, so that no vendor needs to be imported."""
    return [full_name(kind) for kind in type(value).__mro__]


def full_name(kind: Any) -> str:
    """Return the name of a class or function with its module."""
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def _translate(ready: _ReadyTranslator, store: object, wanted: Filter) -> dict[str, Any]:
    return ready(wanted, store)


def _in_memory(wanted: Filter, _store: object) -> dict[str, Any]:
    return {"filter": lambda document: matches(wanted, document.metadata)}


def _chroma(wanted: Filter, _store: object) -> dict[str, Any]:
    return {"filter": _chroma_where(wanted, negated=False)}


def _chroma_where(wanted: Filter, *, negated: bool) -> dict[str, Any]:
    """Chroma has no negation, so it is pushed down to the comparisons; its ``$ne`` matches a missing key, as ours."""
    if isinstance(wanted, Compound):
        if wanted.operator == "not":
            return _chroma_where(wanted.filters[0], negated=not negated)
        parts = [_chroma_where(part, negated=negated) for part in wanted.filters]
        return _joined("$and" if (wanted.operator == "and") is not negated else "$or", parts)
    key, operator, value = wanted.key, wanted.operator, _storable(wanted)
    if key.startswith(("$", "#", "chroma:")):  # Chroma's own fields and operators
        raise KnowledgeFiltersUnsupported
    if negated and operator not in _OPPOSITE:
        raise KnowledgeFiltersUnsupported  # the opposite of an order also matches a missing key, which can't be said
    said = _OPPOSITE[operator] if negated else operator
    if isinstance(value, tuple):
        one, join = ("$eq", "$or") if said == "in" else ("$ne", "$and")
        # An empty list is refused, a contradiction and a tautology are not.
        return _joined(join, [{key: {one: item}} for item in value] or _both(key, "$and" if said == "in" else "$or"))
    if isinstance(value, str) and said not in _OPPOSITE:
        raise KnowledgeFiltersUnsupported  # Chroma orders numbers only
    return {key: {f"${said}": value}}


def _both(key: str, join: str) -> list[dict[str, Any]]:
    return [{join: [{key: {"$eq": ""}}, {key: {"$ne": ""}}]}]


def _joined(operator: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {operator: parts}


def _qdrant(wanted: Filter, store: object) -> dict[str, Any]:
    from qdrant_client import models

    condition = _qdrant_condition(wanted, str(getattr(store, "metadata_payload_key", "metadata")))
    return {"filter": models.Filter(must=[condition])}


def _qdrant_condition(wanted: Filter, prefix: str) -> Any:
    from qdrant_client import models

    if isinstance(wanted, Compound):
        parts = [_qdrant_condition(part, prefix) for part in wanted.filters]
        if wanted.operator == "and":
            return models.Filter(must=parts)
        return models.Filter(should=parts) if wanted.operator == "or" else models.Filter(must_not=parts)
    if wanted.operator in {"ne", "nin"}:
        positive = Comparison(operator="eq" if wanted.operator == "ne" else "in", key=wanted.key, value=wanted.value)
        return models.Filter(must_not=[_qdrant_condition(positive, prefix)])
    if isinstance(values := _storable(wanted), tuple):
        if not values:
            return models.HasIdCondition(has_id=[])  # an empty `should` would match everything
        each = (Comparison(operator="eq", key=wanted.key, value=value) for value in values)
        return models.Filter(should=[_qdrant_condition(one, prefix) for one in each])
    key, value = _qdrant_key(prefix, wanted.key), values
    if isinstance(value, bool) or (isinstance(value, str) and wanted.operator == "eq"):
        return models.FieldCondition(key=key, match=models.MatchValue(value=value))
    if isinstance(value, str):
        raise KnowledgeFiltersUnsupported  # Qdrant orders numbers only
    bounds = ("gte", "lte") if wanted.operator == "eq" else (wanted.operator,)
    return models.FieldCondition(key=key, range=models.Range(**dict.fromkeys(bounds, value)))


def _qdrant_key(prefix: str, key: str) -> str:
    """Quote a key that Qdrant would read as a path into nested metadata."""
    if '"' in key or "\\" in key:
        raise KnowledgeFiltersUnsupported
    return f'{prefix}."{key}"' if any(character in key for character in ".[] ") else f"{prefix}.{key}"


def _storable(wanted: Comparison) -> Any:
    """Return the value to compare with, if a store's numbers can hold it."""
    values = wanted.value if isinstance(wanted.value, tuple) else (wanted.value,)
    if any(isinstance(value, int) and not -_MAX_INTEGER <= value < _MAX_INTEGER for value in values):
        raise KnowledgeFiltersUnsupported
    return wanted.value


_QDRANT = "langchain_qdrant.qdrant.QdrantVectorStore"
_READY: dict[str, _ReadyTranslator] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": _in_memory,
    "langchain_chroma.vectorstores.Chroma": _chroma,
    _QDRANT: _qdrant,
}
