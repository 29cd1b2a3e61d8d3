"""HTML to blocks: every visible text once, in reading order."""

import re
from html.parser import HTMLParser

from qak_documents._document import Piece, code, heading, paragraph, table

_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "nav", "select"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form head header hgroup hr html legend li main menu ol option p pre section summary table td th title tr "
    "ul".split()
) | set(_HEADINGS)
_ROW_PARTS = frozenset({"tr", "td", "th"})
_SPACES = re.compile(r"[ \t\n\f\xa0]+")
_SPACE_RUN = re.compile(" {2,}")
_LINE_END = re.compile(r" *\n[ \n]*")


class _Walker(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[Piece] = []
        self.title: str | None = None
        self._text: list[str] = []
        self._hidden: list[str] = []
        self._open: list[str] = []  # what decides the kind of the next block: headings, pre, blockquote, title
        self._lists: list[int | None] = []  # for each open list the next number, None for bullets
        self._item_begins = False
        self._tables = 0
        self._rows: list[list[str]] = []
        self._in_cell = False
        self._language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        if self._hidden:
            return
        if tag == "br":
            self._text.append("\n")
        elif tag == "code" and self._open[-1:] == ["pre"]:
            classes = (dict(attrs).get("class") or "").split()
            self._language = next((name[9:] for name in classes if name.startswith("language-")), "")
        elif tag in _ROW_PARTS and self._tables == 1:
            self._end_cell()
            if tag == "tr" or not self._rows:
                self._rows.append([])
            self._in_cell = tag != "tr"
        elif tag in _BREAKS:
            self._break()
            if tag in _HEADINGS or tag in ("pre", "blockquote", "title"):
                self._open.append(tag)
            elif tag in ("ul", "ol", "menu"):
                self._lists.append(1 if tag == "ol" else None)
            elif tag == "li":
                self._item_begins = True
            elif tag == "table":
                self._tables += 1

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag in self._hidden:
                del self._hidden[self._hidden.index(tag) :]
            return
        if tag in _ROW_PARTS and self._tables == 1:
            self._end_cell()
        elif tag in _BREAKS:
            self._break()
            if tag in self._open:
                del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
            elif tag in ("ul", "ol", "menu") and self._lists:
                self._lists.pop()
                self._item_begins = False
            elif tag == "li":
                self._item_begins = False
            elif tag == "table" and self._tables:
                self._tables -= 1
                if not self._tables:
                    self._end_table()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data if self._open[-1:] == ["pre"] else _SPACES.sub(" ", data))

    def close(self) -> None:
        super().close()
        self._break()
        self._end_table()

    def _break(self) -> None:
        """End the block at hand; inside a table cell only the line."""
        if self._in_cell:
            self._text.append("\n")
            return
        raw, self._text = "".join(self._text), []
        text = _tidy(raw)
        context = self._open[-1] if self._open else ""
        if not text:
            return
        if context == "title":
            self.title = self.title or text
        elif context in _HEADINGS:
            self.pieces.append(heading(text, _HEADINGS[context]))
        elif context == "pre":
            self.pieces.append(code(raw, self._language))
            self._language = ""
        elif context == "blockquote":
            self.pieces.append(paragraph(text, kind="quote", prefix="> "))
        elif self._lists and self._item_begins:
            self.pieces.append(paragraph(text, kind="list_item", prefix=self._marker()))
            self._item_begins = False
        else:
            self.pieces.append(paragraph(text))

    def _marker(self) -> str:
        number = self._lists[-1]
        indent = "  " * (len(self._lists) - 1)
        if number is None:
            return f"{indent}- "
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _end_cell(self) -> None:
        text, self._text = "".join(self._text), []
        if self._in_cell:
            self._rows[-1].append(text)
            self._in_cell = False
        elif text.strip():
            self.pieces.append(paragraph(_tidy(text)))

    def _end_table(self) -> None:
        self._end_cell()
        rows, self._rows = [row for row in self._rows if any(cell.strip() for cell in row)], []
        if any(len(row) > 1 for row in rows):
            self.pieces.append(table(rows))
        else:  # one column is layout, not data
            self.pieces.extend(paragraph(_tidy(cell)) for row in rows for cell in row)


def _tidy(text: str) -> str:
    return _LINE_END.sub("\n", _SPACE_RUN.sub(" ", text)).strip()


def html_pieces(text: str) -> tuple[str | None, list[Piece]]:
    """Return the title and the blocks of an HTML page.

    Navigation, scripts, styles and drawings are left out, links and emphasis become their text. Written here because
    the general extractor's block list of HTML drops text that stands outside ``<p>``.
    """
    walker = _Walker()
    walker.feed(text)
    walker.close()
    return walker.title, walker.pieces
