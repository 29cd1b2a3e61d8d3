import copy
import json
import math
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qak_core import RetrievalResult, Source, to_wire
from qak_core.authoring import Reading, read_passages

pytestmark = pytest.mark.clause("response.source", "response.id", "response.metadata")

CONTENT = "two approvers"


def read(metadata=None, *, own_id="x", score=None, base="", **declared):
    return Reading(**declared).result(CONTENT, metadata or {}, own_id=own_id, score=score, base=base)


def source(metadata, **declared):
    return read(metadata, **declared).source or Source()


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        *((0.5, 0.5), (1, 1.0), (-0.25, -0.25), (None, None), (True, None), ("0.5", None), (math.nan, None)),
        *((math.inf, None), (10**400, None), ([0.5], None), (object(), None)),
    ],
    ids=repr,
)
def test_score_is_a_finite_number_or_absent(score, expected):
    found = Reading(score="similarity").result(CONTENT, {}, score=score)
    assert found.score == expected
    assert type(found.score) in {float, type(None)}


@pytest.mark.parametrize("kind", ["distance", "none"])
def test_only_a_similarity_is_a_score(kind):
    assert Reading(score=kind).result(CONTENT, {}, score=0.5).score is None


def test_id_is_the_declared_key_then_the_vendors_then_a_known_one():
    metadata = {"sku": 42, "chunk_id": "c", "id": "i"}
    assert read(metadata, id_key="sku").id == "42"
    assert read(metadata, id_key="absent").id == "x"
    assert read(metadata).id == "x"
    assert read(metadata, own_id=None).id == "c"
    assert read(metadata, own_id=None, known_ids=("id",)).id == "i"
    assert read({"a": {"b": "deep"}}, id_key="a.b").id == "deep"
    assert read(base="kb").id == "kb:x"


@pytest.mark.parametrize("own_id", [None, "", " ", True, 1.5, ["x"]], ids=repr)
def test_id_that_is_missing_is_made_of_what_names_the_passage(own_id):
    first = read({"url": "https://example.com/a", "page_label": "1"}, own_id=own_id).id
    assert len(first) == 32
    assert first == read({"url": "https://example.com/a", "page_label": "1", "colour": "red"}, own_id=own_id).id
    others = [
        read({"url": "https://example.com/b", "page_label": "1"}, own_id=own_id).id,
        read({"url": "https://example.com/a", "page_label": "2"}, own_id=own_id).id,
        read({"url": "https://example.com/a", "page_label": "1"}, own_id=own_id, base="kb").id.partition(":")[2],
        Reading().result("other", {"url": "https://example.com/a", "page_label": "1"}).id,
    ]
    assert len({first, *others}) == 5


@pytest.mark.parametrize(
    ("metadata", "locator"),
    [
        ({"page_label": "iv", "page_number": 4}, "page iv"),
        ({"page_label": "", "page_number": 4}, "page 4"),
        ({"page_label": 0}, "page 0"),
        ({"page_number": 3.0}, "page 3"),
        ({"page_number": "12"}, "page 12"),
        *(({"page_number": bad}, None) for bad in (True, -1, 1.5, "²", "x", math.nan, 10**400)),
        ({"page": 4}, None),
        ({"start_line": 3, "end_line": 9}, "lines 3-9"),
        ({"start_line": 3, "end_line": 3}, "lines 3"),
        ({"start_line": 9, "end_line": 3}, "lines 9"),
        ({"end_line": 3}, None),
        ({"loc": {"lines": {"from": 1, "to": 8}}}, "lines 1-8"),
        ({"loc": "https://example.com/sitemap"}, None),
        ({"header_path": "/Lamps/Bulbs/"}, "section Lamps/Bulbs"),
        ({"header_path": "/"}, None),
        ({"header": "B", "parent_headers": ["A", ""]}, "section A > B"),
        ({"Header 1": "Handbook", "Header 3": "Rules", "Header 2": "Releases"}, "section Handbook > Releases > Rules"),
        ({"start_index": 0}, "characters 0-13"),
        ({"split_idx_start": 7}, "characters 7-20"),
        ({"row": 0}, "row 0"),
        ({"row_number": 2}, "row 2"),
        ({"seq_num": 1}, "seq_num 1"),
        ({"page_number": 2, "start_index": 10, "row": 1}, "page 2; characters 10-23; row 1"),
        ({"locator": "section=roles", "page_number": 2}, "section=roles"),
        ({"header": "x" * 500}, "section " + "x" * 192),
        ({}, None),
    ],
    ids=repr,
)
def test_locator_names_every_part_that_is_known(metadata, locator):
    assert source(metadata).locator == locator


@pytest.mark.parametrize(
    ("first_page", "page", "locator"),
    [(0, 0, "page 1"), (0, "4", "page 5"), (1, 3, "page 3"), (1, 0, None), (0, True, None), (None, 3, None)],
)
def test_page_is_counted_as_the_host_says(first_page, page, locator):
    result = read({"page": page}, first_page=first_page)
    assert (result.source.locator if result.source else None) == locator
    assert ("page" in result.metadata) is (locator is None)


def test_characters_may_be_told_by_the_vendor():
    result = Reading().result(CONTENT, {"page_label": "2"}, characters=(0, 120))
    assert result.source == Source(locator="page 2; characters 0-120")


@pytest.mark.parametrize(
    ("metadata", "title", "uri"),
    [
        ({"title": "Rules", "source": "/home/me/rules.pdf"}, "Rules", None),
        ({"document_title": "Rules", "file_name": "a.pdf"}, "Rules", None),
        ({"title": "A/B testing", "source": "https://e.example.com"}, "A/B testing", "https://e.example.com"),
        ({"source": "/home/me/rules.pdf"}, "rules.pdf", None),
        ({"source": r"C:\Users\me\rules.pdf"}, "rules.pdf", None),
        ({"source": PurePosixPath("/home/rules.pdf")}, "rules.pdf", None),
        ({"source": "s3://bucket/home/rules.pdf?X-Amz-Signature=abc"}, "rules.pdf", None),
        ({"title": "T", "source": "s3://bucket/home/rules.pdf?X-Amz-Signature=abc"}, "T", None),
        ({"uri": "file:///home/rules.pdf"}, None, None),
        ({"filename": "rules.pdf", "file_directory": "/home/me"}, "rules.pdf", None),
        ({"source": "12"}, None, None),
        ({"source": "HTTPS://docs.example.com/"}, None, "HTTPS://docs.example.com/"),
        ({"url": "https://a.example.com", "source": "https://b.example.com"}, None, "https://a.example.com"),
        ({"url": "javascript:alert(1)", "link": "https://c.example.com"}, None, "https://c.example.com"),
        ({"url": 5, "title": ["x"], "source": None}, None, None),
        ({"title": "  "}, None, None),
    ],
    ids=repr,
)
def test_title_and_address_are_found_and_local_paths_stay_here(metadata, title, uri):
    result = read(metadata)
    found = result.source or Source()
    assert (found.title, found.uri) == (title, uri)
    shown = repr({**result.metadata, "uri": None} if "uri" not in metadata else result.source)
    assert not any(private in shown for private in ("/home", "Users", "X-Amz"))


@pytest.mark.parametrize(
    ("metadata", "source_id", "expected"),
    [
        ({"source_id": "s", "doc_id": "d"}, "own", "s"),
        ({"doc_id": "d"}, "own", "own"),
        ({"document_id": 5}, None, "5"),
        ({"document_id": "None", "ref_doc_id": "r"}, "None", "r"),
        ({"document_id": "None"}, None, None),
    ],
)
def test_id_of_the_document_is_found_and_a_missing_one_is_not(metadata, source_id, expected):
    result = Reading().result(CONTENT, metadata, source_id=source_id)
    assert (result.source or Source()).id == expected
    assert "None" not in result.metadata.values()


def test_declared_keys_come_first_and_may_lie_deeper():
    keys = {"id": "doc", "title": "name", "uri": "where.web", "mime_type": "kind", "locator": "part"}
    metadata = {"doc": 12, "name": "N", "where": {"web": "https://a.example.com"}, "kind": "text/plain", "part": 4}
    result = read({**metadata, "title": "other"}, citation_keys=keys)
    assert result.source == Source(id="12", title="N", uri="https://a.example.com", mime_type="text/plain", locator="4")
    assert result.metadata == {"title": "other"}
    assert source({"title": "other"}, citation_keys=keys).title == "other"


def test_metadata_is_the_rest_without_owner_dropped_keys_and_paths():
    metadata = {
        "department": "sales",
        "owner": "alice",
        "rank": 1,
        "title": "T",
        "file_path": "/home/me/a.pdf",
        "directory": "~/notes",
        "image_path": "file:///home/me/a.png",
        "path": "chapter-1",
        "ratio": "1/2",
        "notice": "mind the step",
        "nested": {"a": 1},
        "_private": 1,
    }
    before = copy.deepcopy(metadata)
    result = read(metadata, owner_key="owner", drop=("rank",))
    assert result.metadata == {
        "department": "sales",
        "path": "chapter-1",
        "ratio": "1/2",
        "notice": "mind the step",
    }
    assert metadata == before


def test_address_that_stands_twice_is_not_repeated_and_another_is_kept():
    metadata = {
        "url": "https://e.example.com/a",
        "source": "https://e.example.com/a",
        "link": "https://e.example.com/b",
    }
    assert read(metadata).metadata == {"link": "https://e.example.com/b"}


def test_item_that_can_not_be_read_or_seen_harms_no_other_and_the_limit_is_kept():
    def one(item):
        if item is None:
            raise RuntimeError("sk-planted")
        return RetrievalResult(id="same", content=item) if item else None

    assert [r.content for r in read_passages([None, "a", "", "b", "a", "c"], one, limit=8)] == ["a", "b", "c"]
    assert [r.content for r in read_passages(["a", None], one, limit=1)] == ["a"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    "title url uri source link file_path file_name page_label page_number page start_line end_line loc header "
    "parent_headers header_path split_idx_start start_index row source_id mime_type locator id notice x".split()
)


@given(st.dictionaries(KEYS | st.text(max_size=5) | st.integers(), VALUES, max_size=8), VALUES, VALUES)
def test_whatever_a_passage_holds_its_result_is_plain(metadata, own_id, score):
    declared = Reading(score="similarity", id_key="x", citation_keys={"title": "x", "uri": "x"}, first_page=0)
    result = declared.result(CONTENT, metadata, own_id=own_id, score=score)
    assert type(result.id) is str
    assert result.id
    json.dumps(to_wire(result), allow_nan=False)
    found = result.source or Source()
    assert all(value is None or value for value in (found.id, found.title, found.uri, found.mime_type, found.locator))
    assert found.uri is None or found.uri.lower().startswith(("http://", "https://"))
