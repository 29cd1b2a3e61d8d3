"""From Haystack's documents to results of protocol 1; pure functions that keep nothing of a document's."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qak_adapter_haystack._filters import keys
from qak_core import RetrievalResult, Source, normalize_response
from qak_core.authoring import Filter, flatten_metadata, matches, plain_value, stable_id

SOURCE_FIELDS = ("id", "title", "uri", "mime_type", "locator")

_MAX_LOCATOR_CHARS = 200
_ID_KEYS = ("chunk_id", "id", "_id")
_PATH_KEYS = ("file_name", "filename", "source", "file_path", "path", "filepath", "file", "file_directory", "directory")
_URI_KEYS = ("url", "uri", "source", "link", "permalink")
_SOURCE_ID_KEYS = ("source_id", "document_id", "doc_id")
_MIME_KEYS = ("mime_type", "content_type", "file_type")
_LOCATOR_KEYS = frozenset(
    "locator page_label page_number start_line end_line header parent_headers split_idx_start row_number".split()
)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|file:", re.IGNORECASE)

# Of documents that came through a component of ours: the runtime adds its own again.
_NOTICES = [normalize_response([], query="", language=language).notice for language in ("en", "zh")]

_log = logging.getLogger("qak_adapter_haystack")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the host declares about its documents.

    Attributes:
        id_key: metadata key of a result's id.
        citation_keys: field of the source to its metadata key.
        owner_key: metadata key of whom a document belongs to.
        similarity: whether scores are such that higher is better.
    """

    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    similarity: bool = False


def to_results(
    documents: Iterable[Any],
    rules: Rules,
    *,
    base: str = "",
    owner_id: str = "",
    wanted: Filter | None = None,
    limit: int | None = None,
) -> list[RetrievalResult]:
    """Return a result for each document that has a text, belongs to the owner and matches, in the vendor's order.

    Args:
        documents: as Haystack gave them; what can't be read is left out.
        rules: the host's.
        base: knowledge base, for ids that have to be made.
        owner_id: whom they must belong to, exactly, where ``rules`` has an owner key.
        wanted: what their metadata must match, whatever the vendor did with it.
        limit: as many results at most; by default all.
    """
    results: list[RetrievalResult] = []
    for document in documents:
        if len(results) == limit:
            break
        try:
            result = _result(document, rules, base, owner_id, wanted)
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when read
            _log.debug("reading a document raised %s", type(error).__name__)
            continue
        if result is not None:
            results.append(result)
    return results


def to_score(value: object) -> float | None:
    """Return a finite number, NumPy's included; texts and booleans are no scores."""
    plain = plain_value(value)
    if isinstance(plain, bool | str) or plain is None:
        return None
    return float(plain) if math.isfinite(plain) else None


def _result(document: Any, rules: Rules, base: str, owner_id: str, wanted: Filter | None) -> RetrievalResult | None:
    content, meta = document.content, document.meta
    meta = meta if isinstance(meta, Mapping) else {}
    if not isinstance(content, str) or not content.strip():
        return None
    if rules.owner_key is not None and _text(at(meta, rules.owner_key.removeprefix("meta."))) != owner_id:
        return None
    if wanted is not None and not matches(wanted, {key: _comparable(at(meta, key)) for key in keys(wanted)}):
        return None
    used: set[str] = set()
    source = _source(content, meta, rules.citation_keys, used)
    found = _first(meta, (rules.id_key,) if rules.id_key else (), used, _identifier)
    found = found or _identifier(getattr(document, "id", None)) or _first(meta, _ID_KEYS, used, _identifier)
    if rules.owner_key is not None:
        used.add(rules.owner_key.removeprefix("meta."))
    if meta.get("notice") in _NOTICES:
        used.add("notice")
    return RetrievalResult(
        id=found or stable_id(base, source.id or source.uri or source.title, source.locator, content),
        content=str.__str__(content),
        score=to_score(getattr(document, "score", None)) if rules.similarity else None,
        source=source if source != Source() else None,
        metadata={
            key: value
            for key, value in flatten_metadata(meta, drop=used).items()
            if key not in _PATH_KEYS or not _is_path(value)
        },
    )


def at(meta: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, else the one at the end of a dotted path, as Haystack's filters read it."""
    if key in meta or "." not in key:
        return meta.get(key)
    found: Any = meta
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _source(content: str, meta: Mapping[str, Any], declared: Mapping[str, str], used: set[str]) -> Source:
    def first(field: str, known: Iterable[str], read: Callable[[Any], str | None] = _text) -> str | None:
        return _first(meta, [declared[field], *known] if field in declared else known, used, read)

    return Source(
        id=first("id", _SOURCE_ID_KEYS, _identifier),
        title=first("title", ("title",)) or _first(meta, _PATH_KEYS, set(), _file_name),
        uri=first("uri", _URI_KEYS, _web_address),
        mime_type=first("mime_type", _MIME_KEYS),
        locator=first("locator", ("locator",), _identifier) or _locator(content, meta, used),
    )


def _locator(content: str, meta: Mapping[str, Any], used: set[str]) -> str | None:
    """Say where in its source a passage stands: page, lines, section, characters, row; what is known of these."""
    if _LOCATOR_KEYS.isdisjoint(meta):
        return None
    used |= _LOCATOR_KEYS
    page = _identifier(meta.get("page_label")) or _number(meta.get("page_number"))
    first, last = _number(meta.get("start_line")), _number(meta.get("end_line"))
    parents = meta.get("parent_headers")
    headers = [*(parents if isinstance(parents, list | tuple) else ()), meta.get("header")]
    start = _number(meta.get("split_idx_start"))
    places = {
        "page": page,
        "lines": f"{first}-{last}" if first and last and last != first else first,
        "section": " > ".join(text for header in headers if (text := _text(header))),
        "characters": start and f"{start}-{int(start) + len(content)}",
        "row": _number(meta.get("row_number")),
    }
    return "; ".join(f"{name} {place}" for name, place in places.items() if place)[:_MAX_LOCATOR_CHARS] or None


def _first(
    meta: Mapping[str, Any], names: Iterable[str], used: set[str], read: Callable[[Any], str | None]
) -> str | None:
    for name in names:
        given = at(meta, name)
        if given is not None and (value := read(given)) is not None:
            used.add(name)
            return value
    return None


def _text(value: object) -> str | None:
    text = None if value is None else plain_value(value)
    return text if isinstance(text, str) and text.strip() else None


def _identifier(value: object) -> str | None:
    plain = plain_value(value)
    return str(plain) if isinstance(plain, int) and not isinstance(plain, bool) else _text(plain)


def _web_address(value: object) -> str | None:
    text = _text(value)
    return text if text and _WEB.match(text) else None


def _file_name(value: object) -> str | None:
    """Return the last part of a path: where a file lies on the host's disk is nobody's business."""
    text = _text(value)
    return _text(re.split(r"[/\\]", text.rstrip("/\\"))[-1]) if text and not _WEB.match(text) else None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(_ABSOLUTE.match(value))


def _number(value: object) -> str | None:
    """Return a whole number from 0 on, which may come as a float or as digits."""
    plain = None if value is None else plain_value(value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if isinstance(plain, bool):
        return None
    text = str(plain).strip()
    return str(int(text)) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _comparable(value: object) -> object:
    return [plain_value(one) for one in value] if isinstance(value, list | tuple) else plain_value(value)
