"""The extracted document: Markdown and the blocks it is made of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from qak_documents._errors import DocumentTooLarge
from qak_documents._utf16 import Utf16Index, utf16_length

BlockKind = Literal["heading", "paragraph", "list_item", "table", "code", "quote"]

# Characters no text needs, and lone surrogates, which can't be written as UTF-8.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
# What would start a heading or a code fence when the Markdown is read again.
_STRUCTURE = re.compile(r"^( {0,3})(?=#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$|```|~~~)", re.MULTILINE)
_BACKTICKS = re.compile("`{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One heading, paragraph, list item, table, code or quotation of a document.

    Attributes:
        kind: what the block is.
        level: 1–6 for headings, 0 otherwise.
        text: the visible text of a heading, word for word; the Markdown of any other block.
        page: page of a PDF, slide of a presentation, sheet of a workbook, from 1; None where the format has none.
        start: first UTF-16 code unit of the block's Markdown in ``Document.markdown``.
        end: the UTF-16 code unit after its last.
    """

    kind: BlockKind
    level: int
    text: str
    page: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file as Markdown.

    Attributes:
        markdown: the whole text. Holds no lone surrogates and no control characters but newline, tab and form feed.
        blocks: in reading order, without overlap.
        title: from the file's metadata, else its first heading of level 1, else None.
        mime_type: media type of the source.
        page_count: pages, slides or sheets; None where the format has none.
    """

    markdown: str
    blocks: tuple[Block, ...]
    title: str | None
    mime_type: str
    page_count: int | None

    @property
    def headings(self) -> tuple[Block, ...]:
        """The blocks that are headings, in reading order."""
        return tuple(block for block in self.blocks if block.kind == "heading")

    def slice(self, start: int, end: int) -> str:
        """Return the Markdown between two UTF-16 offsets, such as those of a block or a chunk."""
        index = Utf16Index(self.markdown)
        return self.markdown[index.points(start) : index.points(end)]


class Piece(NamedTuple):
    """A block on its way into a document: not placed yet."""

    kind: BlockKind
    level: int
    text: str
    markdown: str
    page: int | None = None


class Span(NamedTuple):
    """A block found in a finished text, placed by code points."""

    kind: BlockKind
    level: int
    text: str
    start: int
    end: int


def clean(text: str) -> str:
    r"""Return ``text`` with ``\n`` line ends, without what ``Document.markdown`` promises not to hold."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub(lambda match: "\ufffd" if match[0] >= "\ud800" else "", text)


def heading(text: str, level: int, page: int | None = None) -> Piece:
    """Return a heading; its text is brought onto one line."""
    text = " ".join(text.split())
    level = min(max(level, 1), 6)
    return Piece("heading", level, text, f"{'#' * level} {text}", page)


def paragraph(text: str, page: int | None = None, kind: BlockKind = "paragraph", prefix: str = "") -> Piece:
    """Return a paragraph, list item (``prefix`` is its marker) or quotation (``> ``, set before each line)."""
    text = _STRUCTURE.sub(r"\1\\", text.strip())
    lead = prefix if kind == "quote" else " " * len(prefix)
    markdown = prefix + text.replace("\n", "\n" + lead)
    return Piece(kind, 0, markdown, markdown, page)


def code(text: str, language: str = "", page: int | None = None) -> Piece:
    """Return a fenced code block whose fence is longer than any fence inside."""
    fence = "`" * max((len(run) + 1 for run in _BACKTICKS.findall(text)), default=3)
    markdown = f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"
    return Piece("code", 0, markdown, markdown, page)


def table(rows: Iterable[Iterable[str]], page: int | None = None) -> Piece:
    """Return a Markdown table whose first row is the header; short rows stay short: one long row costs nothing."""
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()).replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
        if len(lines) == 1:
            lines.append(f"|{' --- |' * len(cells)}")
    markdown = "\n".join(lines)
    return Piece("table", 0, markdown, markdown, page)


def join(pieces: Iterable[Piece], *, title: str | None, mime_type: str, page_count: int | None) -> Document:
    """Return the document made of ``pieces``, one blank line between them, none between list items."""
    parts: list[str] = []
    blocks: list[Block] = []
    end = 0
    for piece in pieces:
        if parts:
            gap = "\n" if piece.kind == "list_item" and blocks[-1].kind == "list_item" else "\n\n"
            parts.append(gap)
            end += len(gap)
        start, end = end, end + utf16_length(piece.markdown)
        parts.append(piece.markdown)
        blocks.append(Block(kind=piece.kind, level=piece.level, text=piece.text, page=piece.page, start=start, end=end))
    return _document("".join(parts), blocks, title, mime_type, page_count)


def place(text: str, spans: Iterable[Span], *, title: str | None, mime_type: str, max_blocks: int) -> Document:
    """Return the document whose Markdown is ``text`` itself, with blocks at ``spans``.

    Raises:
        DocumentTooLarge: there are more than ``max_blocks``.
    """
    index = Utf16Index(text)
    blocks = [
        Block(
            kind=span.kind,
            level=span.level,
            text=span.text,
            page=None,
            start=index.units(span.start),
            end=index.units(span.end),
        )
        for span in islice(spans, max_blocks + 1)
    ]
    if len(blocks) > max_blocks:
        raise too_many_blocks(max_blocks)
    return _document(text, blocks, title, mime_type, None)


def too_many_blocks(max_blocks: int) -> DocumentTooLarge:
    """The error of a document that consists of too many parts."""
    return DocumentTooLarge(
        f"The text has more than {max_blocks:,} headings and paragraphs, the limit; split the file."
    )


def _document(
    markdown: str, blocks: list[Block], title: str | None, mime_type: str, page_count: int | None
) -> Document:
    title = " ".join((title or "").split()) or next(
        (block.text for block in blocks if block.kind == "heading" and block.level == 1), None
    )
    return Document(markdown=markdown, blocks=tuple(blocks), title=title, mime_type=mime_type, page_count=page_count)
