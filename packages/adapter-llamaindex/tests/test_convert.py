"""What becomes of a node's fields; hostile values first."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import pathlib
import uuid
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from qak_adapter_llamaindex._convert import results
from qak_core import RetrievalResult, Source, to_wire
from qak_core.authoring import Reading


def read(*nodes: Any, **reading: Any) -> list[RetrievalResult]:
    return results(list(nodes), Reading(**reading), limit=8, base="", admits=lambda _: True)


def source(metadata: dict[str, Any], **reading: Any) -> Source | None:
    (result,) = read(NodeWithScore(node=TextNode(text="lamp", metadata=metadata)), **reading)
    return result.source


class Colour(enum.Enum):
    RED = "red"


class Hostile:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Shouting(str):
    """A string that is none of the built-in ones."""

    __slots__ = ()


def test_node_that_cannot_be_read_harms_no_other() -> None:
    for hostile in (Hostile(), None, 7, "text", object(), SimpleNamespace(node=None), [], {}):
        assert [result.content for result in read(hostile, TextNode(text="lamp"), hostile)] == ["lamp"]


def test_content_that_is_no_text_is_dropped() -> None:
    for content in (None, b"bytes", 7, [], "", " \n"):
        assert read(SimpleNamespace(node_id="n", metadata={}, get_content=lambda metadata_mode, c=content: c)) == []


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.5, 0.5),
        (2, 2.0),
        (-0.25, -0.25),
        (numpy.float32(0.5), 0.5),
        (numpy.float64(0.5), 0.5),
        (numpy.int64(3), 3.0),
        (numpy.array(0.5), 0.5),
        (None, None),
        (True, None),
        (numpy.bool_(True), None),
        ("0.5", None),
        ("<float32>", None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        (numpy.float32("nan"), None),
        (numpy.array([0.5]), None),
        ([0.5], None),
    ],
)
def test_score_is_a_finite_number_or_absent(score: Any, expected: float | None) -> None:
    (result,) = read(SimpleNamespace(node=TextNode(text="lamp"), score=score), score="similarity")
    assert result.score == expected
    assert result.score is None or type(result.score) is float


def test_id_is_the_declared_key_else_the_nodes_own_else_derived() -> None:
    node = TextNode(id_="own", text="lamp", metadata={"sku": 42, "id": "other"})
    assert [result.id for result in read(node, id_key="sku")] == ["42"]
    assert [result.id for result in read(node)] == ["own"]
    assert [result.id for result in read(node, id_key="absent")] == ["own"]
    bare = TextNode(id_="", text="lamp", metadata={"chunk_id": "c1"})
    assert [result.id for result in read(bare)] == ["c1"]


def test_derived_id_depends_on_source_place_and_text_alone() -> None:
    def derived(text: str, **metadata: Any) -> str:
        (result,) = read(TextNode(id_="", text=text, metadata=metadata))
        return result.id

    first = derived("lamp", url="https://example.com/a", page_label="1", colour="red")
    assert first == derived("lamp", url="https://example.com/a", page_label="1", colour="blue")
    others = {
        derived("lamps", url="https://example.com/a", page_label="1"),
        derived("lamp", url="https://example.com/b", page_label="1"),
        derived("lamp", url="https://example.com/a", page_label="2"),
    }
    assert len(others | {first}) == 4


def test_metadata_is_flat_and_plain() -> None:
    metadata = {
        "text": "x",
        "subtext": Shouting("y"),
        "flag": True,
        "number": 7,
        "real": 0.5,
        "numpy": numpy.float32(0.5),
        "day": datetime.date(2026, 1, 2),
        "moment": datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
        "uuid": uuid.UUID(int=1),
        "price": decimal.Decimal("1.50"),
        "colour": Colour.RED,
        "place": pathlib.PurePosixPath("a/b"),
        5: "integer key",
        "nan": math.nan,
        "none": None,
        "list": [1, 2],
        "nested": {"a": 1},
        "array": numpy.array([1.0]),
        "embedding": [0.1],
        "_node_content": "{}",
        (1, 2): "tuple key",
    }
    (result,) = read(SimpleNamespace(node_id="n", metadata=metadata, get_content=lambda metadata_mode: "lamp"))
    assert result.metadata == {
        "text": "x",
        "subtext": "y",
        "flag": True,
        "number": 7,
        "real": 0.5,
        "numpy": 0.5,
        "day": "2026-01-02",
        "moment": "2026-01-02T03:04:00+00:00",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "price": "1.50",
        "colour": "red",
        "place": "a/b",
        "5": "integer key",
    }
    assert {type(value) for value in result.metadata.values()} == {str, bool, int, float}
    json.dumps(to_wire(result), allow_nan=False)


def test_node_is_neither_changed_nor_kept() -> None:
    metadata = {"title": "Lamps", "nested": {"a": 1}, "department": "sales"}
    node = TextNode(text="lamp", metadata=metadata)
    before = node.model_dump()
    (result,) = read(NodeWithScore(node=node, score=0.5))
    result.metadata["department"] = "changed"  # type: ignore[index]
    assert node.model_dump() == before


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({"title": "Lamps", "file_name": "a.pdf"}, "Lamps"),
        ({"title": "A/B testing", "source": "https://example.com"}, "A/B testing"),
        ({"document_title": "Lamps", "file_name": "a.pdf"}, "Lamps"),
        ({"file_name": "a.pdf", "file_path": "/home/me/a.pdf"}, "a.pdf"),
        ({"file_name": "/home/me/a.pdf"}, "a.pdf"),
        ({"file_path": "/home/me/a.pdf"}, "a.pdf"),
        ({"file_path": r"C:\Users\me\a.pdf"}, "a.pdf"),
        ({"source": "docs/a.md"}, "a.md"),
        ({"source": "12"}, None),
        ({"source": "https://example.com/a"}, None),
        ({"title": "", "file_name": "a.pdf"}, "a.pdf"),
        ({"title": ["x"]}, None),
    ],
)
def test_title_is_a_title_or_a_file_name(metadata: dict[str, Any], title: str | None) -> None:
    found = source(metadata)
    assert (found.title if found else None) == title


@pytest.mark.parametrize(
    ("metadata", "uri"),
    [
        ({"url": "https://example.com/a", "source": "https://example.com/b"}, "https://example.com/a"),
        ({"source": "HTTPS://example.com/b"}, "HTTPS://example.com/b"),
        ({"url": "ftp://example.com", "link": "http://example.com/c"}, "http://example.com/c"),
        ({"url": "javascript:alert(1)"}, None),
        ({"uri": "file:///etc/passwd"}, None),
        ({"source": "/home/me/a.pdf"}, None),
        ({"url": 7, "permalink": "https://example.com/d"}, "https://example.com/d"),
    ],
)
def test_uri_is_a_web_address(metadata: dict[str, Any], uri: str | None) -> None:
    found = source(metadata)
    assert (found.uri if found else None) == uri


def test_no_path_of_the_hosts_machine_leaves_in_metadata() -> None:
    metadata = {
        "file_path": "/home/me/secret/a.pdf",
        "source": r"C:\Users\me\a.pdf",
        "directory": "~/notes",
        "image_path": "file:///home/me/a.png",
        "path": "chapter-1",
        "ratio": "1/2",
    }
    (result,) = read(TextNode(text="lamp", metadata=metadata))
    assert result.metadata == {"path": "chapter-1", "ratio": "1/2"}
    assert result.source == Source(title="a.pdf")


@pytest.mark.parametrize(
    ("metadata", "locator"),
    [
        ({"page_label": "iv"}, "page iv"),
        ({"page_label": "", "page_number": 3}, "page 3"),
        ({"page_label": 0}, "page 0"),
        ({"page_number": "7"}, "page 7"),
        ({"page_number": 7.0}, "page 7"),
        ({"page_number": True}, None),
        ({"page_number": -1}, None),
        ({"page_number": 1.5}, None),
        ({"page": 4}, None),  # counted from 0 or from 1, nobody knows: the host may say
        ({"start_line": 3, "end_line": 9}, "lines 3-9"),
        ({"start_line": 3, "end_line": 3}, "lines 3"),
        ({"start_line": 3}, "lines 3"),
        ({"end_line": 3}, None),
        ({"header_path": "/Lamps/Bulbs/"}, "section Lamps/Bulbs"),
        ({"header_path": "/"}, None),
        ({"row": 0}, "row 0"),
        (
            {"page_label": "2", "header_path": "/Lamps/", "start_line": 1, "end_line": 4},
            "page 2; lines 1-4; section Lamps",
        ),
        ({"locator": "page=1"}, "page=1"),
        ({"header_path": "x" * 400}, "section " + "x" * 192),
    ],
)
def test_locator_names_every_part_that_is_known(metadata: dict[str, Any], locator: str | None) -> None:
    found = source(metadata)
    assert (found.locator if found else None) == locator


def test_locator_names_the_characters_of_a_chunk() -> None:
    (result,) = read(TextNode(text="lamp", start_char_idx=0, end_char_idx=120, metadata={"page_label": "2"}))
    assert result.source == Source(locator="page 2; characters 0-120")


def test_declared_keys_come_before_the_known_ones() -> None:
    metadata = {"title": "x", "headline": "Lamps", "permanent": "https://example.com/p", "url": "https://example.com/u"}
    metadata |= {"page": 4, "sku": "s1", "kind": "text/markdown"}
    keys = {"title": "headline", "uri": "permanent", "id": "sku", "mime_type": "kind"}
    assert source(metadata, citation_keys=keys, first_page=1) == Source(
        id="s1", title="Lamps", uri="https://example.com/p", mime_type="text/markdown", locator="page 4"
    )


def test_what_became_part_of_the_source_is_not_repeated_in_metadata() -> None:
    metadata = {"title": "Lamps", "url": "https://example.com", "page_label": "2", "file_type": "a/b", "colour": "red"}
    (result,) = read(TextNode(text="lamp", metadata=metadata))
    assert result.metadata == {"colour": "red"}


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(
    ["title", "url", "source", "file_name", "page_label", "page_number", "start_line", "end_line", "header_path", "x"]
)


@given(metadata=st.dictionaries(_KEYS | st.text(max_size=5) | st.integers(), _VALUES, max_size=8), score=_VALUES)
def test_any_metadata_gives_a_result_that_is_strict_json(metadata: dict[Any, Any], score: Any) -> None:
    node = SimpleNamespace(node_id="n1", metadata=metadata, get_content=lambda metadata_mode: "lamp")
    (result,) = read(SimpleNamespace(node=node, score=score), score="similarity")
    json.dumps(to_wire(result), allow_nan=False)
