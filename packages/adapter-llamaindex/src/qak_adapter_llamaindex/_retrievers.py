"""A retriever for one request: the host's own, copied where something has to be set.

``similarity_top_k`` and filters are attributes of LlamaIndex's retrievers, so setting them on a shared one would race
with other requests. Everything is found by attribute: any retriever of the same shape will do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qak_adapter_llamaindex._filters import StoreScope, merged
from qak_core import KnowledgeFiltersUnsupported

FETCHED = 64
"""How many candidates to ask for where results may have to be dropped afterwards."""

MAX_FETCHED = 512
"""How many at most, where too many of those were dropped."""

_TOP_K = ("similarity_top_k", "_similarity_top_k", "num_chunks_per_query")
_FILTERS = ("_filters", "_extra_filters")
_FEEDING = (
    "_retrievers",
    "sub_retrievers",
    "_vector_retriever",
    "_retriever",
)  # fusion, routing, merging, transforming
_LINKED = ("_retriever_dict", "_query_engine_dict", "object_map")  # what index nodes lead to
_MAX_DEPTH = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wish:
    """What all retrievers of one request are to apply."""

    top_k: int
    parts: list[Any]
    scope: StoreScope


def is_target(candidate: object) -> bool:
    """Whether this is a retriever or an index."""
    return _is_retriever(candidate) or callable(getattr(candidate, "as_retriever", None))


def prepared(target: Any, count: int, scope: StoreScope) -> tuple[Any, int | None]:
    """Return a retriever that looks for ``count`` candidates within ``scope``, as far as it can.

    Args:
        target: a retriever or an index; left as it is.
        count: candidates wanted; at least :data:`FETCHED` are where the retriever can't apply the whole scope.
        scope: what the request may see.

    Returns:
        The retriever and how many candidates it looks for, ``None`` where that can't be set.

    Raises:
        KnowledgeInvalidRequest: see :meth:`StoreScope.parts`.
        KnowledgeFiltersUnsupported: a filter in LlamaIndex's own form that this retriever can't apply.
    """
    retriever = target if _is_retriever(target) else target.as_retriever(similarity_top_k=count)
    parts = scope.parts()
    sees_all_it_may = not scope.restricts or (
        scope.exact and all(_takes(source, parts, scope) for source in _sources(retriever, _MAX_DEPTH))
    )
    count = count if sees_all_it_may else max(count, FETCHED)
    mine = _copied(retriever, _Wish(top_k=count, parts=parts, scope=scope), _MAX_DEPTH)
    return mine, count if _counts(mine, _MAX_DEPTH) else None


def _copied(retriever: Any, wish: _Wish, depth: int, least: int | None = None) -> Any:
    """Return a copy with everything set, or the retriever itself where there is nothing to set.

    Args:
        retriever: left as it is.
        wish: what to set.
        depth: how many retrievers deep to go.
        least: of an inner retriever, the least ``similarity_top_k``; it may look deeper than the answer is long.
    """
    changes: dict[str, Any] = {}
    for name in _TOP_K:
        if isinstance(own := getattr(retriever, name, None), int):
            changes[name] = wish.top_k if least is None else max(own, least)
    for name in (*_FEEDING, *_LINKED) if depth else ():
        if any(_retrievers_in(held := getattr(retriever, name, None))):
            feeding = wish.top_k if least is None else least
            first = getattr(retriever, "_root_id", None)  # of linked ones, all but the first stay as the host set them

            def inner(one: Any, key: object, least: int = feeding, first: object = first, name: str = name) -> Any:
                return _copied(one, wish, depth - 1, least if name in _FEEDING or key == first else 0)

            changes[name] = _each(held, inner)
    if wish.parts:
        changes |= _filters(retriever, wish, leaf=not any(name in changes for name in (*_FEEDING, *_LINKED)))
    if not changes:
        return retriever
    mine = copy.copy(retriever)
    for name, value in changes.items():
        setattr(mine, name, value)
    if _is_bm25(mine):
        _restrict_bm25(mine, wish.scope)
    return mine


def _filters(retriever: Any, wish: _Wish, *, leaf: bool) -> dict[str, Any]:
    held = next((name for name in _FILTERS if hasattr(retriever, name)), None)
    together = held and merged(getattr(retriever, held), wish.parts, nested=wish.scope.nested)
    if held and together is not None:
        return {held: together}
    if wish.scope.native is not None and (held or leaf):  # nobody else would apply it
        raise KnowledgeFiltersUnsupported
    return {}


def _restrict_bm25(mine: Any, scope: StoreScope) -> None:
    """Weigh down what the scope does not admit, and let nothing out that no word of the query led to.

    BM25Retriever has no filter at query time, and its weights, the form in which it keeps its own ``filters``, only set
    scores to zero: what they exclude is returned all the same when fewer than ``similarity_top_k`` others match.
    """
    documents = mine.corpus or ()
    mine.similarity_top_k = min(mine.similarity_top_k, int(mine.bm25.scores.get("num_docs") or len(documents)))
    if scope.restricts and documents:
        weighed = zip(mine.corpus_weight_mask or [1] * len(documents), documents, strict=True)
        mine.corpus_weight_mask = [weight if scope.admits(document) else 0 for weight, document in weighed]
    search = mine._retrieve
    mine._retrieve = lambda query_bundle: [found for found in search(query_bundle) if found.score]


def _sources(retriever: Any, depth: int) -> Iterator[Any]:
    """Yield the retrievers that look into a store themselves."""
    inner = _inner(retriever)
    if not inner or any(hasattr(retriever, name) for name in _FILTERS):
        yield retriever
    for one in inner if depth else ():
        yield from _sources(one, depth - 1)


def _counts(retriever: Any, depth: int) -> bool:
    """Whether it can be said how many candidates to look for."""
    if any(isinstance(getattr(retriever, name, None), int) for name in _TOP_K):
        return True
    return depth > 0 and any(_counts(one, depth - 1) for one in _inner(retriever))


def _inner(retriever: Any) -> list[Any]:
    return [one for name in (*_FEEDING, *_LINKED) for one in _retrievers_in(getattr(retriever, name, None))]


def _takes(source: Any, parts: list[Any], scope: StoreScope) -> bool:
    if _is_bm25(source):
        return bool(source.corpus)
    return any(
        merged(getattr(source, name), parts, nested=scope.nested) is not None
        for name in _FILTERS
        if hasattr(source, name)
    )


def _retrievers_in(held: Any) -> Iterator[Any]:
    values = held.values() if isinstance(held, Mapping) else held if isinstance(held, list | tuple) else (held,)
    return filter(_is_retriever, values)


def _each(held: Any, function: Callable[[Any, object], Any]) -> Any:
    """Apply a function to every retriever in what an attribute holds; the rest, such as nodes, stays."""
    if isinstance(held, Mapping):
        return {key: function(one, key) if _is_retriever(one) else one for key, one in held.items()}
    if isinstance(held, list | tuple):
        return [function(one, None) if _is_retriever(one) else one for one in held]
    return function(held, None)


def _is_retriever(candidate: object) -> bool:
    return callable(getattr(candidate, "retrieve", None))


def _is_bm25(retriever: Any) -> bool:
    return all(hasattr(retriever, name) for name in ("bm25", "corpus", "corpus_weight_mask", "similarity_top_k"))
