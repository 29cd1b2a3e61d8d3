import contextlib
import io
import os
import re
import socket
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from qak_documents import (
    DamagedDocument,
    DocumentError,
    DocumentTooLarge,
    EmptyDocument,
    EncryptedDocument,
    ExtractionLimits,
    ExtractionTimedOut,
    UnsupportedDocument,
    extract,
)

MIB = 1024 * 1024
ARCHIVES = ["docx", "pptx", "xlsx", "odt", "epub"]
MAIN_PARTS = re.compile(
    r"word/document\.xml|content\.xml|ppt/slides/slide1\.xml|xl/(sharedStrings|worksheets/sheet1)\.xml|c0\.xhtml"
)


def read(data: bytes, filename: str | None) -> tuple[str, str]:
    """The code and message of the error, or "read" and the Markdown."""
    try:
        return "read", extract(data, filename=filename).markdown
    except DocumentError as error:
        return error.code, str(error)


@pytest.mark.parametrize("suffix", ["docx", "xlsx", "pptx"])
def test_encrypted_office_file_is_told_as_encrypted(suffix: str, files: Any, bodies: dict[str, bytes]) -> None:
    with pytest.raises(EncryptedDocument) as caught:
        extract(files.encrypted_office(bodies[suffix]), filename=f"a.{suffix}")
    assert caught.value.code == "encrypted"


def test_encrypted_members_and_manifests_are_told_as_encrypted(files: Any, bodies: dict[str, bytes]) -> None:
    locked = files.odt("<text:p/>", manifest="<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>")
    with pytest.raises(EncryptedDocument):
        extract(locked, filename="a.odt")
    drm = {"META-INF/encryption.xml": '<EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'}
    with pytest.raises(EncryptedDocument):
        extract(files.epub(["<p>x</p>"], extra=drm), filename="a.epub")
    flagged = bytearray(bodies["docx"])
    flagged[flagged.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(EncryptedDocument):
        extract(bytes(flagged), filename="a.docx")


@pytest.mark.parametrize("suffix", ["docx", "pptx", "xlsx", "odt", "epub"])
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_truncated_archive_is_damaged(suffix: str, part: float, bodies: dict[str, bytes]) -> None:
    data = bodies[suffix]
    with pytest.raises(DamagedDocument) as caught:
        extract(data[: int(len(data) * part)], filename=f"a.{suffix}")
    assert caught.value.code == "damaged"


def test_truncated_pdf_is_damaged_or_gives_what_is_left(files: Any) -> None:
    data = files.pdf([[("BodyText", f"page {n}")] for n in range(5)])
    for size in (20, len(data) // 3, len(data) - 40):
        code, text = read(data[:size], "a.pdf")
        assert code in ("damaged", "empty") or "page" in text


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_archive_with_a_broken_member_is_damaged(suffix: str, bodies: dict[str, bytes]) -> None:
    data = bytearray(bodies[suffix])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        main = next(info for info in archive.infolist() if MAIN_PARTS.fullmatch(info.filename))
    body = main.header_offset + 30 + len(main.filename) + main.compress_size // 2
    data[body] ^= 0xFF
    with pytest.raises(DamagedDocument):
        extract(bytes(data), filename=f"a.{suffix}")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_archive_whose_main_part_is_no_xml_never_crashes(suffix: str, files: Any, bodies: dict[str, bytes]) -> None:
    for junk in (b"", b"\xff\xfe junk", b"<a><b></a>", b"<" * 100_000):
        data = files.edit(bodies[suffix], lambda name, part, junk=junk: junk if MAIN_PARTS.fullmatch(name) else part)
        assert read(data, f"a.{suffix}")[0] in ("damaged", "empty", "read")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_decompression_bomb_is_refused_by_its_declared_size(suffix: str, files: Any, bodies: dict[str, bytes]) -> None:
    bomb = files.edit(bodies[suffix], lambda name, part: part, {"word/x.xml": bytes(40 * MIB)})
    with pytest.raises(DocumentTooLarge, match="bomb") as caught:
        extract(bomb, filename=f"a.{suffix}")
    assert caught.value.code == "too_large"
    with pytest.raises(DocumentTooLarge, match="unpacks"):
        extract(bomb, filename=f"a.{suffix}", limits=ExtractionLimits(max_archive_bytes=30 * MIB))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archive_with_a_broken_type_member_is_damaged_whatever_packed_it(method: int, files: Any) -> None:
    data = bytearray(files.zip({"mimetype": "application/epub+zip" * 3, "a": "b"}, method))
    start = data.index(b"mimetype") + len(b"mimetype")
    data[start : start + 12] = bytes(255 - byte for byte in data[start : start + 12])
    with pytest.raises(DamagedDocument):
        extract(bytes(data))


def test_decompression_bomb_that_lies_about_its_size_is_damaged(files: Any, bodies: dict[str, bytes]) -> None:
    data = bytearray(
        files.edit(bodies["docx"], lambda name, part: bytes(40 * MIB) if name == "word/document.xml" else part)
    )
    position = data.index(b"PK\x01\x02")
    while data[position + 46 : position + 63] != b"word/document.xml":
        position = data.index(b"PK\x01\x02", position + 4)
    data[position + 24 : position + 28] = struct.pack("<I", 1000)
    with pytest.raises(DamagedDocument):
        extract(bytes(data), filename="a.docx")


def test_archive_in_an_archive_is_never_opened(files: Any, bodies: dict[str, bytes]) -> None:
    core = files.zip({f"{n}.txt": bytes(4 * MIB) for n in range(8)})
    nested = files.zip({f"{n}.zip": core for n in range(8)})
    extra = {"word/embeddings/bomb.zip": nested, "word/embeddings/a.docx": bodies["docx"], "word/bomb.xml": nested}
    document = extract(files.edit(bodies["docx"], lambda name, part: part, extra), filename="a.docx")
    assert document.markdown == "AT&T <年费> 3000"


def test_archive_with_too_many_members_is_refused(files: Any, bodies: dict[str, bytes]) -> None:
    many = files.edit(bodies["docx"], lambda name, part: part, {f"{n}.xml": b"" for n in range(200)})
    with pytest.raises(DocumentTooLarge, match="members"):
        extract(many, filename="a.docx", limits=ExtractionLimits(max_archive_entries=100))
    assert extract(many, filename="a.docx").markdown


def test_archive_with_a_huge_directory_is_refused_before_it_is_read(files: Any) -> None:
    huge = files.zip({f"{n:05}-{'x' * 400}": b"" for n in range(400)}, zipfile.ZIP_STORED)
    with pytest.raises(DocumentTooLarge, match="directory"):
        extract(huge, filename="a.docx", limits=ExtractionLimits(max_archive_entries=10))


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_external_entities_reach_neither_files_nor_network(
    suffix: str, files: Any, bodies: dict[str, bytes], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x.dtd"
        for system in (secret.as_uri(), url):
            doctype = (
                f'<!DOCTYPE r SYSTEM "{url}" [<!ENTITY x SYSTEM "{system}"><!ENTITY % p SYSTEM "{system}"> %p;'
                '<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;">]>'
            ).encode()

            def attack(name: str, part: bytes, doctype: bytes = doctype) -> bytes:
                if not MAIN_PARTS.fullmatch(name):
                    return part
                part = re.sub(rb"^\s*<\?xml.*?\?>", b"", part, flags=re.DOTALL)
                return doctype + part.replace(b"AT&amp;T", b"AT&x;&m;T")

            code, text = read(files.edit(bodies[suffix], attack), f"a.{suffix}")
            assert code in ("damaged", "empty", "read")
            assert "TOPSECRET" not in text
            assert "lollol" not in text
        with pytest.raises(BlockingIOError):
            server.accept()


def test_html_and_docx_references_fetch_nothing(files: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        page = f'<link rel=stylesheet href="{url}"><img src="{url}"><iframe src="{secret.as_uri()}"></iframe><p>text'
        assert extract(page.encode(), filename="a.html").markdown == "text"
        data = files.docx(lambda document: document.add_paragraph("text"))
        template = f'<Relationship Id="rId99" Type="http://t/attachedTemplate" Target="{url}" TargetMode="External"/>'
        data = files.edit(
            data, lambda name, part: part.replace(b"</Relationships>", template.encode() + b"</Relationships>")
        )
        assert extract(data, filename="a.docx").markdown == "text"
        with pytest.raises(BlockingIOError):
            server.accept()


def test_workbook_with_one_cell_in_the_far_corner_is_bounded(files: Any) -> None:
    data = files.xlsx({"Sheet": [["a"]]})
    data = files.edit(
        data, lambda name, part: part.replace(b'r="A1"', b'r="XFD1048576"').replace(b'ref="A1"', b'ref="A1:XFD1048576"')
    )
    assert read(data, "a.xlsx")[0] in ("read", "too_large", "damaged", "timed_out")


def test_document_that_needs_too_much_memory_is_too_large() -> None:
    page = b"<p>" + b"x" * (60 * MIB)
    with pytest.raises(DocumentTooLarge, match="memory"):
        extract(page, filename="a.html", limits=ExtractionLimits(max_memory_bytes=96 * MIB, max_output_chars=100 * MIB))


def test_document_that_needs_too_much_memory_in_the_extractor_is_an_error(files: Any) -> None:
    data = files.pdf([[("BodyText", "text")]])
    with pytest.raises(DocumentError) as caught:
        extract(data, filename="a.pdf", limits=ExtractionLimits(max_memory_bytes=32 * MIB))
    assert caught.value.code in ("too_large", "damaged")


def test_document_that_needs_too_much_cpu_times_out() -> None:
    page = b"<p>a<b>b</b>" * 2_000_000
    with pytest.raises(ExtractionTimedOut, match="CPU") as caught:
        extract(page, filename="a.html", limits=ExtractionLimits(cpu_s=1))
    assert caught.value.code == "timed_out"


def test_document_that_takes_too_long_times_out(files: Any) -> None:
    with pytest.raises(ExtractionTimedOut, match=r"0\.01 s"):
        extract(files.scanned_pdf(), filename="a.pdf", limits=ExtractionLimits(wall_s=0.01))


def test_document_with_too_much_text_is_too_large(files: Any) -> None:
    small = ExtractionLimits(max_output_chars=1000)
    for data, name in (
        (files.pdf([[("BodyText", "many words " * 200)]]), "a.pdf"),
        (b"<p>" + b"many words " * 200, "a.html"),
        (b'{"a": "' + b"many words " * 200 + b'"}', "a.json"),
    ):
        with pytest.raises(DocumentTooLarge):
            extract(data, filename=name, limits=small)


@pytest.mark.parametrize(("name", "part"), [("a.md", "# a\nb\n"), ("a.txt", "a\n\n"), ("a.html", "<p>a")])
def test_document_in_too_many_parts_is_too_large(name: str, part: str) -> None:
    limits = ExtractionLimits(max_blocks=100)
    with pytest.raises(DocumentTooLarge, match="100"):
        extract((part * 101).encode(), filename=name, limits=limits)
    assert len(extract((part * 50).encode(), filename=name, limits=limits).blocks) in (50, 100)


def test_unsupported_extension_is_shown_short_and_without_what_steers_a_terminal() -> None:
    with pytest.raises(UnsupportedDocument) as caught:
        extract(b"text", filename="a.\x1b[31m\nqak: \u202e" + "x" * 10_000)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "rot13", "zlib", "no-such"])
def test_page_that_declares_a_charset_of_no_use_is_read_by_its_bytes(charset: str) -> None:
    page = f"<meta charset={charset}><p>年费为三千元</p>".encode()
    assert extract(page, filename="a.html").markdown == "年费为三千元"


def test_scanned_pdf_is_empty_with_advice(files: Any) -> None:
    with pytest.raises(EmptyDocument, match="OCR") as caught:
        extract(files.scanned_pdf(), filename="scan.pdf")
    assert caught.value.code == "empty"


@pytest.mark.parametrize("suffix", ["docx", "pptx", "odt"])
def test_rich_file_without_text_is_empty(suffix: str, files: Any) -> None:
    data = {"docx": files.docx(lambda document: None), "pptx": files.pptx([("", "")]), "odt": files.odt("<text:p/>")}
    with pytest.raises(EmptyDocument):
        extract(data[suffix], filename=f"a.{suffix}")


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.rtf", "a.html", "a.json", "a.txt", "a.epub", None])
def test_random_bytes_never_raise_anything_but_document_errors(name: str | None) -> None:
    for start in (b"", b"%PDF-1.7\n", b"PK\x03\x04", b"{\\rtf1 ", b"<html>", bytes.fromhex("d0cf11e0a1b11ae1")):
        data = start + bytes((n * n * 31 + n * 7) % 251 for n in range(3000))
        code, text = read(data, name)
        assert code == "read" or ("Traceback" not in text and len(text) < 300)


def test_errors_survive_pickling_and_hold_their_code() -> None:
    import pickle

    error = UnsupportedDocument("message")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, str(again), again.message) == (
        UnsupportedDocument,
        "unsupported",
        "message",
        "message",
    )
    assert isinstance(again, DocumentError)


@pytest.mark.parametrize(
    "name",
    [
        "max_bytes",
        "max_output_chars",
        "max_memory_bytes",
        "cpu_s",
        "wall_s",
        "max_archive_entries",
        "max_archive_bytes",
        "max_archive_ratio",
    ],
)
def test_limits_refuse_what_is_not_above_zero(name: str) -> None:
    for value in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=name):
            ExtractionLimits(**{name: value})


def test_extraction_leaves_no_process_and_no_open_file_behind(files: Any) -> None:
    data = files.pdf([[("BodyText", "text")]])
    extract(data, filename="a.pdf")
    before = len(os.listdir("/dev/fd"))
    for limits in (ExtractionLimits(), ExtractionLimits(wall_s=0.01)):
        with contextlib.suppress(ExtractionTimedOut):
            extract(data, filename="a.pdf", limits=limits)
    assert len(os.listdir("/dev/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
