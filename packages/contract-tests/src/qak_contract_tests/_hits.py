"""Reading an answer without judging it, so that one fault is found by the one clause that is about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from qak_contract_tests.corpus import Corpus, Document
from qak_core import RetrievalResult, Source

_MAX_HITS = 1_000  # an answer may have no end


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One result as the provider gave it; nothing is checked, everything may be missing."""

    raw: Any
    id: Any
    content: Any
    score: Any
    source: Any
    source_id: Any
    title: Any
    uri: Any
    mime_type: Any
    locator: Any
    metadata: Any


def read_hits(response: object) -> list[Hit]:
    """Return the results in whatever holds them; an answer without any is empty."""
    found = response
    if isinstance(response, Mapping):
        found = response.get("results")
    elif not isinstance(response, Sequence):
        found = getattr(response, "results", response)
    if found is None or isinstance(found, str) or not isinstance(found, Iterable):
        return []
    return [_hit(candidate) for candidate in islice(found, _MAX_HITS)]


def documents_of(hit: Hit, corpus: Corpus) -> set[str]:
    """Return the ids of all documents of which the result shows a sign."""
    text = "\n".join(texts_in(hit.raw)).casefold()
    return {
        document.id
        for document in corpus.documents
        if names(hit, document) or any(word.casefold() in text for word in document.words)
    }


def names(hit: Hit, document: Document) -> bool:
    """Whether the result says that it comes from this document."""
    ids = [value for value in (hit.id, hit.source_id) if isinstance(value, str)]
    return (
        any(value == document.id or value.startswith((f"{document.id}#", f"{document.id}:")) for value in ids)
        or hit.title == document.title
        or (document.uri is not None and hit.uri == document.uri)
    )


def texts_in(value: object) -> Iterator[str]:
    """Walk over every text in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from texts_in(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from texts_in(getattr(value, field.name))


def snapshot(value: object) -> object:
    """Copy a value into dictionaries and lists that compare by what they hold."""
    if isinstance(value, Mapping):
        return {key: snapshot(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [snapshot(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: snapshot(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def vandalise(value: object) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, dict):
        for item in value.values():
            vandalise(item)
        value.clear()
        value["vandal"] = "was here"
    elif isinstance(value, list | tuple):
        for item in value:
            vandalise(item)
        if isinstance(value, list):
            value.clear()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            vandalise(getattr(value, field.name))


def _hit(candidate: Any) -> Hit:
    if isinstance(candidate, RetrievalResult):
        source = candidate.source if isinstance(candidate.source, Source) else Source()
        return Hit(
            raw=candidate,
            id=candidate.id,
            content=candidate.content,
            score=candidate.score,
            source=candidate.source,
            source_id=source.id,
            title=source.title,
            uri=source.uri,
            mime_type=source.mime_type,
            locator=source.locator,
            metadata=candidate.metadata,
        )
    fields = candidate if isinstance(candidate, Mapping) else {}
    nested = fields.get("source")
    inner = nested if isinstance(nested, Mapping) else {}
    return Hit(
        raw=candidate,
        id=_first(fields, "id", "chunkId", "chunk_id"),
        content=_first(fields, "content", "text"),
        score=fields.get("score"),
        source=nested,
        source_id=_first(inner, "id") or _first(fields, "documentId", "document_id"),
        title=_first(inner, "title") or _first(fields, "title"),
        uri=_first(inner, "uri", "url") or _first(fields, "url"),
        mime_type=_first(inner, "mimeType", "mime_type") or _first(fields, "mimeType", "mime_type"),
        locator=_first(inner, "locator"),
        metadata=fields.get("metadata"),
    )


def _first(fields: Mapping[Any, Any], *keys: str) -> Any:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)
