"""From what LangChain returns to results of protocol 1: pure functions, driven by the tables below."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qak_core import KnowledgeInvalidResponse, RetrievalResult, Source
from qak_core.authoring import flatten_metadata, plain_value, stable_id

Hit = tuple[object, object]
"""A document, or the text of one, and the store's number for it, if any."""

TEXT_ID_KEYS = ("id", "chunk_id")  # numbers under these are ranks: rerankers put the candidate's index there
TITLE_KEYS = ("title", "file_name", "filename")
URI_KEYS = ("url", "uri", "source", "link", "permalink")
PATH_KEYS = ("source", "file_path")
SOURCE_ID_KEYS = ("document_id", "doc_id", "source_id")
MIME_TYPE_KEYS = ("mime_type", "mimetype", "content_type", "filetype")
HEADER_KEYS = tuple(f"Header {level}" for level in range(1, 7))
LOCATOR_KEYS = {
    *("locator", "page_label", "page_number", "page", "start_line", "end_line", "loc", "start_index", "row", "seq_num"),
    *HEADER_KEYS,
}
SCORE_KEYS = ("relevance_score", "score", "query_similarity_score", "distance")
PRIVATE_KEYS = ("file_directory", "citation", "notice")

DROPPED_KEYS = frozenset(
    (
        *(*TEXT_ID_KEYS, *TITLE_KEYS, *URI_KEYS, *PATH_KEYS, *SOURCE_ID_KEYS),
        *(*MIME_TYPE_KEYS, *LOCATOR_KEYS, *SCORE_KEYS, *PRIVATE_KEYS),
    )
)
"""What stands elsewhere in a result, would be taken for a score, or is a path of the host's disk."""

_MAX_LOCATOR_CHARS = 200
_NO_SOURCE = Source()

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How the documents of one source are read.

    Attributes:
        base: the knowledge base's id; ids are prefixed with it where there are several.
        scored: whether the numbers are similarities.
        score_key: metadata key of a score that a retriever gives, since it returns documents alone.
        id_key: metadata key of the id, for documents that have none of their own.
        citation_keys: field of :class:`~qak_core.Source` to the metadata key that holds it, before all known ones.
        owner_key: metadata key that never leaves.
        first_page: the number that ``page`` has on the first page: 0, as LangChain's loaders count, or 1.
    """

    base: str = ""
    scored: bool = False
    score_key: str = SCORE_KEYS[0]
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int = 0
    dropped: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the keys that stand elsewhere in a result."""
        own = filter(None, (*self.citation_keys.values(), self.id_key, self.owner_key, self.score_key))
        object.__setattr__(self, "dropped", DROPPED_KEYS.union(own))


def read_hits(answer: object) -> list[Hit]:
    """Return the documents in an answer, paired with the numbers beside them.

    Raises:
        KnowledgeInvalidResponse: it is neither a list nor a tuple; LangChain does not check what a retriever returns.
    """
    if not isinstance(answer, list | tuple):
        raise KnowledgeInvalidResponse
    return [item if isinstance(item, tuple) and len(item) == 2 else (item, None) for item in answer]


def convert(
    hits: Sequence[Hit], reading: Reading, *, limit: int, accept: Callable[[Mapping[str, Any]], bool]
) -> list[RetrievalResult]:
    """Return the first results that can be used and that ``accept`` takes by their metadata, in order.

    One document that can't be read harms no other. What comes twice, as from merged retrievers, is kept once.
    """
    results: list[RetrievalResult] = []
    seen: set[tuple[str, str]] = set()
    for document, number in hits:
        if len(results) == limit:
            break
        try:
            result = _result(document, number, reading, accept)
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when read
            _log.debug("a document was dropped, reading it raised %s", type(error).__name__)
            continue
        if result is not None and (key := (result.id, result.content)) not in seen:
            seen.add(key)
            results.append(result)
    return results


def _result(
    document: object, number: object, reading: Reading, accept: Callable[[Mapping[str, Any]], bool]
) -> RetrievalResult | None:
    content = plain_value(document if isinstance(document, str) else getattr(document, "page_content", None))
    if not isinstance(content, str) or not content.strip():
        return None
    given = getattr(document, "metadata", None)
    metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if not accept(metadata):
        return None
    source = _source(metadata, content, reading)
    result_id = _id(document, metadata, reading) or stable_id(
        reading.base, source.id or source.uri or source.title, source.locator, content
    )
    return RetrievalResult(
        id=f"{reading.base}:{result_id}" if reading.base else result_id,
        content=content,
        score=_score(metadata.get(reading.score_key) if number is None else number) if reading.scored else None,
        source=source if source != _NO_SOURCE else None,
        metadata=flatten_metadata(metadata, drop=reading.dropped),
    )


def _id(document: object, metadata: Mapping[str, Any], reading: Reading) -> str | None:
    declared = metadata.get(reading.id_key) if reading.id_key else None
    for value in (getattr(document, "id", None), declared, metadata.get("_id")):
        plain = plain_value(value)
        if isinstance(plain, str | int) and not isinstance(plain, bool) and str(plain).strip():
            return str(plain).strip()
    return _first_text(metadata, TEXT_ID_KEYS)


def _score(value: object) -> float | None:
    plain = plain_value(value)
    if isinstance(plain, str | bool) or plain is None:
        return None
    try:
        score = float(plain)
    except OverflowError:
        return None
    return score if math.isfinite(score) else None


def _source(metadata: Mapping[str, Any], content: str, reading: Reading) -> Source:
    keys = reading.citation_keys
    declared = {name: _text(metadata.get(key)) for name, key in keys.items()} if keys else keys
    return Source(
        id=declared.get("id") or _first_text(metadata, SOURCE_ID_KEYS, numbers=True),
        title=declared.get("title") or _first_text(metadata, TITLE_KEYS) or _file_name(metadata),
        uri=_uri(declared.get("uri"), *_texts(metadata, URI_KEYS)),
        mime_type=declared.get("mime_type") or next(filter(_is_mime_type, _texts(metadata, MIME_TYPE_KEYS)), None),
        locator=declared.get("locator") or _locator(metadata, content, reading.first_page),
    )


def _uri(*candidates: str | None) -> str | None:
    """Return the first web address; a path of this machine is nobody else's business."""
    return next((text for text in candidates if text and text.lower().startswith(("http://", "https://"))), None)


def _file_name(metadata: Mapping[str, Any]) -> str | None:
    for text in _texts(metadata, PATH_KEYS):
        if _uri(text) is None:
            path = re.split("[?#]", text)[0] if "://" in text else text
            return re.split(r"[\\/]", path.rstrip("\\/"))[-1] or None
    return None


def _is_mime_type(text: str) -> bool:
    return re.fullmatch(r"[\w.+-]+/[\w.+-]+(;.*)?", text) is not None


def _locator(metadata: Mapping[str, Any], content: str, first_page: int) -> str | None:
    if LOCATOR_KEYS.isdisjoint(metadata):
        return None
    if (own := _text(metadata.get("locator"))) is not None:
        return own[:_MAX_LOCATOR_CHARS]
    start = _number(metadata.get("start_index"))
    places = {
        "page": _page(metadata, first_page),
        "lines": _lines(metadata),
        "section": " > ".join(_texts(metadata, HEADER_KEYS)) or None,
        "characters": None if start is None else f"{start}-{start + len(content)}",
        "row": _number(metadata.get("row")),
        "seq_num": _number(metadata.get("seq_num")),
    }
    return (
        "; ".join(f"{name} {place}" for name, place in places.items() if place is not None)[:_MAX_LOCATOR_CHARS] or None
    )


def _page(metadata: Mapping[str, Any], first_page: int) -> str | int | None:
    if (label := _text(metadata.get("page_label"), numbers=True)) is not None:
        return label
    if (number := _number(metadata.get("page_number"))) is not None:
        return number
    page = _number(metadata.get("page"))
    return None if page is None or page < first_page else page + 1 - first_page


def _lines(metadata: Mapping[str, Any]) -> str | None:
    place = metadata.get("loc")
    lines = place.get("lines") if isinstance(place, Mapping) else None
    nested: Mapping[str, Any] = lines if isinstance(lines, Mapping) else {}
    start = _number(metadata.get("start_line", nested.get("from")))
    end = _number(metadata.get("end_line", nested.get("to")))
    if start is None:
        return None
    return f"{start}-{end}" if end is not None and end != start else str(start)


def _number(value: object) -> int | None:
    """Return a whole number from 0 up, also where it is written as text or as a float."""
    if value is None:  # most keys are absent
        return None
    plain = plain_value(value)
    if isinstance(plain, str) and re.fullmatch("[0-9]{1,15}", plain):
        return int(plain)
    if isinstance(plain, bool | str) or plain is None or plain != int(plain) or not 0 <= plain < 10**15:
        return None
    return int(plain)


def _text(value: object, *, numbers: bool = False) -> str | None:
    if value is None:
        return None
    plain = plain_value(value)
    if numbers and isinstance(plain, int) and not isinstance(plain, bool):
        plain = str(plain)
    return plain.strip() or None if isinstance(plain, str) else None


def _texts(metadata: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [text for key in keys if (value := metadata.get(key)) is not None and (text := _text(value)) is not None]


def _first_text(metadata: Mapping[str, Any], keys: Sequence[str], *, numbers: bool = False) -> str | None:
    return next((text for key in keys if (text := _text(metadata.get(key), numbers=numbers)) is not None), None)
