"""A document in overlapping windows for search."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from qak_documents._document import Document
from qak_documents._tokens import cut_by_cost, estimate_tokens, token_cost
from qak_documents._utf16 import Utf16Index

MIN_CHUNK_TOKENS = 100
MAX_CHUNK_TOKENS = 4096
_SENTENCE_END = re.compile(r"""(?:[。！？!?；…]+[”’」』）】》"')\]]*|\.[”’」』）】》"')\]]*(?=\s))[^\S\n]*\n*|\n+""")
_HEADING_FILL = 0.75  # a window this full ends before a heading rather than after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One window of a document.

    Attributes:
        ordinal: its place in the document, from 0.
        text: exactly ``document.slice(start, end)``.
        start: first UTF-16 code unit in ``Document.markdown``.
        end: the UTF-16 code unit after its last.
        page: page, slide or sheet it begins on; None where the format has none.
        tokens: the estimate of ``estimate_tokens``, at most what was asked for.
        overlap: UTF-16 code units at its beginning that the chunk before also holds.
        heading_path: the headings above its beginning, outermost first.
    """

    ordinal: int
    text: str
    start: int
    end: int
    page: int | None
    tokens: int
    overlap: int
    heading_path: tuple[str, ...]


class _Unit(NamedTuple):
    """What is never cut: a sentence, a heading, a line of a table; with the white space after it. In code points."""

    start: int
    end: int
    cost: int
    is_heading: bool


def chunk(document: Document, *, max_tokens: int = 800, overlap_tokens: int = 400) -> list[Chunk]:
    """Cut ``document`` into windows of whole sentences, as full as ``max_tokens`` allows.

    A window that is three quarters full ends before a heading, and none ends with one. Every visible character is in a
    chunk. A sentence longer than half a window (or than the overlap) is cut after a comma or space, else anywhere
    between two characters.

    Args:
        document: what ``extract`` returned.
        max_tokens: most estimated tokens of a chunk, 100–4096.
        overlap_tokens: most estimated tokens that a chunk repeats from the one before, 0 to half of ``max_tokens``.

    Raises:
        ValueError: a number is out of its bounds.
    """
    if not MIN_CHUNK_TOKENS <= max_tokens <= MAX_CHUNK_TOKENS:
        raise ValueError(f"max_tokens is {max_tokens}, expected {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS}.")
    if not 0 <= overlap_tokens * 2 <= max_tokens:
        raise ValueError(f"overlap_tokens is {overlap_tokens}, expected 0 to half of max_tokens ({max_tokens // 2}).")
    text = document.markdown
    index = Utf16Index(text)
    starts = [block.start for block in document.blocks]
    paths = _heading_paths(document)
    units = _units(document, index, max_tokens, overlap_tokens)
    chunks: list[Chunk] = []
    for first, last in _windows(units, max_tokens * 100, overlap_tokens * 100):
        content = text[first:last].rstrip()
        first, content = first + len(content) - len(content.lstrip("\n")), content.lstrip("\n")
        if not content:
            continue
        start, end = index.units(first), index.units(first + len(content))
        block = max(bisect_right(starts, start) - 1, 0)
        chunks.append(
            Chunk(
                ordinal=len(chunks),
                text=content,
                start=start,
                end=end,
                page=document.blocks[block].page if document.blocks else None,
                tokens=estimate_tokens(content),
                overlap=max(0, chunks[-1].end - start) if chunks else 0,
                heading_path=paths[block] if document.blocks else (),
            )
        )
    return chunks


def _units(document: Document, index: Utf16Index, max_tokens: int, overlap_tokens: int) -> Iterator[_Unit]:
    text = document.markdown
    max_cost = 50 * max_tokens  # half a window, so that a new one always fits beside the overlap
    if overlap_tokens:
        max_cost = min(max_cost, max(100 * overlap_tokens, 25 * max_tokens))
    starts = [0, *(index.points(block.start) for block in document.blocks), len(text)]
    headings = [False, *(block.kind == "heading" for block in document.blocks)]
    for start, stop, is_heading in zip(starts, starts[1:], headings, strict=False):
        ends = [match.end() for match in _SENTENCE_END.finditer(text, start, stop)] if not is_heading else []
        for end in (*ends, stop):
            cost = token_cost(text[start:end])
            if cost > max_cost:
                for first, last in cut_by_cost(text, start, end, max_cost):
                    yield _Unit(first, last, token_cost(text[first:last]), is_heading)
            elif start < end:
                yield _Unit(start, end, cost, is_heading)
            start = end


def _windows(units: Iterator[_Unit], max_cost: int, overlap_cost: int) -> Iterator[tuple[int, int]]:
    window: list[_Unit] = []
    cost = 0
    fresh = 0  # position of the first unit of the window that no earlier window had
    for unit in units:
        while cost + unit.cost > max_cost:
            cut = _cut(window, fresh, cost, max_cost)
            yield window[0].start, window[cut - 1].end
            keep, kept_cost = cut, 0
            while keep > 1 and kept_cost + window[keep - 1].cost <= overlap_cost:
                keep -= 1
                kept_cost += window[keep].cost
            window, fresh = window[keep:], cut - keep
            cost = sum(kept.cost for kept in window)
        window.append(unit)
        cost += unit.cost
    if len(window) > fresh:
        yield window[0].start, window[-1].end


def _cut(window: list[_Unit], fresh: int, cost: int, max_cost: int) -> int:
    """Return how many units the full ``window`` keeps: up to a heading near its end, and never a heading last."""
    for position in range(len(window) - 1, fresh, -1):
        cost -= window[position].cost
        if cost < max_cost * _HEADING_FILL:
            break
        if window[position].is_heading:
            while position - 1 > fresh and window[position - 1].is_heading:
                position -= 1
            return position
    return len(window)


def _heading_paths(document: Document) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    path: list[tuple[int, str]] = []
    for block in document.blocks:
        if block.kind == "heading":
            path = [above for above in path if above[0] < block.level] + [(block.level, block.text)]
        paths.append(tuple(text for _, text in path))
    return paths
