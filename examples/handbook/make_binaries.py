"""Make the handbook's PDF and DOCX documents from the texts in `_sources/`.

    python make_binaries.py [FOLDER]

`_sources/NAME.pdf.md` becomes `FOLDER/NAME.pdf` and `_sources/NAME.docx.md` becomes `FOLDER/NAME.docx`; FOLDER is
`documents/` unless given. Needs reportlab and python-docx. The sources use a small part of Markdown: headings,
paragraphs of one line, `- ` and `1. ` lists, tables. Equal texts give equal bytes: times are fixed, and nothing is
compressed, since the output of a compressor depends on the zlib that Python was built with.
"""

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

from docx import Document
from docx.document import Document as DocxDocument
from docx.enum.style import WD_STYLE_TYPE
from reportlab.lib import textsplit
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Paragraph, Spacer, Table, TableStyle

HERE = Path(__file__).resolve().parent
AUTHOR = "Quillmere Software"
MADE = datetime(2025, 3, 3, 9, 0)
TABLE_STYLE_DOCX = "Light Grid Accent 1"
TABLE_STYLE_PDF = TableStyle(
    [
        ("GRID", (0, 0), (-1, -1), 0.5, HexColor("#8a8a8a")),
        ("BACKGROUND", (0, 0), (-1, 0), HexColor("#e8eef4")),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]
)

Block = tuple[str, list[str]]
"""Kind (`h1`, `h2`, `h3`, `p`, `ul`, `ol`, `table`) and the lines without their marks; a table keeps its rows' text."""

_MARKS = {"# ": "h1", "## ": "h2", "### ": "h3", "- ": "ul", "1. ": "ol", "| ": "table"}


def blocks(text: str) -> Iterator[Block]:
    """Split a source into blocks; a blank line ends a block."""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        kind = next((kind for mark, kind in _MARKS.items() if block.startswith(mark)), "p")
        if kind == "table":
            lines.pop(1)  # the rule under the header
        yield kind, [line if kind == "table" else re.sub(r"^(#+|-|\d+\.) ", "", line) for line in lines]


def cells(row: str) -> list[str]:
    """Return the texts of one table row."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def _drop_ballast(document: DocxDocument) -> None:
    """Remove 800 KB that python-docx's template brings and nobody reads: table styles, a thumbnail of an empty page."""
    for style in list(document.styles):
        if style.type == WD_STYLE_TYPE.TABLE and style.name not in ("Normal Table", TABLE_STYLE_DOCX):
            style.delete()
    for rels in (document.part.rels, document.part.package.rels):
        for name in [name for name, rel in rels.items() if rel.reltype.endswith(("/stylesWithEffects", "/thumbnail"))]:
            del rels[name]


def make_docx(title: str, content: list[Block]) -> bytes:
    """Write a Word document with real heading, list and table styles."""
    document = Document()
    _drop_ballast(document)
    properties = document.core_properties
    properties.title, properties.author, properties.comments = title, AUTHOR, ""
    properties.created = properties.modified = MADE
    for kind, lines in content:
        if kind == "table":
            rows = [cells(line) for line in lines]
            table = document.add_table(rows=0, cols=len(rows[0]), style=TABLE_STYLE_DOCX)
            for row in rows:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
            document.add_paragraph()
        elif kind.startswith("h"):
            document.add_heading(lines[0], level=int(kind[1]))
        else:
            style = {"ul": "List Bullet", "ol": "List Number"}.get(kind)
            for line in lines:
                document.add_paragraph(line, style=style)
    saved, fixed = io.BytesIO(), io.BytesIO()
    document.save(saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(fixed, "w") as target:
        for name in source.namelist():
            entry = zipfile.ZipInfo(name, MADE.timetuple()[:6])
            entry.create_system = 3  # else it names the system the script ran on
            target.writestr(entry, source.read(name))
    return fixed.getvalue()


def make_pdf(title: str, content: list[Block]) -> bytes:
    """Write an A4 document with page numbers and headings set in larger type."""
    chinese, frame_width = not title.isascii(), A4[0] - 50 * mm
    regular, bold = ("STSong-Light",) * 2 if chinese else ("Helvetica", "Helvetica-Bold")

    def style(size: float, font: str, before: float, after: float) -> ParagraphStyle:
        return ParagraphStyle(
            "", fontName=font, fontSize=size, leading=size * 1.6, spaceBefore=before, spaceAfter=after,
            wordWrap="CJK" if chinese else None, bulletIndent=6, keepWithNext=size > 12, allowWidows=0,
        )  # fmt: skip

    headings = {"h1": style(22, bold, 0, 14), "h2": style(16, bold, 16, 6), "h3": style(13, bold, 10, 4)}
    body, small = style(11, regular, 0, 7), style(9, regular, 0, 0)
    item = ParagraphStyle("", parent=body, leftIndent=20, spaceAfter=3)

    story: list[Flowable] = []
    for kind, lines in content:
        if kind == "table":
            texts = [cells(line) for line in lines]
            weights = [max(map(len, column)) ** 0.5 for column in zip(*texts, strict=True)]
            widths = [frame_width * weight / sum(weights) for weight in weights]
            rows = [[Paragraph(escape(cell), small) for cell in row] for row in texts]
            story += [Spacer(0, 4), Table(rows, widths, style=TABLE_STYLE_PDF, repeatRows=1), Spacer(0, 10)]
        elif kind in ("ul", "ol"):
            marks = ["•" if kind == "ul" else f"{number}." for number in range(1, len(lines) + 1)]
            story += [Paragraph(escape(line), item, bulletText=mark) for line, mark in zip(lines, marks, strict=True)]
            story.append(Spacer(0, 4))
        else:
            story += [Paragraph(escape(line), headings.get(kind, body)) for line in lines]

    def number_page(canvas: Canvas, _template: object) -> None:
        canvas.setFont(regular, 9)
        canvas.drawCentredString(A4[0] / 2, 12 * mm, str(canvas.getPageNumber()))

    made = io.BytesIO()
    template = BaseDocTemplate(made, pagesize=A4, title=title, author=AUTHOR, invariant=1, pageCompression=0)
    frame = Frame(25 * mm, 22 * mm, frame_width, A4[1] - 42 * mm, 0, 0, 0, 0)
    template.addPageTemplates(PageTemplate(frames=[frame], onPageEnd=number_page))
    template.build(story)
    return made.getvalue()


def main(folder: Path) -> None:
    """Write every binary document into `folder`."""
    # reportlab keeps only Japanese marks from the start of a line
    textsplit.ALL_CANNOT_START += "，；：？！"  # type: ignore[misc]  # final in the stubs alone
    registerFont(UnicodeCIDFont("STSong-Light"))
    makers = {".pdf": make_pdf, ".docx": make_docx}
    for source in sorted((HERE / "_sources").glob("*.md")):
        content = list(blocks(source.read_text(encoding="utf-8")))
        target = folder / source.stem
        target.write_bytes(makers[target.suffix](content[0][1][0], content))
        print(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "documents")
