"""PDF to blocks: lines as pdfium finds them, with their place and size, joined to headings and paragraphs.

Read here rather than by the general extractor, which pairs the texts of a page with its places by their order: where a
footer is drawn before the body, it takes the footer for a heading or drops body text as if that were the footer.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from qak_documents._document import Piece, heading, paragraph
from qak_documents._errors import DamagedDocument, EncryptedDocument

_CJK = r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_CJK_ENDS = re.compile(rf"{_CJK}$")
_CJK_BEGINS = re.compile(_CJK)
_COLUMNS = re.compile(rf"{_CJK} {_CJK}.*{_CJK} {_CJK}")  # running Chinese has no spaces, a table's row has
_BULLET = re.compile(r"[•●○■▪◆\uf0b7·–-]\s+(?=\S)")
_ITEM = re.compile(rf"{_BULLET.pattern}|\(?\d{{1,3}}[.)、）]")
_SENTENCE_END = re.compile(r"""[。！？；：.!?;:…][”’」』）】》"')\]]*$""")
_LINE_END_CODES = frozenset({0x0A, 0x0D})
_SOFT_HYPHEN_CODES = frozenset({0x02, 0xAD, 0xFFFE})  # how pdfium marks a hyphen that only the line end made
_INVISIBLE_CODES = frozenset({0x00, 0x09, 0x20, 0xA0, *_SOFT_HYPHEN_CODES})
_NO_TITLES = ("", "untitled", "(anonymous)")
_MAX_PITCH = 1.75  # of the type size from one line of a paragraph to the next
_MAX_INDENT = 3  # type sizes of a first line
_RAGGED = 4  # type sizes that a full line may be shorter than the next
_HEADING_SIZE = 1.15  # of the most frequent size
_MAX_HEADING_CHARS = 200
_EDGE_LINES = 2
_MIN_REPEATS = 3


class _Line(NamedTuple):
    """One printed line; places are in points from the lower left corner of the page."""

    text: str
    page: int
    size: float
    left: float
    right: float
    base: float


def pdf_pieces(data: bytes) -> tuple[str | None, int, list[Piece]]:
    """Return title, page count and blocks of a PDF.

    Raises:
        EncryptedDocument: it needs a password to be opened; one that only forbids printing or editing is none.
        DamagedDocument: pdfium can't read it.
    """
    import pypdfium2  # type: ignore[import-untyped]  # here, so that the module can be read without the library

    try:
        document = pypdfium2.PdfDocument(data)
        lines = [line for number, page in enumerate(document, 1) for line in _lines(page.get_textpage(), number)]
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise EncryptedDocument("The PDF is protected by a password; save it without one.") from error
        raise DamagedDocument("The file can't be read as PDF; open it in its own program and save it anew.") from error
    title = _title(document)
    body = _body_size(lines)
    pieces = list(_pieces(list(_without_running_heads(lines, body)), body))
    return (None if title.lower() in _NO_TITLES else title), len(document), pieces


def _title(document: Any) -> str:
    try:
        title: str = document.get_metadata_value("Title")
    except UnicodeDecodeError:  # half a character; no reason to lose the text
        return ""
    return title.strip()


def _lines(page: Any, number: int) -> Iterator[_Line]:
    """Return the lines of a pdfium text page in the order of its content, mostly that of reading."""
    from pypdfium2 import raw

    box, box_of = raw.FS_RECTF(), raw.FPDFText_GetLooseCharBox
    codes = [raw.FPDFText_GetUnicode(page.raw, at) for at in range(raw.FPDFText_CountChars(page.raw))]
    position = 0
    for is_end, group in groupby(codes, lambda code: code in _LINE_END_CODES):
        start, position = position, position + len(list(group))
        visible = [at for at in range(start, position) if codes[at] not in _INVISIBLE_CODES]
        if is_end or not visible:
            continue
        box_of(page.raw, visible[0], box)
        left, base = box.left, box.bottom
        box_of(page.raw, visible[-1], box)
        text = "".join(chr(code) for code in codes[visible[0] : visible[-1] + 1] if code not in _SOFT_HYPHEN_CODES)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        size = max(raw.FPDFText_GetFontSize(page.raw, at) for at in (visible[0], visible[-1])) or 1.0
        yield _Line(text, number, size, left, box.right, base)


def _body_size(lines: Sequence[_Line]) -> float:
    weights: Counter[float] = Counter()
    for line in lines:
        weights[_rounded(line.size)] += len(line.text)
    return max(weights, key=weights.__getitem__, default=0.0)


def _without_running_heads(lines: Sequence[_Line], body: float) -> Iterator[_Line]:
    """Leave out what stands highest or lowest on a third of the pages, word for word but for the page's own number.

    In large type the number counts, or the headings ``Chapter 1`` and ``Chapter 2`` would be taken for running heads.
    Pages that would be left empty stay as they are.
    """
    edges: dict[_Line, str] = {}
    pages = [list(page) for _, page in groupby(lines, lambda line: line.page)]
    for page in pages:
        by_height = sorted(page, key=lambda line: line.base)
        for line in {*by_height[:_EDGE_LINES], *by_height[-_EDGE_LINES:]}:
            may_count = line in (by_height[0], by_height[-1]) and not _is_large(line, body)
            text = re.sub(rf"(?<!\d){line.page}(?!\d)", "#", line.text, count=1) if may_count else line.text
            edges[line] = f"{line.size:.0f} {line.base:.0f} {text}"
    repeats = Counter(edges.values())
    needed = max(_MIN_REPEATS, len(pages) // 3)
    for page in pages:
        yield from [line for line in page if repeats[edges.get(line, "")] < needed] or page


def _pieces(lines: Sequence[_Line], body: float) -> Iterator[Piece]:
    sizes = sorted({_rounded(line.size) for line in lines if _is_large(line, body)}, reverse=True)
    right_edges: dict[tuple[int, float], float] = {}
    for line in lines:
        key = line.page, _rounded(line.size)
        right_edges[key] = max(right_edges.get(key, 0.0), line.right)
    gathered: list[_Line] = []
    for line in lines:
        if gathered and not _continues(gathered[-1], line, right_edges):
            yield _piece(gathered, sizes)
            gathered = []
        gathered.append(line)
    if gathered:
        yield _piece(gathered, sizes)


def _continues(above: _Line, line: _Line, right_edges: dict[tuple[int, float], float]) -> bool:
    """Whether ``line`` goes on with the paragraph that has ``above`` for its last line."""
    size = above.size
    return (
        above.page == line.page
        and abs(size - line.size) < size / 10
        and 0 < above.base - line.base < size * _MAX_PITCH
        and -size * (_RAGGED if _BULLET.match(above.text) else 1) < above.left - line.left < size * _MAX_INDENT
        and above.right > line.right - size * _RAGGED
        and not _ITEM.match(line.text)
        and not (_SENTENCE_END.search(above.text) and above.right < right_edges[above.page, _rounded(size)] - 2 * size)
    )


def _piece(lines: Sequence[_Line], heading_sizes: Sequence[float]) -> Piece:
    text, page, size = _joined([line.text for line in lines]), lines[0].page, _rounded(lines[0].size)
    if size in heading_sizes and len(text) <= _MAX_HEADING_CHARS and not _SENTENCE_END.search(text):
        return heading(text, heading_sizes.index(size) + 1, page)
    if bullet := _BULLET.match(text):
        return paragraph(text[bullet.end() :], page, "list_item", "- ")
    return paragraph(text, page)


def _joined(lines: Sequence[str]) -> str:
    """Return a paragraph on one line: Chinese without a gap, the rest with a space; rows of a table stay apart."""
    parts = [lines[0]]
    for above, line in pairwise(lines):
        if _COLUMNS.search(above) or _COLUMNS.search(line):
            gap = "\n"
        elif (_CJK_ENDS.search(above) and _CJK_BEGINS.match(line)) or above.endswith("-"):
            gap = ""
        else:
            gap = " "
        parts += gap, line
    return "".join(parts)


def _is_large(line: _Line, body: float) -> bool:
    return _rounded(line.size) > body * _HEADING_SIZE


def _rounded(size: float) -> float:
    return round(size * 2) / 2
