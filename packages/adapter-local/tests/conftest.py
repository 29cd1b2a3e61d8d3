from __future__ import annotations

import io
import runpy
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from xml.sax.saxutils import escape

import pytest

from qak_adapter_local import DomainLibrary

FEES = """# 信用卡收费规定

## 收费标准

白金卡持有人的年费为三百元，每年一月入账。

## 减免办法

一年内刷卡满六次即可免收。
"""
RELEASES = """# Release approval rule

## Who approves

Every production release needs two reviewers, and one of them is the release captain.

## Emergencies

The captain may approve alone at night.
"""


@pytest.fixture(autouse=True)
def _without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "BASE_URL", "MODEL"):
        monkeypatch.delenv(f"QWEN_AUDIO_MEMORY_{name}", raising=False)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[DomainLibrary]:
    library = DomainLibrary(tmp_path / "library")
    yield library
    library.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file beside the library and returns its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def fees(write: Callable[..., Path]) -> Path:
    """A Chinese document; 年费 stands in its body only."""
    return write("收费.md", FEES)


@pytest.fixture
def releases(write: Callable[..., Path]) -> Path:
    """An English document."""
    return write("releases.md", RELEASES)


@pytest.fixture(scope="session")
def synthetic() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))


@pytest.fixture(scope="session")
def make_pdf() -> Callable[[Sequence[Sequence[str]]], bytes]:
    """Makes a PDF with one page for each list of ASCII lines."""

    def make(pages: Sequence[Sequence[str]]) -> bytes:
        objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
        kids = []
        for lines in pages:
            shown = " ".join(f"({line}) Tj T*" for line in lines)
            stream = f"BT /F1 12 Tf 16 TL 72 720 Td {shown} ET".encode()
            objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
            page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
            objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
            kids.append(f"{len(objects)} 0 R")
        objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
        out = io.BytesIO(b"%PDF-1.4\n")
        out.seek(0, io.SEEK_END)
        offsets = []
        for number, body in enumerate(objects, 1):
            offsets.append(out.tell())
            out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        start = out.tell()
        out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
        out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
        out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
        return out.getvalue()

    return make


@pytest.fixture(scope="session")
def make_docx() -> Callable[[Sequence[tuple[str, str]]], bytes]:
    """Makes a Word file of paragraphs, each a style name ("" or "Heading1") and its text."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"

    def make(paragraphs: Sequence[tuple[str, str]]) -> bytes:
        body = "".join(
            "<w:p>"
            + (f"<w:pPr><w:pStyle w:val={style!r}/></w:pPr>" if style else "")
            + f"<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"
            for style, text in paragraphs
        )
        parts = {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="rId1" Type="{office}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
        }
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts.items():
                archive.writestr(name, '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' + text)
        return out.getvalue()

    return make
