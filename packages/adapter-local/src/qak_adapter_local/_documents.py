"""What the library says of a document, and how an extracted one becomes an index entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qak_adapter_local._errors import CONVERSION_CODES, LibraryError, reason_of
from qak_adapter_local._index import IndexHit, Passage
from qak_adapter_local._paths import display_name
from qak_adapter_local._summary import Summary

if TYPE_CHECKING:
    from qak_documents import Document

# Windows that a voice agent can take in whole; whole sentences, none twice.
_PASSAGE_TOKENS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryDocument:
    """One document of a library or folder.

    Attributes:
        id: 16 hexadecimal digits, the same for as long as the document stays.
        title: for people.
        gist: one line by a model, or empty.
        sections: at most 24 of its headings, verbatim.
        section_count: how many headings it has.
        name: of the file it came from.
        mime_type: of that file.
        size_bytes: of that file.
        page_count: pages, slides or sheets, where it has some.
        source_path: the file it came from; never changed, may be gone.
        path: the file to read for its whole text: UTF-8 Markdown in a library, the file itself in a folder.
        added_at: ISO 8601 in UTC.
        updated_at: the same, of the last time it was added again or changed.
    """

    id: str
    title: str
    gist: str
    sections: Sequence[str]
    section_count: int
    name: str
    mime_type: str
    size_bytes: int
    page_count: int | None
    source_path: str
    path: str
    added_at: str
    updated_at: str

    @classmethod
    def of(
        cls,
        document: Document,
        summary: Summary,
        *,
        document_id: str,
        source: Path,
        size_bytes: int,
        added_at: str,
        updated_at: str,
    ) -> LibraryDocument:
        """Describe an extracted file; its ``path`` stays empty until it is known where it is looked for."""
        return cls(
            id=document_id,
            title=summary.title,
            gist=summary.gist,
            sections=summary.sections,
            section_count=len(document.headings),
            name=display_name(source.name),
            mime_type=document.mime_type,
            size_bytes=size_bytes,
            page_count=document.page_count,
            source_path=str(source),
            path="",
            added_at=added_at,
            updated_at=updated_at,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "sections": list(self.sections)}

    def texts(self) -> tuple[str, ...]:
        """Return what must be Unicode text for the index to take it."""
        return (self.title, self.gist, *self.sections, self.name, self.mime_type, self.added_at, self.updated_at)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LibraryDocument:
        """Read what :meth:`to_dict` gave."""
        fields = {name: values[name] for name in cls.__slots__}
        return cls(**{**fields, "sections": tuple(values["sections"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHit:
    """One document or passage that a search found.

    Attributes:
        document: where it is.
        score: above 0, at most 1; comparable within one answer.
        excerpt: the passage that fits best; empty for a document without text.
        page: where the passage begins; ``None`` too where only the title or a heading matched.
        section: the heading above it, verbatim; the same.
    """

    document: LibraryDocument
    score: float
    excerpt: str = ""
    page: int | None = None
    section: str | None = None

    @classmethod
    def of(cls, hit: IndexHit, document: LibraryDocument) -> SearchHit:
        """Make a hit of one of the index."""
        if hit.passage is None:
            return cls(document=document, score=hit.score)
        page, section = (hit.passage.page, hit.passage.section) if hit.by_text else (None, None)
        return cls(document=document, score=hit.score, excerpt=hit.passage.text, page=page, section=section)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A passage by its place in the Markdown, in UTF-16 code units."""

    start: int
    end: int
    page: int | None
    section: str | None

    def is_sound(self) -> bool:
        """Whether the values are of their types, which those read from a file may not be."""
        numbers = (self.start, self.end, 1 if self.page is None else self.page)
        return all(type(number) is int and 0 <= number < 1 << 31 for number in numbers) and isinstance(
            self.section, str | None
        )


def convert(content: bytes, name: str) -> Document:
    """Extract a file's text.

    Raises:
        LibraryError: ``unsupported_type``, ``too_large`` or ``conversion_failed``; ``library_unavailable`` if the
            converter could not be run at all.
    """
    from qak_documents import DocumentError, extract

    try:
        return extract(content, filename=name)
    except DocumentError as error:
        raise LibraryError(CONVERSION_CODES.get(error.code, "conversion_failed"), str(error)) from None
    except OSError as error:
        raise LibraryError("library_unavailable", f"The converter cannot be run ({reason_of(error)}).") from None


def spans_of(document: Document) -> list[Span]:
    """Cut a document into passages, none of which reaches over a page or into the next section."""
    from qak_documents import chunk

    blocks = document.blocks
    starts = [block.start for block in blocks]
    sections: list[str | None] = []
    for block in blocks:
        above = sections[-1] if sections else None
        sections.append(block.text if block.kind == "heading" else above)
    borders = []
    for number, (previous, block) in enumerate(pairwise(blocks), 1):
        # Headings that follow each other stay together, so that no passage is a heading alone.
        if block.page != previous.page or (block.kind == "heading" and previous.kind != "heading"):
            borders.append(starts[number])
    for number in range(len(blocks) - 2, -1, -1):
        if blocks[number].kind == blocks[number + 1].kind == "heading":
            sections[number] = sections[number + 1]
    spans = []
    for part in chunk(document, max_tokens=_PASSAGE_TOKENS, overlap_tokens=0):
        inner = borders[bisect_right(borders, part.start) : bisect_left(borders, part.end)]
        for start, end in zip((part.start, *inner), (*inner, part.end), strict=True):
            number = max(bisect_right(starts, start) - 1, 0)
            spans.append(Span(start=start, end=end, page=blocks[number].page, section=sections[number]))
    return spans


def passages_of(markdown: str, spans: Sequence[Span]) -> list[Passage]:
    """Return the text of each span."""
    units = markdown.encode("utf-16-le")
    return [
        Passage(
            text=units[2 * span.start : 2 * span.end].decode("utf-16-le", errors="replace").strip(),
            page=span.page,
            section=span.section,
        )
        for span in spans
    ]
