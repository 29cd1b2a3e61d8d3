"""Text, Markdown and CSV to documents, without a child process: time and memory are linear in their size."""

import csv
import html
import io
import re
from collections.abc import Iterator

from qak_documents._document import BlockKind, Document, Span, join, place, table

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_FRONT_MATTER = re.compile(r"---\n(?=[\w.-]+:)(?:.*\n){1,200}?---[ \t]*(?:\n|$)")
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*(.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*\*|__|\*|_|~~|`)(?=\S)(.+?)(?<=\S)\1(?!\w)|(\*\*)(?=\S)(.+?)(?<=\S)\3")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_HEADING_CHARS = 500  # a longer line is no heading, and the patterns above stay cheap


def text_document(text: str, mime_type: str, max_blocks: int) -> Document:
    """Read plain text: its paragraphs are what blank lines part; nothing in it is a heading."""

    def spans() -> Iterator[Span]:
        start = 0
        for end in (*(match.start() for match in _BLANK.finditer(text)), len(text)):
            first, last = _trim(text, start, end)
            if first < last:
                yield Span("paragraph", 0, text[first:last], first, last)
            start = end

    return place(text, spans(), title=None, mime_type=mime_type, max_blocks=max_blocks)


def csv_document(text: str, mime_type: str, max_blocks: int) -> Document:
    """Read comma, semicolon, tab or bar separated values as one table."""
    first_line = text[:10_000].lstrip("\n").partition("\n")[0]
    delimiter = max(",;\t|", key=first_line.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error:
        return text_document(text, mime_type, max_blocks)
    return join([table(rows)] if rows else [], title=None, mime_type=mime_type, page_count=None)


def markdown_document(text: str, mime_type: str, max_blocks: int) -> Document:
    """Read Markdown, kept as it stands, with blocks at its headings (ATX and Setext), lists, tables and fences."""
    front_matter = _FRONT_MATTER.match(text)
    title = _FRONT_MATTER_TITLE.search(front_matter[0]) if front_matter else None
    return place(
        text,
        _markdown_spans(text, front_matter.end() if front_matter else 0),
        title=title[1].strip().strip("\"'") if title else None,
        mime_type=mime_type,
        max_blocks=max_blocks,
    )


def _markdown_spans(text: str, offset: int) -> Iterator[Span]:
    kind: BlockKind | None = None
    fence = ""
    start = 0

    def block(end: int) -> Iterator[Span]:
        if kind is not None:
            first, last = _trim(text, start, end)
            yield Span(kind, 0, text[first:last], first, last)

    if offset:
        first, last = _trim(text, 0, offset)
        yield Span("code", 0, text[first:last], first, last)
    for line in text[offset:].split("\n"):
        at, offset = offset, offset + len(line) + 1
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                yield from block(at + len(line))
                kind = None
            continue
        if not line.strip():
            yield from block(at)
            kind = None
        elif opening := _FENCE.match(line):
            yield from block(at)
            kind, start, fence = "code", at, opening[1]
        elif (level := _atx_level(line)) and len(line) <= _HEADING_CHARS:
            yield from block(at)
            kind = None
            yield Span("heading", level, _visible(line.strip()[level:]), *_trim(text, at, at + len(line)))
        elif kind == "paragraph" and at - start <= _HEADING_CHARS and _SETEXT.match(line):
            yield Span(
                "heading", 1 if "=" in line else 2, _visible(text[start:at]), *_trim(text, start, at + len(line))
            )
            kind = None
        elif _RULE.match(line):
            yield from block(at)
            kind = None
        elif (beginning := _beginning(line)) and (beginning == "list_item" or kind != beginning):
            yield from block(at)
            kind, start = beginning, at
        elif kind is None or (kind == "table" and not beginning):
            yield from block(at)
            kind, start = "paragraph", at
    yield from block(len(text))


def _beginning(line: str) -> BlockKind | None:
    if _LIST_ITEM.match(line):
        return "list_item"
    return {"|": "table", ">": "quote"}.get(line.lstrip()[0])  # type: ignore[return-value]  # both are kinds


def _atx_level(line: str) -> int:
    found = _ATX.match(line)
    return len(found[1]) if found else 0


def _visible(heading: str) -> str:
    """Return a heading's Markdown as its reader sees it."""
    heading = heading.strip()
    without_closing = heading.rstrip("#")
    if without_closing != heading and without_closing[-1:] in ("", " ", "\t"):
        heading = without_closing
    heading = _LINK.sub(r"\1", heading)
    heading = _EMPHASIS.sub(lambda match: match[2] or match[4], heading)
    return html.unescape(_ESCAPE.sub(r"\1", " ".join(heading.split())))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in "\n \t\f":
        start += 1
    while start < end and text[end - 1] in "\n \t\f":
        end -= 1
    return start, end
