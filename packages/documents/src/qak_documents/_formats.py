"""Which format a file is in, by its content and its name together."""

from pathlib import PurePath
from typing import BinaryIO

from qak_documents._archive import inspect_archive
from qak_documents._errors import DamagedDocument, EncryptedDocument, UnsupportedDocument
from qak_documents._limits import ExtractionLimits

_OFFICE = "application/vnd.openxmlformats-officedocument"
MIME_TYPES = {
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "rtf": "application/rtf",
    "epub": "application/epub+zip",
}
TEXT_FORMATS = frozenset({"txt", "md", "csv", "json", "html"})
ARCHIVE_FORMATS = frozenset({"docx", "pptx", "xlsx", "odt", "epub"})
_SUFFIXES = {
    **{name: name for name in MIME_TYPES},
    **dict.fromkeys(("markdown", "mdown", "mkd"), "md"),
    **dict.fromkeys(("tsv",), "csv"),
    **dict.fromkeys(("jsonl", "ndjson"), "json"),
    **dict.fromkeys(("htm", "xhtml"), "html"),
    **dict.fromkeys(
        "text log rst adoc org tex ini cfg toml yaml yml xml c h cc cpp hpp cs css go java js jsx kt lua php pl py r "
        "rb rs scala sh sql swift ts tsx vue".split(),
        "txt",
    ),
}
_LEGACY = {"doc": "docx", "xls": "xlsx", "ppt": "pptx"}
_SHOWN_SUFFIX_CHARS = 20
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")


def detect(stream: BinaryIO, filename: str | None, limits: ExtractionLimits) -> str:
    """Return the format of ``stream``, a key of ``MIME_TYPES``; the position of ``stream`` is left undefined.

    The content decides what the file is; a name that says something else is refused, because whoever named it
    expects another result than this package would give.

    Raises:
        UnsupportedDocument: neither is known, the two disagree, or it is a format of before Office 2007.
        EncryptedDocument: a password is needed.
        DamagedDocument: the name stands for a binary format and the content is no known one; or the archive is broken.
        DocumentTooLarge: the archive is over a limit.
    """
    suffix = PurePath(filename or "").suffix.lower().lstrip(".")
    named = _SUFFIXES.get(suffix)
    if suffix in _LEGACY:
        raise UnsupportedDocument(
            f"The format .{suffix} of before Office 2007 is not supported; open it and save it as .{_LEGACY[suffix]}."
        )
    if suffix and named is None:
        shown = ascii(suffix[:_SHOWN_SUFFIX_CHARS])[1:-1]  # a name may hold what steers a terminal
        raise UnsupportedDocument(f"The extension .{shown} is not supported; supported are {_supported()}.")
    found = _signature(stream, named, limits)
    if found is None:
        if named is not None and named not in TEXT_FORMATS:
            raise DamagedDocument(
                f"The file is named .{suffix} but does not begin as {named} does; it is damaged or misnamed."
            )
        found = named or _sniff_text(stream)
    elif named is not None and named != found:
        raise UnsupportedDocument(
            f"The file is named .{suffix} but its content is {found}; rename it to .{found} or save it as {named}."
        )
    return found


def _supported() -> str:
    return ", ".join(f".{name}" for name in MIME_TYPES)


def _signature(stream: BinaryIO, named: str | None, limits: ExtractionLimits) -> str | None:
    stream.seek(0)
    head = stream.read(1024)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return inspect_archive(stream, limits)
    if head.startswith(b"{\\rtf"):
        return "rtf"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-") or (named == "pdf" and b"%PDF-" in head):
        return "pdf"
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        if _contains(stream, _ENCRYPTED_PACKAGE):
            raise EncryptedDocument("The Office file is protected by a password; save it without one.")
        raise UnsupportedDocument(
            "The file is in the Office format of before 2007 (.doc, .xls, .ppt), which is not supported; "
            "open it and save it as .docx, .xlsx or .pptx."
        )
    return None


def _contains(stream: BinaryIO, wanted: bytes) -> bool:
    stream.seek(0)
    tail = b""
    while part := stream.read(1024 * 1024):
        if wanted in tail + part:
            return True
        tail = part[-len(wanted) :]
    return False


def _sniff_text(stream: BinaryIO) -> str:
    stream.seek(0)
    head = stream.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "html" if head.startswith((b"<!doctype html", b"<html")) else "txt"
