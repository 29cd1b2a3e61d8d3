"""From LlamaIndex's nodes to results of protocol 1, by attribute and without importing LlamaIndex."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from qak_core import KnowledgeInvalidResponse, RetrievalResult, Source
from qak_core.authoring import flatten_metadata, plain_value, stable_id

ScoreKind = Literal["similarity", "distance", "none"]

_T = TypeVar("_T")

# Which metadata keys stand for what, the most telling first.
_KNOWN: dict[str, tuple[str, ...]] = {
    "title": ("title", "document_title"),
    "uri": ("url", "uri", "source", "link", "permalink"),
    "mime_type": ("mime_type", "file_type", "mimetype", "content_type"),
    "source_id": ("source_id",),
    "locator": ("locator",),
    "page": ("page_label", "page_number"),
}
_DOCUMENT_IDS = ("document_id", "doc_id", "ref_doc_id")
_IDS = ("id", "chunk_id")
_FILES = ("file_name", "filename", "file_path", "source")
_PATHS = ("file_path", "path", "source", "directory", "file_directory", "image_path")
# Written by our own retriever for whoever reads its nodes, or repeated text beside a passage.
_INTERNAL = frozenset({"citation", "citation_id", "notice", "window", "original_text"})

_MAX_LOCATOR_CHARS = 200
_MAX_SCORE = sys.float_info.max  # an integer may be larger
_LOCAL_PATH = re.compile(r"/|\\\\|[A-Za-z]:[\\/]|file:|~[\\/]")

_log = logging.getLogger("qak_adapter_llamaindex")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How to read the host's nodes.

    Attributes:
        score: what a node's score is; only a similarity is one.
        id_key: the metadata key that holds a passage's id.
        citation_keys: field of the source to the metadata key that holds it, looked at before the known ones. Fields:
            ``title``, ``uri``, ``mime_type``, ``source_id``, ``locator`` and ``page``, a page's number or label.
    """

    score: ScoreKind = "none"
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = [
            f"citation_keys: expected {', '.join(_KNOWN)} as keys, got {name[:80]!r}"
            for name in self.citation_keys
            if name not in _KNOWN
        ]
        if self.score not in ("similarity", "distance", "none"):
            problems.append(f"score: expected 'similarity', 'distance' or 'none', got {str(self.score)[:80]!r}")
        if problems:
            raise ValueError("\n".join(problems))


def results(
    nodes: object, reading: Reading, *, base: str, admits: Callable[[Mapping[str, Any]], bool]
) -> list[RetrievalResult]:
    """Return the passages among the nodes that a request may see, in order; what has no text is none.

    Args:
        nodes: what a retriever returned: nodes, bare or with their scores.
        reading: how to read them.
        base: the knowledge base, for ids of nodes that have none.
        admits: whether a node with this metadata may be seen.

    Raises:
        KnowledgeInvalidResponse: it is no sequence.
    """
    if not isinstance(nodes, Sequence) or isinstance(nodes, str | bytes):
        raise KnowledgeInvalidResponse
    read = (_attempt(partial(_result, node, reading, base, admits)) for node in nodes)
    return [result for result in read if result is not None]


def _attempt(read: Callable[[], _T]) -> _T | None:
    """Read of a foreign object; one that can't be read harms no other."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - a property of a foreign class may raise anything
        _log.debug("a node could not be read: %s", type(error).__name__)
        return None


def _result(
    found: Any, reading: Reading, base: str, admits: Callable[[Mapping[str, Any]], bool]
) -> RetrievalResult | None:
    node = getattr(found, "node", found)
    metadata = getattr(node, "metadata", None)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    content = _text(node)
    if not content.strip() or not admits(metadata):
        return None
    taken = _Taken(metadata, reading)
    source = _source(node, taken)
    result_id = _id(node, taken) or stable_id(base, source.id or source.uri or source.title, source.locator, content)
    return RetrievalResult(
        id=result_id,
        content=content,
        score=_score(getattr(found, "score", None)) if reading.score == "similarity" else None,
        source=source if source != Source() else None,
        metadata=_metadata(metadata, taken.keys),
    )


class _Taken:
    """Reads fields out of metadata, and remembers which keys they came from."""

    def __init__(self, metadata: Mapping[str, Any], reading: Reading) -> None:
        self.metadata = metadata
        self.reading = reading
        self.keys: set[str] = set()

    def field(self, name: str, accept: Callable[[str], bool] = bool) -> str:
        """Return a field of the source, from the declared key or a known one; empty where there is none."""
        declared = self.reading.citation_keys.get(name)
        return self.first((declared, *_KNOWN[name]) if declared else _KNOWN[name], accept)

    def first(self, keys: Sequence[str], accept: Callable[[str], bool] = bool) -> str:
        for key in keys:
            if key in self.metadata and (text := _plain_text(self.metadata[key])) and accept(text):
                self.keys.add(key)
                return text
        return ""


def _text(node: Any) -> str:
    # Never .text, which some nodes refuse, nor get_content_blocks(), which fetches images.
    get_content = getattr(node, "get_content", None)
    content = get_content(metadata_mode="none") if callable(get_content) else getattr(node, "text", None)
    return plain if isinstance(plain := plain_value(content), str) else ""


def _id(node: Any, taken: _Taken) -> str:
    declared = (taken.reading.id_key,) if taken.reading.id_key else ()
    return taken.first(declared) or _plain_text(getattr(node, "node_id", None)) or taken.first(_IDS)


def _score(value: object) -> float | None:
    plain = plain_value(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float) or abs(plain) > _MAX_SCORE:
        return None
    return float(plain)


def _source(node: Any, taken: _Taken) -> Source:
    uri = taken.field("uri", _is_web_address)
    title = taken.field("title") or _file_name(taken.first(_FILES, _names_file))
    source_id = taken.field("source_id", _is_given) or _text_of(_attempt(lambda: node.ref_doc_id))
    return Source(
        id=source_id or taken.first(_DOCUMENT_IDS, _is_given) or None,
        title=title or None,
        uri=uri or None,
        mime_type=taken.field("mime_type", lambda text: "/" in text) or None,
        locator=taken.field("locator") or _locator(node, taken)[:_MAX_LOCATOR_CHARS] or None,
    )


def _locator(node: Any, taken: _Taken) -> str:
    """Say where in the document a passage stands; every part that is known."""
    page = taken.field("page")
    lines = _range(taken.metadata.get("start_line"), taken.metadata.get("end_line"))
    section = taken.first(("header_path",), lambda text: bool(text.strip("/ "))).strip("/ ")
    characters = _range(getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None))
    row = taken.first(("row", "row_number"))
    parts = {"page": page, "lines": lines, "section": section, "characters": characters, "row": row}
    return "; ".join(f"{name} {value}" for name, value in parts.items() if value)


def _metadata(metadata: Mapping[str, Any], taken: set[str]) -> dict[str, str | bool | int | float]:
    """Return what is left: flat, without what became part of the source, and without paths of the host's machine."""
    flat = flatten_metadata(metadata, drop=_INTERNAL | taken)
    return {
        key: value
        for key, value in flat.items()
        if not (key in _DOCUMENT_IDS and not _is_given(str(value)))
        and not (key in _PATHS and isinstance(value, str) and _LOCAL_PATH.match(value))
    }


def _range(start: object, end: object) -> str:
    if start is None or (first := _whole(start)) is None:
        return ""
    last = _whole(end)
    return f"{first}-{last}" if last is not None and last > first else str(first)


def _whole(value: object) -> int | None:
    plain = plain_value(value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if isinstance(plain, str) and plain.isascii() and plain.isdigit():
        plain = int(plain[:20])
    return plain if isinstance(plain, int) and not isinstance(plain, bool) and plain >= 0 else None


def _plain_text(value: object) -> str:
    """Return text, or a whole number as text."""
    plain = plain_value(value)
    if isinstance(plain, str):
        return plain.strip()
    number = _whole(plain)
    return "" if number is None else str(number)


def _text_of(value: object) -> str:
    text = _plain_text(value)
    return text if _is_given(text) else ""


def _is_given(text: str) -> bool:
    return text not in ("", "None")  # vector stores write a missing document id so


def _is_web_address(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _names_file(text: str) -> bool:
    return not _is_web_address(text) and not text.isdigit()  # some PDF readers keep a page's number as source


def _file_name(text: str) -> str:
    return re.split(r"[\\/]", text.rstrip("\\/"))[-1]
