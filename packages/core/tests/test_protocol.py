import copy
import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core import (
    PROTOCOL_VERSION,
    CancelSignal,
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeOwnerRequired,
    KnowledgeQueryRequired,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    Source,
)

from . import _hostile as hostile


def request(**fields):
    return RetrievalRequest(**{"query": "年费", **fields})


@pytest.mark.clause("describe.version")
def test_the_protocol_version_is_the_integer_one():
    assert type(PROTOCOL_VERSION) is int
    assert PROTOCOL_VERSION == 1


@pytest.mark.clause("request.query")
@pytest.mark.parametrize(
    ("given_query", "expected"),
    [
        ("  发布需要几个人批准？\n", "发布需要几个人批准？"),
        ("a\x00\u202eb\u200b", "ab"),
        ("a \n b", "a \n b"),
        ("\ud800", "\ufffd"),
        ("x" * 501, "x" * 500),
        ("x" * 499 + " y", "x" * 499),
        ("年" * 499 + "👩\u200d👧", "年" * 499),
    ],
)
def test_a_query_is_cleaned_trimmed_and_cut(given_query, expected):
    query = request(query=given_query).query
    assert query == expected
    assert type(query) is str


@pytest.mark.clause("request.query")
@pytest.mark.parametrize("query", ["", "  \n\t", "\u3000", "\u200b\ufeff", "\x00"])
def test_an_empty_query_is_refused(query):
    with pytest.raises(KnowledgeQueryRequired):
        request(query=query)


@pytest.mark.clause("request.query")
@pytest.mark.parametrize("query", [None, 5, True, b"text", ["text"], {"query": "text"}])
def test_a_query_that_is_no_text_is_refused(query):
    with pytest.raises(KnowledgeInvalidRequest):
        request(query=query)


@pytest.mark.clause("request.top_k")
@pytest.mark.parametrize(
    ("top_k", "expected"),
    [
        (1, 1),
        (8, 8),
        (0, 1),
        (-5, 1),
        (9, 8),
        (10**400, 8),
        ("3", 3),
        (" 07 ", 7),
        ("+2", 2),
        ("-2", 1),
        ("9" * 9999, 8),
    ],
)
def test_a_top_k_is_read_and_clamped(top_k, expected):
    read = request(top_k=top_k).top_k
    assert (read, type(read)) == (expected, int)
    assert request().top_k == 5


@pytest.mark.clause("request.top_k")
@pytest.mark.parametrize(
    "top_k", [True, False, None, 5.0, math.nan, "", "five", "5.5", "1e1", "+-5", "--5", "５", "٥", "5 5", [5], b"5"]
)
def test_a_top_k_that_is_no_integer_is_refused(top_k):
    with pytest.raises(KnowledgeInvalidRequest):
        request(top_k=top_k)


@pytest.mark.clause("request.knowledge_base_ids")
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((), ()),
        (None, ()),
        (["a", " a ", "", "\u200b", "b", "a"], ("a", "b")),
        (["x" * 120], ("x" * 120,)),
        ([str(number) for number in range(8)] * 3, tuple(str(number) for number in range(8))),
    ],
)
def test_blank_and_repeated_knowledge_base_ids_are_dropped(ids, expected):
    assert request(knowledge_base_ids=ids).knowledge_base_ids == expected


@pytest.mark.clause("request.knowledge_base_ids")
@pytest.mark.parametrize(
    "ids",
    ["a", b"a", 5, {"a"}, {"a": 1}, iter(["a"]), ["a", 5], [None], ["x" * 121], [str(number) for number in range(9)]],
)
def test_knowledge_base_ids_of_another_shape_are_refused(ids):
    with pytest.raises(KnowledgeInvalidRequest):
        request(knowledge_base_ids=ids)


def nested(depth):
    value = {"a": 1}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.clause("request.filters")
@pytest.mark.parametrize(
    "filters",
    [
        {"a": 1},
        {"a": [1, "x", None, True, 1.5, {"b": []}]},
        nested(8),
        {"年": "年" * 5000},
        {"a": "x" * (16 * 1024 - 9)},
    ],
    ids=["flat", "mixed", "deep", "wide", "full"],
)
def test_filters_are_deep_copied_json(filters):
    before = copy.deepcopy(filters)
    kept = request(filters=filters).filters
    assert kept == before
    filters["a"] = "changed"
    assert kept == before


@pytest.mark.clause("request.filters")
def test_a_copy_of_filters_shares_no_part_with_the_original():
    inner = {"b": [1]}
    kept = request(filters={"a": inner, "t": (1, 2)}).filters
    inner["b"].append(2)
    assert kept == {"a": {"b": [1]}, "t": [1, 2]}


@pytest.mark.clause("request.filters")
@pytest.mark.parametrize(
    "filters",
    [
        "a",
        ["a"],
        5,
        {"a": math.nan},
        {"a": math.inf},
        {"a": {1, 2}},
        {"a": b"x"},
        {"a": object()},
        {"a": "\ud800"},
        {"a": 10**5000},
        {5: "a"},
        {"a": {None: 1}},
        nested(9),
        {"a": "x" * (16 * 1024)},
        {"a": hostile.Disguised(bool)},
    ],
    ids=lambda filters: (
        str(filters)[:20] if isinstance(filters, str | int) else type(next(iter(filters), None)).__name__
    ),
)
def test_filters_that_are_no_bounded_json_are_refused(filters):
    with pytest.raises(KnowledgeInvalidRequest):
        request(filters=filters)


@pytest.mark.clause("request.filters")
def test_filters_that_hold_themselves_are_refused():
    loop: dict = {}
    loop["a"] = [loop]
    with pytest.raises(KnowledgeInvalidRequest):
        request(filters=loop)


@pytest.mark.clause("request.filters", "response.json")
def test_filters_are_plain_built_in_types():
    kept = request(filters={"i": hostile.LyingInt(3), "f": hostile.LyingFloat(0.5), "s": hostile.LyingStr("s")}).filters
    assert kept == {"i": 3, "f": 0.5, "s": "s"}
    assert {type(value) for value in kept.values()} == {int, float, str}


@pytest.mark.clause("request.filters")
@pytest.mark.parametrize("filters", [None, {}])
def test_no_filters_are_none(filters):
    assert request(filters=filters).filters is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.clause("request.query", "request.top_k", "request.knowledge_base_ids", "request.filters")
@given(query=json_values, top_k=json_values, ids=json_values, filters=json_values)
@settings(max_examples=150, deadline=None, database=None)
def test_whatever_a_model_writes_gives_a_valid_request_or_an_error_of_the_list(query, top_k, ids, filters):
    try:
        made = RetrievalRequest(query=query, top_k=top_k, knowledge_base_ids=ids, filters=filters)
    except KnowledgeError:
        return
    assert 0 < len(made.query) <= 500
    assert made.top_k in range(1, 9)
    assert len(made.knowledge_base_ids) <= 8
    assert all(0 < len(base_id) <= 120 for base_id in made.knowledge_base_ids)


@pytest.mark.clause("context.trusted")
@pytest.mark.parametrize("owner_id", ["", " \n", None, 5, b"owner", ["owner"], True])
def test_a_context_needs_an_owner(owner_id):
    with pytest.raises(KnowledgeOwnerRequired):
        RetrievalContext(owner_id=owner_id)


@pytest.mark.clause("context.trusted", "context.signal")
@pytest.mark.parametrize("name", ["session_id", "turn_id", "trace_id", "signal"])
@pytest.mark.parametrize("value", [None, 5, b"x", ["x"]])
def test_a_context_refuses_another_type(name, value):
    with pytest.raises(KnowledgeInvalidRequest, match=name):
        RetrievalContext(owner_id="o", **{name: value})


@pytest.mark.clause("context.trusted")
def test_a_context_may_leave_all_but_the_owner_out():
    context = RetrievalContext(owner_id="o")
    assert (context.session_id, context.turn_id, context.trace_id) == ("", "", "")
    assert isinstance(context.signal, CancelSignal)
    assert context.signal is not RetrievalContext(owner_id="o").signal


@pytest.mark.clause("context.trusted", "describe.frozen")
@pytest.mark.parametrize(
    "value",
    [
        request(),
        RetrievalContext(owner_id="o"),
        RetrievalResult(id="1", content="x"),
        Source(),
        ProviderHealth(status="ready"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_the_protocol_cannot_be_changed(value):
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, "other")
    assert not hasattr(value, "__dict__")


@pytest.mark.clause("health.states")
@pytest.mark.parametrize(
    ("status", "ok"), [("ready", True), ("degraded", True), ("unconfigured", False), ("unavailable", False)]
)
def test_health_is_ok_when_retrieval_is_worth_trying(status, ok):
    assert ProviderHealth(status=status).ok is ok
