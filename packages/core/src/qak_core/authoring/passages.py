"""From what retrieval frameworks keep of a passage to a result, by the keys that their loaders and converters write."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from qak_core._texts import NOTICE
from qak_core.authoring.identity import stable_id
from qak_core.authoring.metadata import flatten_metadata, plain_number, plain_score, plain_text, value_at
from qak_core.protocol import RetrievalResult, Source

ScoreKind = Literal["similarity", "distance", "none"]

SOURCE_FIELDS = ("id", "title", "uri", "mime_type", "locator")

# The most telling first.
_SOURCE_ID_KEYS = ("source_id", "document_id", "doc_id", "ref_doc_id")
_TITLE_KEYS = ("title", "document_title")
_FILE_KEYS = ("file_name", "filename", "source", "file_path", "path", "filepath", "file")
_URI_KEYS = ("url", "uri", "source", "link", "permalink")
_MIME_TYPE_KEYS = ("mime_type", "mimetype", "content_type", "file_type", "filetype")
_PAGE_KEYS = ("page_label", "page_number", "page")
_LINE_KEYS = frozenset(("start_line", "end_line", "loc"))
_HEADER_KEYS = ("header", *(f"Header {level}" for level in range(1, 7)))
_SECTION_KEYS = frozenset(("header_path", "parent_headers", *_HEADER_KEYS))
_START_KEYS = ("start_index", "split_idx_start")
_ROW_KEYS = ("row", "row_number")
_LOCATOR_KEYS = frozenset((*_PAGE_KEYS, *_LINE_KEYS, *_SECTION_KEYS, *_START_KEYS, *_ROW_KEYS, "seq_num"))
_PATH_KEYS = frozenset((*_FILE_KEYS, "directory", "file_directory", "image_path"))

_MAX_LOCATOR_CHARS = 200
_NO_SOURCE = Source()
_WEB = re.compile(r"https?://", re.IGNORECASE)
_MIME_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;.*)?")
_NOTICES = frozenset(NOTICE.values())
_LOCAL = re.compile(r"[/\\~]|[a-z]:[/\\]|file:|(?!https?:)[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_T = TypeVar("_T")
_Read = Callable[[Any], str | None]

_log = logging.getLogger("qak_core")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a host declares about its passages.

    Attributes:
        score: what their numbers are; only a similarity becomes a score.
        id_key: metadata key of a passage's id, before any other.
        citation_keys: field of :class:`~qak_core.Source` to the metadata key that is looked at first. This key,
            ``id_key`` and ``owner_key`` may be dotted paths into nested metadata.
        owner_key: metadata key of the owner, which never leaves.
        first_page: the number under ``page`` of the first page, 0 or 1; ``None`` where nobody knows, so that ``page``
            is not read.
        known_ids: metadata keys of the id where neither ``id_key`` nor the vendor gives one.
        drop: further metadata keys that never leave.
    """

    score: ScoreKind = "none"
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int | None = None
    known_ids: Sequence[str] = ("chunk_id", "id", "_id")
    drop: Collection[str] = ()

    def result(
        self,
        content: str,
        metadata: Mapping[str, Any],
        *,
        own_id: object = None,
        score: object = None,
        base: str = "",
        source_id: object = None,
        characters: tuple[object, object] | None = None,
    ) -> RetrievalResult:
        """Return a passage as a result that holds nothing of the vendor's.

        Args:
            content: its text.
            metadata: whatever is kept beside it; neither changed nor kept.
            own_id: the vendor's id.
            score: the vendor's number.
            base: knowledge base to put before the id, where there are several.
            source_id: the vendor's id of the document, where the metadata has none.
            characters: where the passage begins and ends in it, where the metadata does not say.
        """
        taken = _Taken(metadata)
        source = self._source(content, taken, source_id, characters)
        declared = self.id_key and taken.first((self.id_key,), _identifier)
        own = declared or _identifier(own_id) or taken.first(self.known_ids, _identifier)
        own = own or stable_id(base, source.id or source.uri or source.title, source.locator, content)
        return RetrievalResult(
            id=f"{base}:{own}" if base else own,
            content=content,
            score=plain_score(score) if self.score == "similarity" else None,
            source=None if source == _NO_SOURCE else source,
            metadata=self._rest(metadata, taken.keys),
        )

    def _source(
        self, content: str, taken: _Taken, source_id: object, characters: tuple[object, object] | None
    ) -> Source:
        def first(name: str, known: Sequence[str], read: _Read = plain_text) -> str | None:
            declared = self.citation_keys.get(name)
            return taken.first((declared, *known) if declared else known, read)

        metadata = taken.metadata
        if (uri := first("uri", _URI_KEYS, _web_address)) is not None:
            taken.keys.update([key for key in _URI_KEYS if key in metadata and plain_text(metadata[key]) == uri])
        own_id = first("id", _SOURCE_ID_KEYS[:1], _document_id) or _document_id(source_id)
        locator = first("locator", ("locator",), _identifier) or self._locator(content, taken, characters)
        return Source(
            uri=uri,
            title=first("title", _TITLE_KEYS) or taken.first(_FILE_KEYS, _file_name),
            id=own_id or taken.first(_SOURCE_ID_KEYS[1:], _document_id),
            mime_type=first("mime_type", _MIME_TYPE_KEYS, _mime_type),
            locator=locator[:_MAX_LOCATOR_CHARS] or None,
        )

    def _locator(self, content: str, taken: _Taken, characters: tuple[object, object] | None) -> str:
        """Say where in its document a passage stands; every part that is known."""
        if characters is None and _LOCATOR_KEYS.isdisjoint(taken.metadata):
            return ""
        places = {
            "page": taken.first(_PAGE_KEYS[:1], _identifier)
            or taken.first(_PAGE_KEYS[1:2], _digits)
            or self._page(taken),
            "lines": None if _LINE_KEYS.isdisjoint(taken.metadata) else _lines(taken),
            "section": None if _SECTION_KEYS.isdisjoint(taken.metadata) else _section(taken),
            "characters": _characters(content, taken, characters),
            "row": taken.first(_ROW_KEYS, _digits),
            "seq_num": taken.first(("seq_num",), _digits),
        }
        return "; ".join([f"{name} {place}" for name, place in places.items() if place])

    def _page(self, taken: _Taken) -> str | None:
        page = None if self.first_page is None else plain_number(taken.metadata.get("page"))
        if self.first_page is None or page is None or page < self.first_page:
            return None
        taken.keys.add("page")
        return str(page + 1 - self.first_page)

    def _rest(self, metadata: Mapping[str, Any], taken: set[str]) -> dict[str, str | bool | int | float]:
        """Return what is left: flat, and without paths of the host's machine."""
        taken.update(self.drop)
        if self.owner_key is not None:
            taken.add(self.owner_key)
        flat = flatten_metadata(metadata, drop=taken)
        if flat.get("notice") in _NOTICES:  # of one of our own retrievers; the runtime gives both again
            flat = {key: value for key, value in flat.items() if key not in {"notice", "citation_id"}}
        for key in _PATH_KEYS.intersection(flat):
            if _LOCAL.match(str(flat[key])):
                del flat[key]
        for key in _SOURCE_ID_KEYS:
            if flat.get(key) in ("", "None"):
                del flat[key]
        return flat


def read_passages(
    items: Iterable[_T], read: Callable[[_T], RetrievalResult | None], *, limit: int
) -> list[RetrievalResult]:
    """Return the first results that can be read of a vendor's items, in order.

    An item that can't be read harms no other; what comes twice, as from merged retrievers, is kept once.

    Args:
        items: the vendor's.
        read: gives the result of one; ``None`` for one that is none, or that may not be seen.
        limit: as many at most.
    """
    results: list[RetrievalResult] = []
    seen: set[tuple[str, str]] = set()
    for item in items:
        if len(results) == limit:
            break
        try:
            result = read(item)
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when read
            _log.debug("a passage was dropped, reading it raised %s", type(error).__name__)
            continue
        if result is not None and (key := (result.id, result.content)) not in seen:
            seen.add(key)
            results.append(result)
    return results


class _Taken:
    """Reads fields out of metadata, and remembers which keys they came from."""

    __slots__ = ("keys", "metadata")

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self.keys: set[str] = set()

    def first(self, names: Iterable[str], read: _Read) -> str | None:
        for name in names:
            given = self.metadata.get(name)
            if given is None:  # most keys are absent
                if "." not in name:
                    continue
                given = value_at(self.metadata, name)
            if given is not None and (text := read(given)) is not None:
                self.keys.add(name)
                return text
        return None

    def numbers(self, *names: str) -> list[int | None]:
        self.keys.update(names)
        return [plain_number(self.metadata.get(name)) for name in names]


def _lines(taken: _Taken) -> str | None:
    start, end = taken.numbers("start_line", "end_line")
    if start is None and isinstance(place := taken.metadata.get("loc"), Mapping):
        lines = place.get("lines")
        if isinstance(lines, Mapping):
            start, end = plain_number(lines.get("from")), plain_number(lines.get("to"))
    return _range(start, end)


def _section(taken: _Taken) -> str | None:
    if path := taken.first(("header_path",), lambda value: (plain_text(value) or "").strip("/ ") or None):
        return path
    metadata = taken.metadata
    parents = metadata.get("parent_headers")
    headers = [*(parents if isinstance(parents, list | tuple) else ()), *map(metadata.get, _HEADER_KEYS)]
    taken.keys.update(("parent_headers", *_HEADER_KEYS))
    return " > ".join(filter(None, map(plain_text, headers))) or None


def _characters(content: str, taken: _Taken, given: tuple[object, object] | None) -> str | None:
    if given is not None and (start := plain_number(given[0])) is not None:
        return _range(start, plain_number(given[1]))
    start = next((number for number in taken.numbers(*_START_KEYS) if number is not None), None)
    return None if start is None else f"{start}-{start + len(content)}"


def _range(start: int | None, end: int | None) -> str | None:
    if start is None:
        return None
    return f"{start}-{end}" if end is not None and end > start else str(start)


def _identifier(value: object) -> str | None:
    return plain_text(value, numbers=True)


def _document_id(value: object) -> str | None:
    text = _identifier(value)
    return None if text == "None" else text  # vector stores write a missing one so


def _digits(value: object) -> str | None:
    number = plain_number(value)
    return None if number is None else str(number)


def _mime_type(value: object) -> str | None:
    text = plain_text(value)
    return text if text and _MIME_TYPE.fullmatch(text) else None


def _web_address(value: object) -> str | None:
    text = plain_text(value)
    return text if text and _WEB.match(text) else None


def _file_name(value: object) -> str | None:
    """Return the last part of a path: where a file lies on the host's disk is nobody's business."""
    text = plain_text(value)
    if text is None or _WEB.match(text) or text.isdigit():  # some readers keep a page's number as source
        return None
    path = re.split("[?#]", text)[0] if "://" in text else text
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1] or None
