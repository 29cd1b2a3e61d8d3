"""From whatever a provider returned to the answer that a model may see (protocol sections 4 and 5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from qak_core._budget import fit_budget
from qak_core._exact import attempt, exact_float, exact_int, exact_str
from qak_core._redaction import REDACTED, names_credential, redact, redact_credentials
from qak_core._text import clean, collapse, cut
from qak_core._texts import NOTICE, Language
from qak_core._urls import public_url
from qak_core.answers import AnswerResult, Citation, KnowledgeAnswer
from qak_core.citations import TurnCitations
from qak_core.errors import KnowledgeInvalidResponse
from qak_core.protocol import DEFAULT_TOP_K, MAX_QUERY_CHARS, RetrievalResult, Source, valid_top_k

MAX_CONTENT_CHARS = 4000
MAX_CANDIDATES = 64
MAX_ID_CHARS = 160
MAX_SOURCE_ID_CHARS = 120
MAX_TITLE_CHARS = 300
MAX_MIME_TYPE_CHARS = 120
MAX_LOCATOR_CHARS = 300
MAX_SNIPPET_CHARS = 300
MAX_METADATA_ENTRIES = 16
MAX_METADATA_KEY_CHARS = 80
MAX_METADATA_TEXT_CHARS = 500
MAX_DATE_CHARS = 40
MAX_PART_NAME_CHARS = 120

_MAX_METADATA_LOOKED_AT = 256
_MAX_KEY_LOOKED_AT = 400
_MAX_DEGRADED = 16
_MAX_INTEGER = 2**63  # what every JSON reader of the ecosystem can hold

_VALUES = (RetrievalResult, Source)
_NUMBERS = (int, float)
_NO_FIELDS: Mapping[str, Any] = {}


def normalize_response(
    response: object,
    *,
    query: str,
    top_k: int = DEFAULT_TOP_K,
    max_content_chars: int = MAX_CONTENT_CHARS,
    language: Language = "en",
    turn: TurnCitations | None = None,
) -> KnowledgeAnswer:
    """Bound, clean and cite a provider's answer.

    Nothing in ``response`` is trusted: one bad result is dropped and counted, and never harms the others.

    Args:
        response: a sequence of results, or a mapping or object with ``results``; each result a
            :class:`~qak_core.RetrievalResult` or a mapping in the wire shape or one of the older names.
        query: what was asked; repeated in the answer.
        top_k: 1 to 8 results at most.
        max_content_chars: 1 to 4,000 code points a result at most.
        language: of the untrusted-data notice.
        turn: the citation numbers given out so far in this turn; a fresh turn if absent.

    Raises:
        KnowledgeInvalidResponse: ``response`` has none of these shapes.
    """
    candidates, degraded = _read_response(response)
    found = _Found(
        top_k=valid_top_k(top_k),
        max_content_chars=max(1, min(max_content_chars, MAX_CONTENT_CHARS)),
        turn=turn or TurnCitations(),
    )
    for candidate in candidates:
        if len(found.results) == found.top_k:
            break
        found.consider(candidate)
    answer = KnowledgeAnswer(
        status="ok" if found.results else "not_found",
        query=cut(clean(query), MAX_QUERY_CHARS),
        results=found.results,
        citations=list(found.citations.values()),
        notice=NOTICE[language],
        degraded=degraded,
        dropped=dict(found.dropped),
    )
    return fit_budget(answer)


def _read_response(response: object) -> tuple[list[object], tuple[str, ...]]:
    read = attempt(lambda: _parts(response), default=None, what="a response")
    if read is None:  # raised here, outside the handler, so that it holds nothing of what a foreign object raised
        raise KnowledgeInvalidResponse
    return read


def _parts(response: object) -> tuple[list[object], tuple[str, ...]] | None:
    """Return the first candidates and the degraded parts, or ``None`` for another shape."""
    results: object = response
    degraded: object = ()
    if isinstance(response, Mapping):
        results, degraded = response.get("results"), response.get("degraded")
    elif not isinstance(response, Sequence):
        results, degraded = getattr(response, "results", None), getattr(response, "degraded", None)
    if not isinstance(results, Sequence) or isinstance(results, str | bytes | bytearray | memoryview):
        return None
    parts = degraded if isinstance(degraded, list | tuple) else ()
    names = tuple(
        cut(redact(collapse(part)), MAX_PART_NAME_CHARS) for part in parts[:_MAX_DEGRADED] if isinstance(part, str)
    )
    return list(islice(results, MAX_CANDIDATES)), names


class _Found:
    """The usable results so far."""

    def __init__(self, *, top_k: int, max_content_chars: int, turn: TurnCitations) -> None:
        self.top_k = top_k
        self.max_content_chars = max_content_chars
        self.turn = turn
        self.results: list[AnswerResult] = []
        self.citations: dict[str, Citation] = {}
        self.dropped: Counter[str] = Counter()
        self._ids: set[str] = set()

    def consider(self, candidate: object) -> None:
        """Take a candidate in, or count why not."""
        unreadable: str | None = "unreadable"
        if reason := attempt(lambda: self._take(candidate), default=unreadable, what="a result"):
            self.dropped[reason] += 1

    def _take(self, candidate: object) -> str | None:
        get = _getter(candidate)
        if get is None:
            return "unreadable"
        result_id = _result_id(_first(get, "id", "chunkId", "chunk_id"))
        if not result_id:
            return "no_id"
        if result_id in self._ids:
            return "duplicate_id"
        content, truncated = self._content(_first(get, "content", "text"))
        if not content:
            return "no_content"
        truncated = truncated or (isinstance(candidate, AnswerResult) and candidate.truncated is True)
        source = attempt(lambda: _source(get), default=None, what="a source")
        metadata = attempt(lambda: _metadata(get("metadata")), default=_NO_FIELDS, what="metadata")
        result = AnswerResult(
            id=result_id,
            content=content,
            score=_score(get("score")),
            source=source,
            metadata=metadata,
            citation_id=self._cite(source, content, metadata),
            truncated=truncated,
        )
        self._ids.add(result_id)
        self.results.append(result)
        return None

    def _content(self, value: object) -> tuple[str, bool]:
        if not isinstance(value, str):
            return "", False
        whole = exact_str(value)
        # Cleaning costs time by length, so look at no more than could ever be kept.
        text = clean(whole[: 4 * MAX_CONTENT_CHARS]).strip()
        content = cut(text, self.max_content_chars)
        return content, len(content) < len(text) or len(whole) > 4 * MAX_CONTENT_CHARS

    def _cite(self, source: Source | None, content: str, metadata: Mapping[str, Any]) -> str | None:
        if source is None or source.uri is None or (citation_id := self.turn.id_of(source.uri)) is None:
            return None
        if citation_id not in self.citations:
            published_at = metadata.get("published_at", metadata.get("publishedAt"))
            self.citations[citation_id] = Citation(
                id=citation_id,
                title=source.title or source.id or source.uri.split("/")[2],
                url=source.uri,
                snippet=cut(collapse(content[: 4 * MAX_SNIPPET_CHARS]), MAX_SNIPPET_CHARS),
                source=source.id,
                published_at=cut(published_at, MAX_DATE_CHARS) or None if isinstance(published_at, str) else None,
            )
        return citation_id


_Get = Callable[[str], Any]


def _getter(candidate: object) -> _Get | None:
    """Return a function that gives a field by name, ``None`` where it is absent."""
    if type(candidate) is dict or isinstance(candidate, Mapping):  # the first test spares most the slow second
        return candidate.get
    if isinstance(candidate, _VALUES):
        return lambda name: getattr(candidate, name, None)
    return None


def _first(get: _Get, *names: str) -> Any:
    for name in names:
        if (value := get(name)) is not None:
            return value
    return None


def _result_id(value: object) -> str:
    text = _identifier(value)
    if len(text) > MAX_ID_CHARS or redact_credentials(text) != text:
        import hashlib  # rarely needed, and not cheap to load

        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        kept = text[:143] if redact_credentials(text) == text else "id"
        return f"{kept}~{digest}"
    return text


def _identifier(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(exact_int(value))
    return clean(value).strip() if isinstance(value, str) else ""


def _score(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        score = exact_float(value) if isinstance(value, float) else float(exact_int(value))
    except OverflowError:
        return None
    return score + 0.0 if math.isfinite(score) else None  # adding 0.0 turns -0.0 round


def _source(get: _Get) -> Source | None:
    nested = _getter(get("source")) or _NO_FIELDS.get
    source_id = _first(nested, "id")
    if source_id is None:
        source_id = _first(get, "documentId", "document_id")
    fields = (
        _field(str(exact_int(source_id)) if type(source_id) is int else source_id, MAX_SOURCE_ID_CHARS),
        _field(nested("title"), MAX_TITLE_CHARS) or _field(get("title"), MAX_TITLE_CHARS),
        public_url(nested("uri")) or public_url(nested("url")) or public_url(get("url")),
        _field(_first(nested, "mime_type", "mimeType"), MAX_MIME_TYPE_CHARS)
        or _field(_first(get, "mimeType", "mime_type"), MAX_MIME_TYPE_CHARS),
        _field(nested("locator"), MAX_LOCATOR_CHARS, one_line=False),  # two blanks in a path are two blanks
    )
    if not any(fields):
        return None
    return Source(id=fields[0], title=fields[1], uri=fields[2], mime_type=fields[3], locator=fields[4])


def _field(value: object, limit: int, *, one_line: bool = True) -> str | None:
    # Redaction needs the whole of a credential, so it comes before the cut; what is far beyond the cut is not read.
    return _readable(exact_str(value)[: 8 * limit], limit, one_line) if isinstance(value, str) else None


@lru_cache(maxsize=256)  # the passages of a conversation share their documents' titles and places
def _readable(text: str, limit: int, one_line: bool) -> str | None:
    plain = collapse(text) if one_line else clean(text).strip()
    return cut(redact_credentials(plain), limit) or None


def _metadata(value: object) -> Mapping[str, str | bool | int | float]:
    if not isinstance(value, Mapping):
        return _NO_FIELDS
    kept: dict[str, str | bool | int | float] = {}
    for key, entry in islice(value.items(), _MAX_METADATA_LOOKED_AT):
        if len(kept) == MAX_METADATA_ENTRIES:
            break
        name, secret = _metadata_key(exact_str(key)[:_MAX_KEY_LOOKED_AT]) if isinstance(key, str) else ("", False)
        if not name or name in kept:
            continue
        plain = _plain(entry)
        if plain is not None:
            kept[name] = REDACTED if secret and isinstance(plain, str) else plain
    return kept


@lru_cache(maxsize=256)  # the results of a provider share their keys
def _metadata_key(key: str) -> tuple[str, bool]:
    """Return a key as it may be kept, empty if it may not, and whether it names a credential."""
    name = clean(key).strip()
    usable = 0 < len(name) <= MAX_METADATA_KEY_CHARS and redact(name) == name
    return (name, names_credential(name)) if usable else ("", False)


def _plain(value: object) -> str | bool | int | float | None:
    """Return a metadata value as an exact built-in, or ``None`` if it is not one that may pass."""
    if isinstance(value, str):
        text = clean(exact_str(value)[: 4 * MAX_METADATA_TEXT_CHARS])
        return cut(redact(text), MAX_METADATA_TEXT_CHARS)
    if value is True or value is False:  # isinstance() believes an object that lies about its class
        return value
    if isinstance(value, int):
        number = exact_int(value)
        return number if -_MAX_INTEGER <= number < _MAX_INTEGER else None
    if isinstance(value, float):
        real = exact_float(value)
        return real if math.isfinite(real) else None
    return None
