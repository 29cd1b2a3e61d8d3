"""Office, OpenDocument and EPUB files are ZIP archives: what is in one, and what would unpacking it cost?"""

import errno
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import BinaryIO

from qak_documents._errors import DamagedDocument, DocumentTooLarge, EncryptedDocument, UnsupportedDocument
from qak_documents._limits import ExtractionLimits

_DIRECTORY_BYTES_PER_ENTRY = 256
_RATIO_FREE_BYTES = 16 * 1024 * 1024
_MANIFEST_BYTES = 1024 * 1024
_ENCRYPTED_FLAG = 0x1
_OFFICE_FOLDERS = {"word": "docx", "xl": "xlsx", "ppt": "pptx"}
_MIME_MEMBERS = {b"application/vnd.oasis.opendocument.text": "odt", b"application/epub+zip": "epub"}
_ALGORITHM = re.compile(rb"""EncryptionMethod[^>]{0,200}?Algorithm\s{0,9}=\s{0,9}["']([^"']{0,200})""")
# Obfuscated fonts don't keep anybody from reading the text.
_FONT_OBFUSCATION = {b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC"}
_TEXT_SUFFIXES = frozenset({"", ".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm"})
_ZIP_MAGIC = b"PK"


def inspect_archive(stream: BinaryIO, limits: ExtractionLimits) -> str:
    """Return the format of the archive in ``stream``, after adding up what its directory declares.

    Nothing large is unpacked. Archives inside the archive count as the bytes they are, since ``readable_parts`` never
    lets them be opened.

    Raises:
        DocumentTooLarge: too many members, too much content or too high a ratio.
        EncryptedDocument: members need a password.
        DamagedDocument: it is no readable archive.
        UnsupportedDocument: it is an archive of something else.
    """
    directory_bytes = max(64 * 1024, limits.max_archive_entries * _DIRECTORY_BYTES_PER_ENTRY)
    with _opened(_BoundedReader(stream, directory_bytes)) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        packed = sum(member.compress_size for member in members) or 1
        if len(members) > limits.max_archive_entries:
            raise DocumentTooLarge(
                f"The archive has {len(members):,} members, the limit is {limits.max_archive_entries:,}; split it."
            )
        if unpacked > limits.max_archive_bytes:
            raise DocumentTooLarge(
                f"The archive unpacks to {unpacked:,} bytes, the limit is {limits.max_archive_bytes:,}; split it."
            )
        if unpacked > _RATIO_FREE_BYTES and unpacked > packed * limits.max_archive_ratio:
            raise DocumentTooLarge(
                f"The archive unpacks to {unpacked // packed} times its size, the limit is "
                f"{limits.max_archive_ratio:g}; it looks like a decompression bomb."
            )
        if any(member.flag_bits & _ENCRYPTED_FLAG for member in members) or _has_protected_parts(archive):
            raise EncryptedDocument("The file is protected by a password; save it without one.")
        return _format_of(archive)


def readable_parts(stream: BinaryIO) -> dict[str, bytes]:
    """Return the members of an archive that can hold its text, unpacked to at most the sizes its directory declares.

    Pictures, fonts and embedded files stay behind: they cost memory, and an embedded archive would be opened in turn.

    Raises:
        DamagedDocument: a member is broken.
    """
    parts = {}
    with _opened(stream) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if path.suffix.lower() in _TEXT_SUFFIXES and "embeddings" not in path.parts and not name.endswith("/"):
                content = archive.read(name)
                if not content.startswith(_ZIP_MAGIC):
                    parts[name] = content
    return parts


def packed(parts: dict[str, bytes]) -> bytes:
    """Return an archive of ``parts``, uncompressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


class _BoundedReader(io.RawIOBase):
    """Refuses the one read in which ``zipfile`` would load an absurdly large directory."""

    def __init__(self, stream: BinaryIO, max_read_bytes: int) -> None:
        self._stream = stream
        self._max_read_bytes = max_read_bytes

    def read(self, size: int = -1, /) -> bytes:
        if size > self._max_read_bytes:
            raise DocumentTooLarge(
                f"The archive's directory has {size:,} bytes, the limit is {self._max_read_bytes:,}; split the file."
            )
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def seekable(self) -> bool:
        return True


@contextmanager
def _opened(stream: BinaryIO | io.RawIOBase) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except OSError as error:
        # An offset outside any file is a broken directory, and bz2 reports broken data without a number; all else is
        # the disk.
        if error.errno not in {None, errno.EINVAL}:
            raise
        raise _damaged() from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        EOFError,
        ValueError,
        OverflowError,
        NotImplementedError,
    ) as error:
        raise _damaged() from error


def _damaged() -> DamagedDocument:
    return DamagedDocument("The file is an incomplete or damaged ZIP archive; copy it again or save it anew.")


def _format_of(archive: zipfile.ZipFile) -> str:
    names = set(archive.namelist())
    if "mimetype" in names and (found := _MIME_MEMBERS.get(_head(archive, "mimetype", 100).strip())):
        return found
    if "META-INF/container.xml" in names:
        return "epub"
    if "[Content_Types].xml" in names and "xl/workbook.bin" not in names:
        for folder, name in _OFFICE_FOLDERS.items():
            if any(member.startswith(folder + "/") for member in names):
                return name
    raise UnsupportedDocument(
        "The file is a ZIP archive but no .docx, .pptx, .xlsx, .odt or .epub; unpack it and add the files in it."
    )


def _has_protected_parts(archive: zipfile.ZipFile) -> bool:
    names = archive.NameToInfo
    if "META-INF/manifest.xml" in names and b"encryption-data" in _head(archive, "META-INF/manifest.xml"):
        return True
    if "META-INF/encryption.xml" not in names:
        return False
    algorithms = set(_ALGORITHM.findall(_head(archive, "META-INF/encryption.xml")))
    return not algorithms <= _FONT_OBFUSCATION


def _head(archive: zipfile.ZipFile, name: str, max_bytes: int = _MANIFEST_BYTES) -> bytes:
    with archive.open(name) as member:
        return member.read(max_bytes)
