import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core import KnowledgeError, KnowledgeInvalidRequest
from qak_core.authoring import Comparison, Compound, all_of, matches, parse_filter

pytestmark = pytest.mark.clause("request.filters")


def compare(operator, value, key="k"):
    return {"type": operator, "key": key, "value": value}


def nested(depth):
    made = compare("eq", 1)
    for _ in range(depth):
        made = {"type": "not", "filter": made}
    return made


def test_a_filter_is_read_into_its_parts():
    given_filter = {
        "type": "and",
        "filters": [
            compare("eq", "x"),
            {"type": "or", "filters": [compare("in", [1, True])]},
            {"type": "not", "filter": compare("lt", 2)},
        ],
    }
    assert parse_filter(given_filter) == Compound(
        operator="and",
        filters=(
            Comparison(operator="eq", key="k", value="x"),
            Compound(operator="or", filters=(Comparison(operator="in", key="k", value=(1, True)),)),
            Compound(operator="not", filters=(Comparison(operator="lt", key="k", value=2),)),
        ),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "eq",
        {},
        compare("like", "x"),
        compare("EQ", "x"),
        compare("", "x"),
        compare(None, "x"),
        compare([], "x"),
        compare({}, "x"),
        compare("eq", "x", key=""),
        compare("eq", "x", key=5),
        compare("eq", None),
        compare("eq", [1]),
        compare("eq", {"a": 1}),
        compare("eq", float("nan")),
        compare("gt", True),
        compare("lte", float("inf")),
        compare("in", "x"),
        compare("in", [None]),
        compare("in", [[1]]),
        {**compare("eq", 1), "owner": "x"},
        {"type": "eq", "key": "k"},
        {"type": "and", "filters": []},
        {"type": "and", "filters": compare("eq", 1)},
        {"type": "and", "filter": compare("eq", 1)},
        {"type": "not", "filters": [compare("eq", 1)]},
        {"type": "not", "filter": None},
        nested(9),
        nested(500),
        {"type": "or", "filters": [compare("eq", 1)] * 64},
    ],
    ids=lambda wrong: json.dumps(wrong)[:60],
)
def test_another_filter_is_refused(wrong):
    with pytest.raises(KnowledgeInvalidRequest):
        parse_filter(wrong)


@pytest.mark.parametrize("right", [nested(8), {"type": "or", "filters": [compare("eq", 1)] * 63}, compare("in", [])])
def test_a_filter_within_the_bounds_is_read(right):
    parse_filter(right)


METADATA = {"text": "b", "n": 2, "real": 2.0, "flag": True, "tags": ["a", "b"], "none": None}


@pytest.mark.parametrize(
    ("operator", "key", "value", "expected"),
    [
        ("eq", "text", "b", True),
        ("eq", "text", "B", False),
        ("eq", "n", 2.0, True),
        ("eq", "n", "2", False),
        ("eq", "flag", 1, False),
        ("eq", "n", True, False),
        ("eq", "missing", "b", False),
        ("eq", "none", "b", False),
        ("ne", "text", "b", False),
        ("ne", "n", "2", True),
        ("ne", "missing", "b", True),
        ("gt", "n", 1, True),
        ("gt", "n", 2, False),
        ("gte", "n", 2, True),
        ("gte", "n", 10**400, False),
        ("lt", "text", "c", True),
        ("lt", "n", "3", False),
        ("lt", "flag", 2, False),
        ("lte", "real", 2, True),
        ("gt", "missing", 0, False),
        ("lte", "missing", 0, False),
        ("in", "text", ["a", "b"], True),
        ("in", "n", ["2"], False),
        ("in", "missing", ["a"], False),
        ("in", "text", [], False),
        ("nin", "text", ["a", "b"], False),
        ("nin", "missing", ["a"], True),
        ("eq", "tags", "a", True),
        ("ne", "tags", "a", False),
        ("in", "tags", ["z", "b"], True),
        ("nin", "tags", ["z"], True),
    ],
)
def test_comparison_is_typed_and_a_missing_key_matches_only_negation(operator, key, value, expected):
    wanted = parse_filter(compare(operator, value, key=key))
    assert matches(wanted, METADATA) is expected
    assert matches(parse_filter({"type": "not", "filter": compare(operator, value, key=key)}), METADATA) is not expected


@pytest.mark.parametrize(("operator", "expected"), [("and", False), ("or", True)])
def test_filters_combine(operator, expected):
    wanted = parse_filter({"type": operator, "filters": [compare("eq", 2, key="n"), compare("eq", 3, key="n")]})
    assert matches(wanted, METADATA) is expected


@pytest.mark.clause("context.trusted")
def test_a_hosts_filter_and_a_callers_both_hold_when_joined():
    host, caller = (parse_filter(compare("eq", owner, key="owner")) for owner in ("a", "b"))
    assert all_of() is None
    assert all_of(None, host, None) is host
    joined = all_of(host, caller)
    assert [matches(joined, {"owner": owner}) for owner in ("a", "b", "c")] == [False] * 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["eq", "and", "not", "in", "k", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "key", "value", "filters", "filter"]), inner)
    ),
)


@given(given_filter=json_values, metadata=st.dictionaries(st.sampled_from(["k", "x"]), json_values))
@settings(max_examples=300, deadline=None, database=None)
def test_whatever_is_given_as_a_filter_is_read_or_refused(given_filter, metadata):
    try:
        wanted = parse_filter(given_filter)
    except KnowledgeError:
        return
    assert matches(wanted, metadata) in {True, False}
