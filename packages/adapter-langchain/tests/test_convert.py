"""From LangChain's documents to results, hostile ones first."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from qak_adapter_langchain._convert import NUMBER_KEYS, convert, read_hits
from qak_core import RetrievalResult, Source, to_wire
from qak_core.authoring import Reading

CONTENT = "two approvers"


def read(
    document: Any, number: Any = None, *, base: str = "", score_key: str = NUMBER_KEYS[0], **declared: Any
) -> RetrievalResult | None:
    reading = Reading(**{"first_page": 0, "known_ids": (), "drop": (*NUMBER_KEYS, score_key), **declared})
    results = convert(
        [(document, number)], reading, limit=1, score_key=score_key, base=base, accept=lambda metadata: True
    )
    return results[0] if results else None


def source(metadata: dict[Any, Any], **reading: Any) -> Source:
    result = read(Document(page_content=CONTENT, metadata=metadata), **reading)
    assert result is not None
    return result.source or Source()


class Lying:
    @property
    def page_content(self) -> str:
        raise RuntimeError("sk-secret")


class LyingText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def strip(self, chars: str | None = None) -> str:
        return "another text"


def assigned(**fields: Any) -> Document:
    document = Document(page_content=CONTENT)
    for name, value in fields.items():
        setattr(document, name, value)
    return document


@pytest.mark.parametrize(
    "document",
    [
        None,
        "",
        "  \n",
        5,
        Lying(),
        {"page_content": CONTENT},
        Document(page_content=""),
        Document(page_content="\t "),
        assigned(page_content=None),
        assigned(page_content=["a list"]),
        assigned(page_content=b"bytes"),
        Document.model_construct(metadata={}),
    ],
    ids=repr,
)
def test_document_without_readable_content_is_dropped_and_harms_no_other(document: Any) -> None:
    hits = read_hits([document, CONTENT])
    assert [r.content for r in convert(hits, Reading(), limit=8, accept=lambda _: True)] == [CONTENT]


def test_text_that_lies_about_itself_becomes_plain() -> None:
    result = read(assigned(page_content=LyingText(CONTENT), id=LyingText("x"), metadata={"title": LyingText("t")}))
    assert result is not None
    assert type(result.content) is str
    assert result.content == CONTENT


@pytest.mark.parametrize("metadata", [None, "text", [("a", 1)], 5], ids=repr)
def test_metadata_that_is_no_mapping_is_empty(metadata: Any) -> None:
    result = read(assigned(metadata=metadata))
    assert result is not None
    assert result.metadata == {}
    assert result.source is None


@pytest.mark.parametrize(
    ("number", "score"),
    [
        *((0.5, 0.5), (1, 1.0), (-0.25, -0.25), (np.float32(0.5), 0.5), (np.float64(0.5), 0.5), (np.array(0.5), 0.5)),
        *((None, None), (True, None), (np.True_, None), ("0.5", None), ("VERY_HIGH", None), (math.nan, None)),
        *((math.inf, None), (-math.inf, None), (np.float32("nan"), None), ([0.5], None), (np.zeros(2), None)),
        *((10**400, None), (Decimal("0.5"), None), (object(), None)),
    ],
    ids=repr,
)
def test_score_is_a_finite_number_or_absent(number: Any, score: float | None) -> None:
    result = read(Document(page_content=CONTENT), number, score="similarity")
    assert result is not None
    assert result.score == score
    assert type(result.score) in {float, type(None)}


@pytest.mark.parametrize("scored", [True, False])
def test_score_of_a_retriever_is_the_one_under_the_declared_key(scored: bool) -> None:
    score = "similarity" if scored else "distance"
    document = Document(page_content=CONTENT, metadata={"relevance_score": 0.75, "score": 9, "rank_score": 0.5})
    results = [read(document, score=score), read(document, score=score, score_key="rank_score")]
    assert [result and result.score for result in results] == ([0.75, 0.5] if scored else [None, None])
    assert not {"score", "relevance_score"} & set(results[0].metadata)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("document", "reading", "wanted"),
    [
        (Document(page_content=CONTENT, id="own", metadata={"key": "declared"}), {"id_key": "key"}, "declared"),
        (Document(page_content=CONTENT, id="own", metadata={"key": "declared"}), {}, "own"),
        (Document(page_content=CONTENT, metadata={"key": "declared", "_id": 7}), {"id_key": "key"}, "declared"),
        (Document(page_content=CONTENT, metadata={"key": 5}), {"id_key": "key"}, "5"),
        (Document(page_content=CONTENT, metadata={"_id": 7, "id": "x"}), {}, "7"),
        (Document(page_content=CONTENT, metadata={"_id": UUID(int=7)}), {}, str(UUID(int=7))),
        (Document(page_content=CONTENT, metadata={"id": "x", "chunk_id": "y"}), {}, "x"),
        (Document(page_content=CONTENT, metadata={"chunk_id": " y "}), {}, "y"),
        (assigned(id=5), {}, "5"),
        (assigned(id=np.int64(5)), {}, "5"),
        (assigned(id="a", metadata={}), {"base": "kb"}, "kb:a"),
    ],
)
def test_id_is_the_first_that_is_given(document: Any, reading: dict[str, Any], wanted: str) -> None:
    result = read(document, **reading)
    assert result is not None
    assert result.id == wanted


@pytest.mark.parametrize("document_id", [None, "", " ", True, 1.5, ["x"], {"a": 1}], ids=repr)
def test_id_that_is_none_is_made_from_what_names_the_passage(document_id: Any) -> None:
    metadata = {"source": "a.pdf", "page": 1}
    first, again, elsewhere = (
        read(assigned(id=document_id, metadata={**metadata, **more})) for more in ({}, {"other": 1}, {"page": 2})
    )
    assert first is not None
    assert again is not None
    assert elsewhere is not None
    assert len(first.id) == 32
    assert first.id == again.id != elsewhere.id


@pytest.mark.parametrize(
    ("metadata", "locator"),
    [
        ({"page": 0}, "page 1"),
        ({"page": 4, "page_label": "iv", "total_pages": 9}, "page iv"),
        ({"page": 4, "page_label": 5}, "page 5"),
        ({"page": 4, "page_label": ""}, "page 5"),
        ({"page": 2, "page_number": 2}, "page 2"),
        ({"page_number": 3.0}, "page 3"),
        ({"page_number": "3"}, "page 3"),
        ({"page": np.int64(2)}, "page 3"),
        ({"page": True}, None),
        ({"page": -1}, None),
        ({"page": 1.5}, None),
        ({"page": "iv"}, None),
        ({"page": math.nan}, None),
        ({"page": None, "row": 0}, "row 0"),
        ({"seq_num": 1}, "seq_num 1"),
        ({"start_line": 3, "end_line": 9}, "lines 3-9"),
        ({"start_line": 3, "end_line": 3}, "lines 3"),
        ({"loc": {"lines": {"from": 1, "to": 8}}}, "lines 1-8"),
        ({"loc": "https://example.com/sitemap"}, None),
        ({"Header 1": "Handbook", "Header 3": "Rules", "Header 2": "Releases"}, "section Handbook > Releases > Rules"),
        ({"start_index": 0}, "characters 0-13"),
        ({"page": 0, "start_index": 7}, "page 1; characters 7-20"),
        ({"locator": "page 7", "page": 0}, "page 7"),
        ({"Header 1": "x" * 500}, "section " + "x" * 192),
        ({}, None),
    ],
    ids=repr,
)
def test_locator_says_where_as_the_source_counts(metadata: dict[str, Any], locator: str | None) -> None:
    assert source(metadata).locator == locator


def test_locator_counts_pages_from_one_where_the_host_says_so() -> None:
    assert source({"page": 3}, first_page=1).locator == "page 3"
    assert source({"page": 0}, first_page=1).locator is None


@pytest.mark.parametrize(
    ("metadata", "title", "uri"),
    [
        ({"title": "Rules", "source": "/home/me/rules.pdf"}, "Rules", None),
        ({"source": "/home/me/rules.pdf"}, "rules.pdf", None),
        ({"source": r"C:\Users\me\rules.pdf"}, "rules.pdf", None),
        ({"source": PurePosixPath("/srv/rules.pdf")}, "rules.pdf", None),
        ({"source": "s3://bucket/rules.pdf?X-Amz-Signature=abc"}, "rules.pdf", None),
        ({"source": "file:///srv/rules.pdf"}, "rules.pdf", None),
        ({"filename": "rules.pdf", "file_directory": "/home/me"}, "rules.pdf", None),
        ({"source": "https://docs.example.com/rules"}, None, "https://docs.example.com/rules"),
        ({"source": "HTTPS://docs.example.com/"}, None, "HTTPS://docs.example.com/"),
        ({"url": "https://a.example.com", "source": "https://b.example.com"}, None, "https://a.example.com"),
        ({"url": "javascript:alert(1)", "link": "https://c.example.com"}, None, "https://c.example.com"),
        ({"url": 5, "title": ["x"], "source": None}, None, None),
        ({"title": "  "}, None, None),
    ],
    ids=repr,
)
def test_title_and_address_are_found_and_local_paths_stay_here(
    metadata: dict[str, Any], title: str | None, uri: str | None
) -> None:
    result = read(Document(page_content=CONTENT, metadata=metadata))
    assert result is not None
    found = result.source or Source()
    assert (found.title, found.uri) == (title, uri)
    assert "/home" not in repr(result)
    assert "Users" not in repr(result)


def test_source_has_id_and_mime_type() -> None:
    found = source({"document_id": 5, "mime_type": "text/markdown", "filetype": "application/pdf"})
    assert (found.id, found.mime_type) == ("5", "text/markdown")
    assert source({"mime_type": "markdown", "filetype": "application/pdf"}).mime_type == "application/pdf"


def test_declared_citation_keys_come_before_the_known_ones() -> None:
    keys = {"title": "headline", "uri": "permanent", "id": "ref", "mime_type": "kind", "locator": "place"}
    metadata = {"headline": "H", "permanent": "https://e.example.com", "ref": "r", "kind": "text/x", "place": "p"}
    known = {"title": "T", "url": "https://f.example.com", "document_id": "d", "mime_type": "a/b", "page": 1}
    found = source({**metadata, **known}, citation_keys=keys)
    assert found == Source(id="r", title="H", uri="https://e.example.com", mime_type="text/x", locator="p")
    assert source(known, citation_keys=keys).title == "T"


def test_metadata_is_flat_and_holds_neither_paths_nor_vectors_nor_the_owner() -> None:
    metadata: dict[Any, Any] = {
        "text": "t",
        "whole": 1,
        "real": 0.5,
        "flag": True,
        "none": None,
        5: "five",
        None: "x",
        "when": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "amount": Decimal("1.5"),
        "nested": {"a": 1},
        "list": [1],
        "embedding": [0.1],
        "vector": np.zeros(3),
        "_id": 5,
        "_score": 1,
        "nan": math.nan,
        "owner": "owner-a",
        "source": "/home/me/x",
        "bytes": b"x",
        "score": 9,
        "distance": 1,
    }
    result = read(Document(page_content=CONTENT, metadata=metadata), owner_key="owner")
    assert result is not None
    assert result.metadata == {
        "text": "t",
        "whole": 1,
        "real": 0.5,
        "flag": True,
        "5": "five",
        "when": "2026-01-02T03:04:00+00:00",
        "day": "2026-01-02",
        "amount": "1.5",
    }


def test_document_that_comes_twice_is_kept_once_and_another_with_its_id_stays() -> None:
    hits = read_hits([Document(page_content=text, id="file") for text in ("a", "b", "a", "c")])
    results = convert(hits, Reading(), limit=8, accept=lambda _: True)
    assert [result.content for result in results] == ["a", "b", "c"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN = st.sampled_from(["id", "_id", "title", "source", "url", "page", "page_label", "loc", "start_index", "row"])


@given(st.dictionaries(KNOWN | st.text(max_size=8), JSON, max_size=8), JSON, JSON, JSON)
def test_whatever_a_document_holds_a_result_is_plain(
    metadata: dict[str, Any], document_id: Any, content: Any, number: Any
) -> None:
    result = read(assigned(id=document_id, page_content=content, metadata=metadata), number, score="similarity")
    assert (result is None) is not (isinstance(content, str) and bool(content.strip()))
    if result is not None:
        assert result.id
        json.dumps(to_wire(result), allow_nan=False)
