"""What comes out of documents, hostile ones first."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import math
import uuid
from typing import Any

import numpy
import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack.utils.filters import document_matches_filter
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_adapter_haystack._convert import to_results
from qak_adapter_haystack._filters import from_haystack, to_haystack
from qak_adapter_haystack._wanted import Wanted
from qak_core import KnowledgeError, KnowledgeFiltersUnsupported, KnowledgeInvalidRequest, RetrievalResult, Source
from qak_core.authoring import Reading, Scope, matches, parse_filter


def read(documents: list[Any], reading: Reading, *, wanted: Any = None, **options: Any) -> list[RetrievalResult]:
    return to_results(documents, reading, limit=8, wanted=Wanted(scope=Scope(wanted=wanted)), **options)


def one(reading: Reading | None = None, *, content: str = "text", **fields: Any) -> RetrievalResult:
    (result,) = read([Document(content=content, **fields)], reading or Reading())
    return result


def one_of(document: Document, reading: Reading) -> RetrievalResult:
    (result,) = read([document], reading)
    return result


def place(**meta: Any) -> str | None:
    source = one(meta=meta).source
    return source.locator if source else None


# Hostile


class Trap:
    """Raises whatever is read of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pytest looks for a name
            raise AttributeError(name)
        raise RuntimeError("sk-planted-0123456789abcdefghij")


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "foreign", [None, "text", 5, {}, [], Trap(), object(), Document, {"content": "dict"}, "trapped"]
)
def test_what_is_no_document_is_left_out_and_harms_no_other(foreign) -> None:
    if foreign == "trapped":
        foreign = Document(content="text", meta={"title": Trap})
        foreign.meta["title"] = Trap()
    assert [result.id for result in read([foreign, Document(id="a", content="text")], Reading())] == ["a"]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (None, None),
        (0.5, 0.5),
        (3, 3.0),
        (-1.5, -1.5),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        (True, None),
        ("0.9", None),
        ("<float32>", None),
        (numpy.float32(0.5), 0.5),
        (numpy.float64("nan"), None),
        (numpy.int64(2), 2.0),
        (numpy.bool_(True), None),
        (numpy.array([0.5]), None),
        ([0.5], None),
        (decimal.Decimal("0.5"), None),
        (Trap, None),
    ],
)
def test_score_is_a_finite_number_or_nothing(score, expected) -> None:
    document = Document(id="a", content="text")
    object.__setattr__(document, "__dict__", {**vars(document), "score": score})
    found = one_of(document, Reading(score="similarity")).score
    assert found == expected
    assert found is None or type(found) is float


def test_metadata_is_flat_plain_and_without_what_is_internal() -> None:
    when = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
    number = uuid.UUID(int=7)
    meta = {
        "kept": "text",
        "count": numpy.int64(3),
        "when": when,
        "uuid": number,
        "colour": Colour.RED,
        "ratio": numpy.float32(0.5),
        7: "integer key",
        "none": None,
        "nan": math.nan,
        "nested": {"deep": {"deeper": 1}},
        "list": [1, 2],
        "array": numpy.zeros(3),
        "embedding": [0.1],
        "_split_overlap": [{"doc_id": "x", "range": (0, 5)}],
        "__children_ids": ["a"],
    }
    document = Document(content="text", meta={}, embedding=[0.1], sparse_embedding=SparseEmbedding([1], [0.5]))
    document.meta.update(meta)
    before = copy.copy(document.meta)
    (result,) = read([document], Reading())
    assert result.metadata == {
        "kept": "text",
        "count": 3,
        "when": when.isoformat(),
        "uuid": str(number),
        "colour": "red",
        "ratio": 0.5,
        "7": "integer key",
    }
    assert document.meta == before


def test_ten_thousand_keys_are_read() -> None:
    assert len(one(meta={f"key{n}": n for n in range(10_000)}).metadata) == 10_000


@settings(max_examples=60, deadline=None)
@given(
    meta=st.dictionaries(
        st.sampled_from(
            "title url uri source link file_path file_name page_label page_number start_line end_line header "
            "parent_headers split_idx_start row_number source_id mime_type locator id notice x".split()
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=3),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
    ),
)
def test_any_metadata_gives_a_plain_result(meta) -> None:
    document = Document(id="a", content="text")
    document.meta.update(meta)
    (result,) = read([document], Reading(id_key="x", citation_keys={"title": "x"}))
    assert type(result.id) is str
    assert all(type(value) in {str, int, float, bool} for value in result.metadata.values())
    source = result.source or Source()
    fields = (source.id, source.title, source.uri, source.mime_type, source.locator)
    assert all(value is None or (type(value) is str and value) for value in fields)
    assert source.uri is None or source.uri.lower().startswith(("http://", "https://"))


# Ids


def test_id_is_the_declared_key_then_the_documents_own() -> None:
    assert one(id="own").id == "own"
    assert one(Reading(id_key="number"), id="own", meta={"number": 7}).id == "7"
    assert one(Reading(id_key="number"), id="own", meta={"number": True}).id == "own"
    assert "number" not in one(Reading(id_key="number"), id="own", meta={"number": 7}).metadata


@pytest.mark.parametrize("bad", [None, "", " ", True, [1], 1.5])
def test_missing_id_is_made_of_what_names_the_passage(bad) -> None:
    document = Document(content="text", meta={"title": "T", "page_number": 3})
    object.__setattr__(document, "__dict__", {**vars(document), "id": bad})
    first, again, other = (read([document], Reading(), base=base)[0].id for base in ("a", "a", "b"))
    assert first == again
    assert (len(first), first[:2], other[:2]) == (34, "a:", "b:")
    assert first[2:] != other[2:]


# Source


@pytest.mark.parametrize(
    ("meta", "title"),
    [
        ({"title": "T", "file_name": "f.pdf"}, "T"),
        ({"file_name": "f.pdf"}, "f.pdf"),
        ({"file_path": "/home/bob/docs/f.pdf"}, "f.pdf"),
        ({"file_path": "C:\\Users\\bob\\f.pdf"}, "f.pdf"),
        ({"source": "file:///srv/f.pdf"}, "f.pdf"),
        ({"source": "https://docs.example.com/f"}, None),
        ({"title": " ", "file_name": 5}, None),
    ],
)
def test_title_is_a_name_and_never_a_path(meta, title) -> None:
    result = one(meta=meta)
    assert (result.source.title if result.source else None) == title
    assert "bob" not in repr(result)
    assert "/srv" not in repr(result)


@pytest.mark.parametrize(
    ("meta", "uri"),
    [
        ({"url": "https://a.example.com/x"}, "https://a.example.com/x"),
        ({"url": "ftp://a", "link": "HTTP://a.example.com"}, "HTTP://a.example.com"),
        ({"source": "https://a.example.com/x"}, "https://a.example.com/x"),
        ({"source": "/etc/passwd", "uri": "javascript:alert(1)"}, None),
        ({"url": ["https://a.example.com"]}, None),
    ],
)
def test_uri_is_a_web_address_or_nothing(meta, uri) -> None:
    source = one(meta=meta).source
    assert (source.uri if source else None) == uri


def test_declared_keys_come_first_and_become_no_metadata() -> None:
    reading = Reading(
        citation_keys={"id": "doc", "title": "name", "uri": "where.web", "mime_type": "kind", "locator": "part"}
    )
    meta = {
        "doc": 12,
        "name": "N",
        "where": {"web": "https://a.example.com"},
        "kind": "text/plain",
        "part": 4,
        "title": "other",
    }
    result = one(reading, meta=meta)
    assert result.source == Source(id="12", title="N", uri="https://a.example.com", mime_type="text/plain", locator="4")
    assert result.metadata == {"title": "other"}


@pytest.mark.parametrize(
    ("meta", "locator"),
    [
        ({"page_number": 1}, "page 1"),
        ({"page_number": 0}, "page 0"),
        ({"page_number": 3.0}, "page 3"),
        ({"page_number": "12"}, "page 12"),
        ({"page_number": True}, None),
        ({"page_number": -1}, None),
        ({"page_number": "²"}, None),
        ({"page_label": "iv", "page_number": 4}, "page iv"),
        ({"page_label": "", "page_number": 4}, "page 4"),
        ({"page_label": 7, "page_number": 4}, "page 7"),
        ({"start_line": 3, "end_line": 9}, "lines 3-9"),
        ({"start_line": 3}, "lines 3"),
        ({"header": "B", "parent_headers": ["A", ""]}, "section A > B"),
        ({"split_idx_start": 0}, "characters 0-4"),
        ({"row_number": 0}, "row 0"),
        ({"page_number": 2, "split_idx_start": 10, "row_number": 1}, "page 2; characters 10-14; row 1"),
        ({"locator": "section=roles", "page_number": 2}, "section=roles"),
        ({"header": "x" * 500}, "section " + "x" * 192),
        ({}, None),
    ],
)
def test_locator_says_where_a_passage_stands(meta, locator) -> None:
    assert place(**meta) == locator


# Filters

VALUES = st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["a", "b", ""])
COMPARISONS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["eq", "ne"]), "key": st.sampled_from(["x", "y", "z"]), "value": VALUES}
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["gt", "gte", "lt", "lte"]),
            "key": st.just("n"),
            "value": st.integers(-3, 3) | st.floats(-3, 3),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["in", "nin"]),
            "key": st.sampled_from(["x", "y", "z"]),
            "value": st.lists(VALUES, max_size=3),
        }
    ),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["and", "or"]), "filters": st.lists(inner, min_size=1, max_size=3)}
        ),
        st.fixed_dictionaries({"type": st.just("not"), "filter": inner}),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(
    wanted=FILTERS,
    meta=st.fixed_dictionaries({}, optional={"x": VALUES, "y": VALUES, "n": st.integers(-3, 3) | st.floats(-3, 3)}),
)
def test_translated_filter_means_in_haystack_what_it_meant_before(wanted, meta) -> None:
    parsed = parse_filter(wanted)
    native = to_haystack(parsed)
    assert document_matches_filter(native, Document(content="x", meta=meta)) == matches(parsed, meta)
    assert parse_filter(from_haystack(native)) == parsed


def test_filter_is_checked_by_type_where_haystack_is_not_strict() -> None:
    documents = [Document(id=str(n), content="x", meta={"flag": flag}) for n, flag in enumerate([True, 1, "1", None])]
    for value, expected in ((True, "0"), (1, "1"), ("1", "2")):
        wanted = parse_filter({"type": "eq", "key": "flag", "value": value})
        assert [result.id for result in read(documents, Reading(), wanted=wanted)] == [expected]


def test_filter_reads_dotted_keys_lists_and_dates() -> None:
    meta = {"a": {"b": 5}, "tags": ["x", "y"], "day": datetime.date(2026, 11, 30)}
    for key, operator, value in (("a.b", "eq", 5), ("tags", "in", ["y"]), ("day", "gte", "2026-11-01")):
        wanted = parse_filter({"type": operator, "key": key, "value": value})
        assert len(read([Document(content="x", meta=meta)], Reading(), wanted=wanted)) == 1
        assert read([Document(content="x")], Reading(), wanted=wanted) == []


@pytest.mark.parametrize(
    ("given_filter", "error"),
    [
        ({"field": "content", "operator": "==", "value": "x"}, KnowledgeFiltersUnsupported),
        ({"field": "meta.x", "operator": "like", "value": "x"}, KnowledgeInvalidRequest),
        ({"field": 5, "operator": "==", "value": "x"}, KnowledgeInvalidRequest),
        ({"operator": ["AND"], "conditions": []}, KnowledgeInvalidRequest),
        ({"operator": "AND", "conditions": []}, KnowledgeInvalidRequest),
        ({"operator": "AND", "conditions": [5]}, KnowledgeInvalidRequest),
        ({"owner": "A"}, KnowledgeInvalidRequest),
        (None, KnowledgeInvalidRequest),
    ],
)
def test_haystack_filter_that_cannot_be_read_is_refused(given_filter, error) -> None:
    with pytest.raises(error):
        from_haystack(given_filter)


def test_endlessly_nested_haystack_filter_is_refused() -> None:
    nested: dict[str, Any] = {"field": "meta.x", "operator": "==", "value": 1}
    for _ in range(5000):
        nested = {"operator": "NOT", "conditions": [nested]}
    with pytest.raises(KnowledgeError):
        from_haystack(nested)
