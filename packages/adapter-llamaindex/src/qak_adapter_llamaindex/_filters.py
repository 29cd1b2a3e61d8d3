"""From the neutral filter grammar to LlamaIndex's ``MetadataFilters``.

Whatever of a filter a store is not asked for is checked on its results, and what it is asked for is checked again: what
is handed down here only saves fetching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidRequest
from qak_core.authoring import Compound, Filter, Scope

_OPERATORS = {"eq": "==", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "in": "in", "nin": "nin"}


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreScope(Scope):
    """What one request may see, and what of it the store is asked for.

    Attributes:
        native: the caller's filter in LlamaIndex's own form; only the store can apply it.
        nested: whether the store takes filters inside filters.
        ask_store: whether the store is asked for ``wanted``; it always is for the owner and for ``native``.
    """

    native: Mapping[str, Any] | None = None
    nested: bool = False
    ask_store: bool = True

    @property
    def owner_only(self) -> StoreScope:
        """The same scope, of which the store is asked for the owner alone."""
        return replace(self, ask_store=False)

    @property
    def exact(self) -> bool:
        """Whether a store that applies :meth:`parts` leaves nothing to be dropped."""
        asked = list(_conjuncts(self.wanted)) if self.ask_store else []
        whole = self.ask_store or self.wanted is None
        return whole and all(_expressible(part, nested=self.nested) for part in asked)

    def parts(self) -> list[Any]:
        """Return what to ask the store for: filters of LlamaIndex's that all must match.

        Raises:
            KnowledgeInvalidRequest: ``native`` is no ``MetadataFilters``.
            KnowledgeFiltersUnsupported: ``native`` is nested, and the store takes no such filter.
        """
        wanted = self.whole() if self.ask_store else replace(self, wanted=None).whole()
        asked = [part for part in _conjuncts(wanted) if _expressible(part, nested=self.nested)]
        parts = [_translated(part) for part in asked]
        return parts if self.native is None else [*parts, *_native(self.native, nested=self.nested)]


def merged(own: Any, parts: Sequence[Any], *, nested: bool) -> Any:
    """Return a retriever's own ``MetadataFilters`` and ``parts``, all to be met; ``None`` where that takes nesting.

    Args:
        own: what the host gave its retriever; ``None`` or empty for nothing.
        parts: as from :meth:`StoreScope.parts`.
        nested: whether the store takes filters inside filters.
    """
    from llama_index.core.vector_stores.types import MetadataFilters

    if own is None or not own.filters:
        if len(parts) == 1 and _is_compound(parts[0]):
            return parts[0]
        together = list(parts)
    elif own.condition in (None, "and"):
        together = [*own.filters, *parts]
    else:
        together = [own, *parts]
    if not nested and any(map(_is_compound, together)):
        return None
    return MetadataFilters(filters=together)


def _conjuncts(wanted: Filter | None) -> Iterator[Filter]:
    """Yield the filters that all must match."""
    if isinstance(wanted, Compound) and wanted.operator == "and":
        for part in wanted.filters:
            yield from _conjuncts(part)
    elif wanted is not None:
        yield wanted


def _expressible(part: Filter, *, nested: bool) -> bool:
    """Whether LlamaIndex can say it: values are text or numbers, lists hold one kind of them."""
    if isinstance(part, Compound):
        return nested and all(_expressible(inner, nested=nested) for inner in part.filters)
    values = part.value if isinstance(part.value, tuple) else (part.value,)
    kinds = {type(value) for value in values}
    return len(kinds) == 1 and kinds <= {str, int, float}


def _translated(part: Filter) -> Any:
    from llama_index.core.vector_stores.types import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
    )

    if isinstance(part, Compound):
        condition = FilterCondition(part.operator)
        return MetadataFilters(filters=[_translated(inner) for inner in part.filters], condition=condition)
    value: Any = list(part.value) if isinstance(part.value, tuple) else part.value
    return MetadataFilter(key=part.key, value=value, operator=FilterOperator(_OPERATORS[part.operator]))


def _native(given: Mapping[str, Any], *, nested: bool) -> list[Any]:
    from llama_index.core.vector_stores.types import MetadataFilters

    try:
        filters = MetadataFilters.model_validate(given)
    except ValueError:
        filters = None
    if filters is None:  # raised outside the handler: what pydantic raised quotes the filter
        raise KnowledgeInvalidRequest("filters must be LlamaIndex's MetadataFilters as JSON")
    if not nested and any(map(_is_compound, filters.filters)):
        raise KnowledgeFiltersUnsupported
    return list(filters.filters) if filters.condition in (None, "and") else [filters]


def _is_compound(part: Any) -> bool:
    return hasattr(part, "filters")
