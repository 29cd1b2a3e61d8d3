"""Makers of real files, by the writers people use."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import msoffcrypto
import openpyxl
import pptx
import pypdf
import pytest
from msoffcrypto.format.ooxml import OOXMLFile
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

FONT = "STSong-Light"
PASSWORD = "correct horse"
CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
ODT_NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.2"'
)


class Files:
    """Each method returns the bytes of one file."""

    @staticmethod
    def zip(members: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", compression) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return target.getvalue()

    @classmethod
    def edit(cls, data: bytes, change: Callable[[str, bytes], bytes], extra: dict[str, bytes] | None = None) -> bytes:
        """The archive `data` with each member passed through `change`."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members: dict[str, str | bytes] = {name: change(name, archive.read(name)) for name in archive.namelist()}
        return cls.zip(members | (extra or {}))

    @staticmethod
    def pdf(pages: list[list[tuple[str, str]]], title: str | None = None, footer: str = "") -> bytes:
        """Pages of (style, text), style being Heading1, Heading2 or BodyText; `{page}` in the footer is the number."""
        pdfmetrics.registerFont(UnicodeCIDFont(FONT))
        sheet = getSampleStyleSheet()
        styles = {
            name: ParagraphStyle(name, parent=sheet[name], fontName=FONT, wordWrap="CJK")
            for name in ("Heading1", "Heading2", "BodyText")
        }
        story: list[Any] = []
        for page in pages:
            story.extend(Paragraph(text, styles[style]) for style, text in page)
            story.append(PageBreak())

        def draw_footer(canvas: Canvas, template: SimpleDocTemplate) -> None:
            canvas.setFont(FONT, 8)
            canvas.drawString(72, 20, footer.format(page=template.page))

        target = io.BytesIO()
        SimpleDocTemplate(target, title=title).build(story, onFirstPage=draw_footer, onLaterPages=draw_footer)
        return target.getvalue()

    @staticmethod
    def scanned_pdf() -> bytes:
        target = io.BytesIO()
        canvas = Canvas(target)
        canvas.rect(100, 100, 300, 300, fill=1)
        canvas.showPage()
        canvas.save()
        return target.getvalue()

    @staticmethod
    def encrypted_pdf(data: bytes, user_password: str = PASSWORD) -> bytes:
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
        writer.encrypt(user_password, owner_password=PASSWORD, algorithm="AES-256")
        target = io.BytesIO()
        writer.write(target)
        return target.getvalue()

    @staticmethod
    def encrypted_office(data: bytes) -> bytes:
        target = io.BytesIO()
        package: OOXMLFile = msoffcrypto.OfficeFile(io.BytesIO(data))
        package.encrypt(PASSWORD, target)
        return target.getvalue()

    @staticmethod
    def docx(build: Callable[[Any], None]) -> bytes:
        document = docx.Document()
        build(document)
        target = io.BytesIO()
        document.save(target)
        return target.getvalue()

    @staticmethod
    def pptx(slides: list[tuple[str, str]]) -> bytes:
        presentation = pptx.Presentation()
        for title, body in slides:
            slide = presentation.slides.add_slide(presentation.slide_layouts[1])
            slide.shapes.title.text = title
            slide.placeholders[1].text = body
        target = io.BytesIO()
        presentation.save(target)
        return target.getvalue()

    @staticmethod
    def xlsx(sheets: dict[str, list[list[Any]]]) -> bytes:
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for name, rows in sheets.items():
            sheet = workbook.create_sheet(name)
            for row in rows:
                sheet.append(row)
        target = io.BytesIO()
        workbook.save(target)
        return target.getvalue()

    @classmethod
    def odt(cls, body: str, manifest: str = "", doctype: str = "") -> bytes:
        """`body` is the inner XML of `office:text`."""
        return cls.zip(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "content.xml": f'<?xml version="1.0"?>{doctype}<office:document-content {ODT_NAMESPACES}><office:body>'
                f"<office:text>{body}</office:text></office:body></office:document-content>",
                "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:'
                f'manifest:1.0">{manifest}</manifest:manifest>',
            }
        )

    @classmethod
    def epub(
        cls, chapters: list[str], title: str = "Book", doctype: str = "", extra: dict[str, str] | None = None
    ) -> bytes:
        """`chapters` are the inner XML of `body`."""
        items = "".join(
            f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
        )
        spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
        return cls.zip(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": CONTAINER,
                "book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
                '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">1</dc:identifier>'
                f"<dc:title>{title}</dc:title><dc:language>zh</dc:language></metadata>"
                f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
                **{
                    f"c{n}.xhtml": f'{doctype}<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
                    for n, body in enumerate(chapters)
                },
                **(extra or {}),
            }
        )


@pytest.fixture(scope="session")
def files() -> type[Files]:
    return Files


@pytest.fixture(scope="session")
def bodies(files: type[Files]) -> dict[str, bytes]:
    """One sound file of each archive format and PDF, holding `AT&T <年费> 3000`."""
    text = "AT&T <年费> 3000"
    return {
        "docx": files.docx(lambda document: document.add_paragraph(text)),
        "pptx": files.pptx([(text, "body")]),
        "xlsx": files.xlsx({"Sheet": [[text, "x"]]}),
        "odt": files.odt("<text:p>AT&amp;T &lt;年费&gt; 3000</text:p>"),
        "epub": files.epub(["<p>AT&amp;T &lt;年费&gt; 3000</p>"]),
        "pdf": files.pdf([[("BodyText", "AT&amp;T &lt;年费&gt; 3000")]]),
    }
