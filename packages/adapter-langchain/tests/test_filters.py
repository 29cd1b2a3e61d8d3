"""Translated filters find what the grammar itself says, on the real stores."""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from qak_adapter_langchain import LangChainProvider
from qak_adapter_langchain._filters import translator_for
from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidRequest, SettingsError
from qak_core.authoring import matches, parse_filter

from ._vendors import ask, chroma, faiss, found, in_memory, qdrant

ROWS: list[dict[str, Any]] = [
    {"n": 1, "s": "x"},
    {"n": 1.0, "s": "1"},
    {"n": 2.5, "b": True},
    {"n": True, "s": "y"},
    {"s": ""},
    {"n": -3, "b": False, "a.b": "x"},
]
STORES = {"in-memory": in_memory, "chroma": chroma, "qdrant": qdrant}


@cache
def store(name: str) -> Any:
    return STORES[name](
        Document(id=str(UUID(int=number)), page_content=f"row {number}", metadata=row)
        for number, row in enumerate(ROWS)
    )


def found_by(name: str, wanted: dict[str, Any]) -> set[int]:
    """Return the rows that the store itself finds, nothing being checked afterwards."""
    ready = translator_for(store(name))
    assert ready is not None
    arguments = ready(parse_filter(wanted))
    return {int(document.page_content[4:]) for document in store(name).similarity_search("row", k=8, **arguments)}


VALUES = st.sampled_from([1, 1.0, 2.5, True, False, "x", "1", "", -3, 10**30, 7])
KEYS = st.sampled_from(["n", "s", "b", "a.b", "missing"])
COMPARISONS = st.builds(
    lambda kind, key, value: {"type": kind, "key": key, "value": value}, st.sampled_from(["eq", "ne"]), KEYS, VALUES
) | st.builds(
    lambda kind, key, value: {"type": kind, "key": key, "value": value},
    st.sampled_from(["gt", "gte", "lt", "lte"]),
    KEYS,
    st.sampled_from([1, 1.0, 2.5, 0, "x"]),
)
MEMBERSHIPS = st.builds(
    lambda kind, key, values: {"type": kind, "key": key, "value": values},
    st.sampled_from(["in", "nin"]),
    KEYS,
    st.lists(VALUES, max_size=3),
)
FILTERS = st.recursive(
    COMPARISONS | MEMBERSHIPS,
    lambda inner: (
        st.builds(
            lambda kind, parts: {"type": kind, "filters": parts},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        )
        | st.builds(lambda part: {"type": "not", "filter": part}, inner)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("name", STORES)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS)
def test_translated_filter_finds_what_the_grammar_says_or_is_refused(name: str, wanted: dict[str, Any]) -> None:
    expected = {number for number, row in enumerate(ROWS) if matches(parse_filter(wanted), row)}
    try:
        assert found_by(name, wanted) == expected
    except KnowledgeFiltersUnsupported:
        assert name != "in-memory"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("chroma", {"type": "gt", "key": "s", "value": "a"}),
        ("chroma", {"type": "not", "filter": {"type": "gt", "key": "n", "value": 1}}),
        ("chroma", {"type": "eq", "key": "$and", "value": 1}),
        ("chroma", {"type": "eq", "key": "#document", "value": "row 1"}),
        ("chroma", {"type": "ne", "key": "chroma:document", "value": "row 1"}),
        ("chroma", {"type": "eq", "key": "n", "value": 10**400}),
        ("qdrant", {"type": "lt", "key": "s", "value": "z"}),
        ("qdrant", {"type": "eq", "key": 'n"].x', "value": 1}),
        ("qdrant", {"type": "in", "key": "n", "value": [1, 10**400]}),
    ],
)
def test_filter_that_the_store_cannot_say_is_refused(name: str, wanted: dict[str, Any]) -> None:
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(LangChainProvider(store(name)), filters=wanted)
    with pytest.raises(SettingsError, match="filters: "):
        LangChainProvider(store(name), filters=wanted)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize(
    "wanted", [{"n": 1}, {"type": "eq"}, {"type": "like", "key": "n", "value": "x"}, {"n": {"$gt": 0}}]
)
def test_filter_outside_the_grammar_is_invalid(name: str, wanted: dict[str, Any]) -> None:
    with pytest.raises(KnowledgeInvalidRequest):
        ask(LangChainProvider(store(name)), filters=wanted)


def test_callers_can_be_refused_where_the_store_could_filter() -> None:
    provider = LangChainProvider(store("chroma"), caller_filters="none")
    assert not provider.describe().can("filters")
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters={"type": "eq", "key": "n", "value": 1})


@pytest.mark.parametrize(
    ("name", "native", "wrong"),
    [
        ("chroma", {"$or": [{"n": {"$gt": 2}}, {"s": "y"}]}, {"n": {"$like": "x"}}),
        (
            "qdrant",
            {"should": [{"key": "metadata.n", "range": {"gt": 2}}, {"key": "metadata.s", "match": {"value": "y"}}]},
            {"must": "nonsense"},
        ),
    ],
)
def test_native_filter_is_passed_on_when_declared(name: str, native: dict[str, Any], wrong: dict[str, Any]) -> None:
    provider = LangChainProvider(store(name), caller_filters="native")
    assert {result.content for result in found(provider, "row", filters=native)} == {"row 2", "row 3"}
    with pytest.raises(KnowledgeInvalidRequest):
        ask(provider, "row", filters=wrong)
    host = {"type": "eq", "key": "b", "value": True}
    bounded = LangChainProvider(store(name), caller_filters="native", filters=host)
    assert {result.content for result in found(bounded, "row", filters=native)} == {"row 2"}


def test_host_translator_gets_the_whole_filter_and_the_context() -> None:
    given: list[Any] = []

    def translate(wanted: Any, context: Any) -> dict[str, Any]:
        given.append((wanted, context.owner_id))
        return {"filter": lambda metadata: matches(wanted, metadata), "fetch_k": 100}

    documents = [Document(page_content=f"row {n}", metadata={"n": n, "owner": "ab"[n % 2]}) for n in range(40)]
    provider = LangChainProvider(
        faiss(documents), translator=translate, owner_key="owner", filters={"type": "gt", "key": "n", "value": 5}
    )
    results = found(provider, "row 3", owner_id="b", filters={"type": "lt", "key": "n", "value": 10}, top_k=8)
    assert {result.metadata["n"] for result in results} == {7, 9}
    assert {owner for _, owner in given} == {"b"}


def test_host_translator_that_forgets_the_owner_leaks_nothing() -> None:
    documents = [Document(page_content=f"row {n}", metadata={"owner": "ab"[n % 2]}) for n in range(40)]
    provider = LangChainProvider(in_memory(documents), translator=lambda wanted, context: {}, owner_key="owner")
    assert len(found(provider, "row", owner_id="b", top_k=8)) == 8
    assert found(provider, "row", owner_id="c", top_k=8) == []


@pytest.mark.parametrize(
    ("answer", "error"), [(None, KnowledgeFiltersUnsupported), (KeyError, KnowledgeInvalidRequest)]
)
def test_host_translator_may_refuse(answer: Any, error: Any) -> None:
    def translate(wanted: Any, context: Any) -> None:
        if answer is not None:
            raise answer("sk-secret")

    provider = LangChainProvider(store("in-memory"), translator=translate)
    with pytest.raises(error) as caught:
        ask(provider, filters={"type": "eq", "key": "n", "value": 1})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_more_is_fetched_where_the_store_cannot_filter() -> None:
    documents = [Document(page_content="lamp", metadata={"n": n, "owner": "a" if n >= 95 else "b"}) for n in range(100)]
    for vendor in (faiss(documents), faiss(documents).as_retriever()):
        provider = LangChainProvider(vendor, owner_key="owner")
        assert len(found(provider, "lamp", owner_id="a", top_k=5)) == 5


CROWD = [Document(page_content=f"lamp {n}", metadata={"owner": "b", "kind": "x"}) for n in range(600)]
FAR = Document(page_content="saffron", metadata={"owner": "a", "kind": "x", "n": 1})


@pytest.mark.parametrize("make", STORES.values())
@pytest.mark.parametrize("mode", ["native", "results"])
@pytest.mark.parametrize("retriever", [False, True])
def test_owner_and_host_filter_are_the_stores_to_apply_however_callers_filter(
    make: Any, mode: Any, retriever: bool
) -> None:
    """The owner's only document is farther than any number of candidates that is ever fetched."""
    store = make([*CROWD, FAR])
    vendor = store.as_retriever() if retriever else store
    owned = LangChainProvider(vendor, owner_key="owner", caller_filters=mode)
    assert [result.content for result in found(owned, "lamp", owner_id="a")] == ["saffron"]
    host = {"type": "eq", "key": "n", "value": 1}
    assert [result.content for result in found(LangChainProvider(vendor, filters=host, caller_filters=mode))] == [
        "saffron"
    ]


@pytest.mark.parametrize(
    ("make", "mode", "wanted", "other"),
    [
        (chroma, "native", {"kind": "x"}, {"$or": [{"owner": "b"}, {"owner": "c"}]}),
        (chroma, "results", {"type": "eq", "key": "kind", "value": "x"}, {"type": "eq", "key": "owner", "value": "b"}),
        (
            qdrant,
            "native",
            {"must": [{"key": "metadata.kind", "match": {"value": "x"}}]},
            {"should": [{"key": "metadata.owner", "match": {"value": "b"}}]},
        ),
        (qdrant, "results", {"type": "eq", "key": "kind", "value": "x"}, {"type": "ne", "key": "owner", "value": "a"}),
    ],
)
def test_callers_filter_is_joined_with_owner_and_host_filter(make: Any, mode: Any, wanted: Any, other: Any) -> None:
    host = {"type": "in", "key": "n", "value": [1, 2]}
    provider = LangChainProvider(make([*CROWD, FAR]), owner_key="owner", filters=host, caller_filters=mode)
    assert [one.content for one in found(provider, "lamp", owner_id="a", filters=wanted)] == ["saffron"]
    assert found(provider, "lamp", owner_id="a", filters=other) == []


@pytest.mark.parametrize("mode", ["native", "results"])
def test_host_filter_that_the_store_cannot_say_is_applied_to_what_was_found(mode: Any) -> None:
    host = {"type": "gt", "key": "s", "value": "x"}
    provider = LangChainProvider(store("chroma"), filters=host, caller_filters=mode)
    assert [result.content for result in found(provider, "row", top_k=8)] == ["row 3"]


@pytest.mark.parametrize("owned", [True, False])
def test_native_filter_does_not_pass_by_the_host_filter_where_there_is_a_translator(owned: bool) -> None:
    def translate(wanted: Any, context: Any) -> dict[str, Any]:
        return {"filter": {"owner": "a"}}

    provider = LangChainProvider(
        chroma([FAR, *CROWD[:3]]),
        translator=translate,
        caller_filters="native",
        filters={"type": "eq", "key": "n", "value": 1},
        owner_key="owner" if owned else None,
    )
    assert [result.content for result in found(provider, "lamp", owner_id="a")] == ["saffron"]
    (result,) = found(provider, "lamp", owner_id="a", filters={"kind": "x"})
    assert result.content == "saffron"
