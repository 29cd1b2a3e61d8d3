import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from qak_documents import DamagedDocument, Document, DocumentError, UnsupportedDocument, extract


def kinds(document: Document) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, block.text) for block in document.blocks]


def assert_exact(document: Document) -> None:
    """Blocks lie in order, without overlap, on the text they tell of."""
    units = document.markdown.encode("utf-16-le")
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end
        markdown = units[block.start * 2 : block.end * 2].decode("utf-16-le")
        assert markdown == document.slice(block.start, block.end)
        if block.kind == "heading":
            assert 1 <= block.level <= 6
        else:
            assert markdown == block.text
            assert block.level == 0
        position = block.end


@pytest.mark.parametrize("suffix", ["docx", "pptx", "xlsx", "odt", "epub", "pdf"])
def test_rich_file_keeps_ampersands_angle_brackets_and_chinese(suffix: str, bodies: dict[str, bytes]) -> None:
    document = extract(bodies[suffix], filename=f"a.{suffix}")
    assert "AT&T <年费> 3000" in document.markdown
    assert_exact(document)


def test_docx_gives_headings_paragraphs_and_tables(files: Any) -> None:
    def build(document: Any) -> None:
        document.core_properties.title = "员工手册"
        document.add_heading("第一章 R&D 😀", 1)
        document.add_paragraph("发布须由两人批准。")
        document.add_heading("Fees", 2)
        table = document.add_table(2, 2)
        for cell, text in zip(
            (c for row in table.rows for c in row.cells), ("名称", "A|B", "年费", "3\n000"), strict=True
        ):
            cell.text = text
        document.add_paragraph("# not a heading")
        document.sections[0].header.paragraphs[0].text = "running head"

    document = extract(files.docx(build), filename="手册.docx")
    assert kinds(document) == [
        ("heading", 1, "第一章 R&D 😀"),
        ("paragraph", 0, "发布须由两人批准。"),
        ("heading", 2, "Fees"),
        ("table", 0, "| 名称 | A\\|B |\n| --- | --- |\n| 年费 | 3 000 |"),
        ("paragraph", 0, "\\# not a heading"),
    ]
    assert document.title == "员工手册"
    assert document.mime_type.endswith("wordprocessingml.document")
    assert document.page_count is None
    assert [block.text for block in document.headings] == ["第一章 R&D 😀", "Fees"]
    assert_exact(document)


def test_docx_keeps_numeric_character_references(files: Any) -> None:
    data = files.docx(lambda document: document.add_paragraph("MARK"))
    data = files.edit(data, lambda name, part: part.replace(b"MARK", b"&#24180;&#x8d39; &#38; &quot;x&quot;"))
    assert extract(data, filename="a.docx").markdown == '年费 & "x"'


def test_pptx_knows_the_slide_of_each_block(files: Any) -> None:
    document = extract(files.pptx([("发布", "两人批准"), ("年费", "3000 元")]), filename="a.pptx")
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "发布"),
        (1, "两人批准"),
        (2, "年费"),
        (2, "3000 元"),
    ]
    assert document.page_count == 2


def test_pptx_text_that_looks_like_a_page_marker_stays_text(files: Any) -> None:
    document = extract(files.pptx([("A", "slide-0-9"), ("B", "<!-- PAGE 7 -->")]), filename="a.pptx")
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "A"),
        (1, "slide-0-9"),
        (2, "B"),
        (2, "<!-- PAGE 7 -->"),
    ]


def test_xlsx_gives_one_heading_and_table_a_sheet(files: Any) -> None:
    document = extract(
        files.xlsx({"费用": [["名称", "元"], ["年费", 3000]], "Two": [["k", None], [1.5, True]]}), filename="a.xlsx"
    )
    assert [(block.kind, block.page, block.text) for block in document.blocks] == [
        ("heading", 1, "费用"),
        ("table", 1, "| 名称 | 元 |\n| --- | --- |\n| 年费 | 3000 |"),
        ("heading", 2, "Two"),
        ("table", 2, "| k |  |\n| --- | --- |\n| 1.5 | true |"),
    ]
    assert document.page_count == 2


def test_odt_gives_headings_lists_and_tables(files: Any) -> None:
    document = extract(
        files.odt(
            '<text:h text:outline-level="1">规则</text:h><text:p>正文</text:p>'
            "<text:list><text:list-item><text:p>one</text:p></text:list-item>"
            "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
            "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
            "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
        ),
        filename="a.odt",
    )
    assert kinds(document) == [
        ("heading", 1, "规则"),
        ("paragraph", 0, "正文"),
        ("list_item", 0, "- one"),
        ("list_item", 0, "- two"),
        ("table", 0, "| a | b |\n| --- | --- |"),
    ]
    assert document.markdown.endswith("正文\n\n- one\n- two\n\n| a | b |\n| --- | --- |")
    assert document.title == "规则"
    assert_exact(document)


def test_epub_reads_its_chapters_in_order(files: Any) -> None:
    document = extract(
        files.epub(["<h1>甲</h1><p>年<b>费</b></p>", "<h2>乙</h2><p>two</p>"], title="书名"), filename="b.epub"
    )
    assert kinds(document) == [
        ("heading", 1, "甲"),
        ("paragraph", 0, "年费"),
        ("heading", 2, "乙"),
        ("paragraph", 0, "two"),
    ]
    assert document.title == "书名"


def test_epub_with_obfuscated_fonts_is_not_taken_for_encrypted(files: Any) -> None:
    encryption = '<EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/>'
    data = files.epub(["<p>text</p>"], extra={"META-INF/encryption.xml": encryption})
    assert extract(data, filename="b.epub").markdown == "text"


def test_rtf_gives_its_paragraphs() -> None:
    data = rb"{\rtf1\ansi\ansicpg1252 Annual \'e9 fee\par \u24180?\u36153? AT&T <x>\par}"
    document = extract(data, filename="a.rtf")
    assert kinds(document) == [("paragraph", 0, "Annual é fee"), ("paragraph", 0, "年费 AT&T <x>")]


def test_extract_tells_the_format_of_nameless_bytes_by_content(bodies: dict[str, bytes]) -> None:
    for suffix, data in bodies.items():
        assert extract(data) == extract(data, filename=f"any.{suffix}")
    assert extract(b"<!DOCTYPE html><p>x").mime_type == "text/html"
    assert extract("年费".encode()).mime_type == "text/plain"


def test_extract_reads_a_path_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "blob-17"
    path.write_bytes(b"# Title\n\ntext")
    assert extract(path, filename="a.md").title == "Title"
    assert extract(str(path), filename="a.txt").title is None


def test_extract_leaves_operating_system_errors_alone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        extract(tmp_path / "absent.pdf")
    with pytest.raises(IsADirectoryError):
        extract(tmp_path)


def test_extract_refuses_a_named_pipe_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(UnsupportedDocument):
        extract(tmp_path / "pipe.txt")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.pdf", "docx", UnsupportedDocument),
        ("a.docx", "pdf", UnsupportedDocument),
        ("a.xlsx", "docx", UnsupportedDocument),
        ("a.txt", "pdf", UnsupportedDocument),
        ("a.md", "docx", UnsupportedDocument),
        ("a.exe", "docx", UnsupportedDocument),
    ],
)
def test_extract_refuses_a_name_that_contradicts_the_content(
    name: str, content: str, expected: type[DocumentError], bodies: dict[str, bytes]
) -> None:
    with pytest.raises(expected):
        extract(bodies[content], filename=name)


@pytest.mark.parametrize("suffix", ["pdf", "docx", "rtf", "epub"])
def test_extract_calls_text_under_a_binary_name_damaged(suffix: str) -> None:
    with pytest.raises(DamagedDocument):
        extract(b"just text", filename=f"a.{suffix}")


def test_extract_refuses_an_archive_of_something_else(files: Any) -> None:
    with pytest.raises(UnsupportedDocument):
        extract(files.zip({"hello.txt": "x"}))
    with pytest.raises(UnsupportedDocument):
        extract(files.zip({"[Content_Types].xml": "x", "xl/workbook.bin": "x"}), filename="a.xlsx")


@pytest.mark.parametrize(("suffix", "advice"), [("doc", ".docx"), ("xls", ".xlsx"), ("ppt", ".pptx")])
def test_extract_refuses_old_office_formats_with_advice(suffix: str, advice: str) -> None:
    old = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504)
    for name in (f"A.{suffix.upper()}", None):
        with pytest.raises(UnsupportedDocument, match=advice.replace(".", r"\.")):
            extract(old, filename=name)


def test_extract_gives_the_same_from_many_threads(bodies: dict[str, bytes]) -> None:
    barrier = threading.Barrier(6)

    def run(suffix: str) -> Document:
        barrier.wait(timeout=60)
        return extract(bodies[suffix], filename=f"a.{suffix}")

    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(run, bodies))
    assert together == [extract(data, filename=f"a.{suffix}") for suffix, data in bodies.items()]
