"""The host's filter, the caller's and the owner, on real stores; and what a store is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_adapter_llamaindex._filters import StoreScope, merged
from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidRequest
from qak_core.authoring import parse_filter

Find = Callable[..., list[Any]]


def eq(key: str, value: Any) -> dict[str, Any]:
    return {"type": "eq", "key": key, "value": value}


ROWS: list[dict[str, Any]] = [
    {"n": 1, "owner": "alice", "year": 2024, "kind": "lamp", "new": True},
    {"n": 2, "owner": "alice", "year": 2025, "kind": "lamp", "new": False},
    {"n": 3, "owner": "alice", "year": 2026, "kind": "shade", "new": True},
    {"n": 4, "owner": "bob", "year": 2026, "kind": "lamp", "new": True},
    {"n": 5, "owner": "alice", "year": "2026", "kind": "lamp"},  # a year that is text
    {"n": 6, "owner": ["alice", "bob"], "year": 2026, "kind": "lamp", "new": True},
]
TARGETS = ("index", "bm25", "fixed")


@pytest.fixture(scope="module")
def rows() -> list[TextNode]:
    return [TextNode(text=f"lamp number {row['n']}", metadata=dict(row)) for row in ROWS]


@pytest.fixture(scope="module")
def index(make_index: Callable[..., VectorStoreIndex], rows: list[TextNode]) -> VectorStoreIndex:
    return make_index(rows)


@pytest.fixture(scope="module")
def targets(index: VectorStoreIndex, rows: list[TextNode], fixed: Any) -> dict[str, Any]:
    """A store that filters, one that is weighed, and a retriever that can do neither."""
    return {
        "index": index,
        "bm25": BM25Retriever.from_defaults(nodes=rows, similarity_top_k=1),
        "fixed": fixed([NodeWithScore(node=row, score=0.5) for row in rows]),
    }


def numbers(found: list[Any]) -> set[int]:
    return {int(result.content.rpartition(" ")[2]) for result in found}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (eq("kind", "shade"), {3}),
        (eq("year", 2026), {3, 4, 6}),
        (eq("year", "2026"), {5}),
        (eq("new", True), {1, 3, 4, 6}),
        (eq("new", 1), set()),
        ({"type": "ne", "key": "kind", "value": "lamp"}, {3}),
        ({"type": "gt", "key": "year", "value": 2025}, {3, 4, 6}),
        ({"type": "lte", "key": "year", "value": 2024.5}, {1}),
        ({"type": "in", "key": "kind", "value": ["shade", "bulb"]}, {3}),
        ({"type": "in", "key": "kind", "value": ["shade", 7]}, {3}),
        ({"type": "in", "key": "kind", "value": []}, set()),
        ({"type": "nin", "key": "n", "value": [1, 2, 3]}, {4, 5, 6}),
        ({"type": "and", "filters": [eq("kind", "lamp"), eq("year", 2024)]}, {1}),
        ({"type": "or", "filters": [eq("kind", "shade"), eq("year", 2024)]}, {1, 3}),
        ({"type": "not", "filter": eq("kind", "lamp")}, {3}),
        ({"type": "and", "filters": [eq("kind", "lamp"), {"type": "or", "filters": [eq("n", 1), eq("n", 3)]}]}, {1}),
        (eq("no such key", "x"), set()),
    ],
)
def test_neutral_filter_is_met_exactly(
    targets: dict[str, Any], find: Find, target: str, wanted: dict[str, Any], expected: set[int]
) -> None:
    assert numbers(find(targets[target], "lamp number", top_k=8, filters=wanted)) == expected


@pytest.mark.parametrize("target", TARGETS)
def test_caller_can_neither_replace_nor_widen_the_hosts_filter(
    targets: dict[str, Any], retrieve: Callable[..., Any], target: str
) -> None:
    host = eq("kind", "shade")
    everything = {"type": "or", "filters": [eq("kind", "lamp"), {"type": "ne", "key": "kind", "value": "lamp"}]}
    other = eq("kind", "lamp")
    for caller, expected in ((None, {3}), (everything, {3}), (host, {3}), (other, set())):
        provider = LlamaIndexProvider(targets[target], filters=host)
        found = retrieve(provider, "lamp number", top_k=8, filters=caller)
        assert numbers(found.results) == expected


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("caller", [None, eq("owner", "bob"), {"type": "ne", "key": "owner", "value": "alice"}])
def test_owner_sees_their_own_alone_and_no_list_of_owners_counts(
    targets: dict[str, Any], find: Find, target: str, caller: Any
) -> None:
    found = find(targets[target], "lamp number", owner_id="alice", top_k=8, filters=caller, owner_key="owner")
    assert numbers(found) == (set() if caller else {1, 2, 3, 5})


def test_owner_of_few_among_many_is_found_because_the_store_filters(
    make_index: Callable[..., VectorStoreIndex], find: Find
) -> None:
    nodes = [TextNode(text=f"lamp {n}", metadata={"owner": "bob"}) for n in range(200)]
    nodes.append(TextNode(text="a rattan shade", metadata={"owner": "alice"}))
    assert [result.content for result in find(make_index(nodes), owner_key="owner")] == ["a rattan shade"]


def test_candidates_are_fetched_in_number_where_the_store_can_not_say_the_filter(
    make_index: Callable[..., VectorStoreIndex], find: Find
) -> None:
    nodes = [TextNode(text=f"lamp {'lamp ' * n}", metadata={"new": n < 3}) for n in range(30)]
    assert len(find(make_index(nodes), top_k=3, filters=eq("new", True))) == 3


def test_hosts_own_filter_on_its_retriever_stays(index: VectorStoreIndex, find: Find) -> None:
    for condition, expected in ((FilterCondition.AND, {1, 2}), (FilterCondition.OR, {1, 2})):
        own = MetadataFilters(
            filters=[MetadataFilter(key="year", value=2024), MetadataFilter(key="year", value=2025)],
            condition=condition,
        )
        retriever = index.as_retriever(filters=own)
        found = find(retriever, "lamp number", top_k=8, filters=eq("kind", "lamp"))
        assert numbers(found) == (expected if condition is FilterCondition.OR else set())
        assert retriever._filters is own


def test_store_that_stumbles_over_a_filter_is_asked_again_without_it(
    make_index: Callable[..., VectorStoreIndex], rows: list[TextNode], find: Find
) -> None:
    index = make_index(rows)
    wanted = MetadataFilters(filters=[MetadataFilter(key="year", value=2025, operator=">")])
    with pytest.raises(TypeError):  # it compares numbers with the one year that is text
        index.as_retriever(filters=wanted).retrieve("lamp")
    found = find(index, top_k=8, owner_key="owner", filters={"type": "gt", "key": "year", "value": 2025})
    assert numbers(found) == {3}


# LlamaIndex's own form, for callers whom the host lets use it.


def native(*filters: dict[str, Any], condition: str = "and") -> dict[str, Any]:
    return {"filters": list(filters), "condition": condition}


KIND = {"key": "kind", "value": "lamp", "operator": "=="}
OLD = {"key": "year", "value": 2024, "operator": "=="}
TEXT = {"key": "kind", "value": "ha", "operator": "text_match"}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (native(OLD), {1}),
        (native(TEXT), {3}),
        (native(OLD, TEXT, condition="or"), {1, 3}),
        (native(KIND, condition="not"), {3}),
        (native(), {1, 2, 3, 4, 5, 6}),
    ],
)
def test_native_filter_is_passed_through_where_declared(
    index: VectorStoreIndex, find: Find, wanted: dict[str, Any], expected: set[int]
) -> None:
    found = find(index, "lamp number", top_k=8, filters=wanted, caller_filters="native")
    assert numbers(found) == expected


def test_native_filter_adds_to_the_owner_and_the_host(index: VectorStoreIndex, find: Find) -> None:
    theirs = native({"key": "owner", "value": "bob"})
    assert find(index, top_k=8, filters=theirs, caller_filters="native", owner_key="owner") == []
    found = find(index, top_k=8, filters=native(OLD), caller_filters="native", owner_key="owner")
    assert numbers(found) == {1}


@pytest.mark.parametrize(
    "wanted",
    [
        eq("kind", "lamp"),
        {"filters": [{"key": "new", "value": True}]},
        {"filters": [{"key": "kind", "value": "lamp", "operator": "regex"}]},
        {"filters": "kind"},
        {"filters": [KIND], "condition": "xor"},
    ],
)
def test_native_filter_that_is_none_is_refused_as_invalid(
    index: VectorStoreIndex, find: Find, wanted: dict[str, Any]
) -> None:
    with pytest.raises(KnowledgeInvalidRequest) as caught:
        find(index, filters=wanted, caller_filters="native")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "lamp" not in str(caught.value)


def test_native_filter_that_can_not_be_applied_is_refused(targets: dict[str, Any], index: Any, find: Find) -> None:
    nested = native(KIND, native(OLD, TEXT, condition="or"))
    wrong_type = native({"key": "year", "value": "x", "operator": "text_match"})
    for target, wanted, options in (
        (index, nested, {}),
        (index, nested, {"nested_filters": True}),  # which SimpleVectorStore is not able to do
        (index, wrong_type, {}),
        (index, native(OLD, TEXT, condition="or"), {"owner_key": "owner"}),  # together with the owner it would nest
        (targets["bm25"], native(OLD), {}),
        (targets["fixed"], native(OLD), {}),
    ):
        with pytest.raises(KnowledgeFiltersUnsupported):
            find(target, filters=wanted, caller_filters="native", **options)


def test_native_filter_is_refused_where_the_hosts_own_can_not_be_joined_with_it(
    index: VectorStoreIndex, find: Find
) -> None:
    own = MetadataFilters.model_validate(native(OLD, TEXT, condition="or"))
    plain = index.as_retriever(filters=own)
    leading_on = index.as_retriever(filters=own)
    leading_on.object_map = {"elsewhere": index.as_retriever()}
    for retriever in (plain, leading_on):
        with pytest.raises(KnowledgeFiltersUnsupported):
            find(retriever, filters=native(KIND), caller_filters="native")


def test_filters_are_refused_where_the_host_wants_none(index: VectorStoreIndex, find: Find) -> None:
    assert not LlamaIndexProvider(index, caller_filters="none").describe().can("filters")
    with pytest.raises(KnowledgeFiltersUnsupported):
        find(index, filters=eq("kind", "lamp"), caller_filters="none")


@pytest.mark.parametrize("wanted", [{"kind": "lamp"}, {"type": "regex", "key": "kind", "value": "("}, {"type": "and"}])
def test_neutral_filter_that_is_none_is_invalid(index: VectorStoreIndex, find: Find, wanted: dict[str, Any]) -> None:
    with pytest.raises(KnowledgeInvalidRequest):
        find(index, filters=wanted)


# What a store is asked for.


def asked(wanted: dict[str, Any], **scope: Any) -> list[Any]:
    return [part.model_dump(mode="json") for part in StoreScope(wanted=parse_filter(wanted), **scope).parts()]


def test_store_is_asked_for_what_it_can_say_and_never_for_less_than_the_owner() -> None:
    mixed = {"type": "and", "filters": [eq("kind", "lamp"), eq("new", True), {"type": "not", "filter": eq("n", 1)}]}
    owner = {"key": "owner", "value": "alice", "operator": "=="}
    kind = {"key": "kind", "value": "lamp", "operator": "=="}
    scope = {"owner_key": "owner", "owner_id": "alice"}
    assert asked(mixed, **scope) == [owner, kind]
    assert asked(mixed, nested=True, **scope) == [
        owner,
        kind,
        {"filters": [{"key": "n", "value": 1, "operator": "=="}], "condition": "not"},
    ]
    assert asked(mixed, ask_store=False, **scope) == [owner]
    unsayable = {"type": "or", "filters": [eq("kind", "lamp"), eq("new", True)]}
    assert asked(unsayable, nested=True, **scope) == [owner]


def test_every_operator_has_its_counterpart() -> None:
    for name, sign in {"ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}.items():
        assert asked({"type": name, "key": "n", "value": 1})[0]["operator"] == sign
    for name in ("in", "nin"):
        assert asked({"type": name, "key": "n", "value": ["a", "b"]}) == [
            {"key": "n", "value": ["a", "b"], "operator": name}
        ]


def test_own_and_other_filters_are_joined_flat_where_that_says_the_same() -> None:
    one, two = (MetadataFilter(key="n", value=value) for value in (1, 2))
    either = MetadataFilters(filters=[one, two], condition=FilterCondition.OR)
    assert merged(None, [two], nested=False) == MetadataFilters(filters=[two])
    assert merged(MetadataFilters(filters=[one]), [two], nested=False) == MetadataFilters(filters=[one, two])
    assert merged(None, [either], nested=False) == either
    assert merged(either, [two], nested=False) is None
    assert merged(either, [two], nested=True) == MetadataFilters(filters=[either, two])
