"""The library: files that people point at, copied, made searchable and kept apart by owner."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from qak_adapter_local._documents import LibraryDocument, SearchHit, convert, spans_of
from qak_adapter_local._errors import LibraryError, reason_of
from qak_adapter_local._files import open_to_read, read_document
from qak_adapter_local._folder import FolderLibrary, open_folder
from qak_adapter_local._paths import display_name, safe_name, same_name_key, source_path
from qak_adapter_local._record import Record
from qak_adapter_local._shelf import Shelf
from qak_adapter_local._summary import Summarizer, summarize_by_headings
from qak_core.authoring import stable_id

__all__ = ["DomainLibrary", "FolderLibrary", "LibraryDocument", "LibraryError", "SearchHit", "open_folder"]

MAX_DOCUMENTS = 40
MAX_BYTES = 10 * 1024 * 1024
_OPEN_SHELVES = 32
_DOCUMENT_ID = re.compile("[0-9a-f]{16}")


class DomainLibrary:
    """Documents of several owners in one directory; blocking, safe for threads and processes.

    Nothing is written before the first document is added. Every method raises :class:`LibraryError`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_documents: int = MAX_DOCUMENTS,
        max_bytes: int = MAX_BYTES,
        summarizer: Summarizer | None = None,
    ) -> None:
        """Name the directory.

        Args:
            directory: made when needed, for its user alone; files in it that are not the library's stay untouched.
            max_documents: of one owner.
            max_bytes: of one file; it is held in memory while it is added.
            summarizer: gives title, gist and sections; by default the document's own headings do.
        """
        self.directory = Path(directory).expanduser().absolute()
        self._max_documents = max_documents
        self._max_bytes = max_bytes
        self._summarize = summarizer or summarize_by_headings
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def add(self, owner_id: str, path: str | os.PathLike[str]) -> LibraryDocument:
        """Copy a file into the library, or update the document that came from it.

        A document with the same content or the same source path is updated in place: its id stays, and it counts once.

        Args:
            owner_id: whose document it is.
            path: of a regular file; text may be quoted, a ``file:`` URL or start with ``~``.

        Raises:
            LibraryError: ``missing_owner``, ``invalid_path``, ``not_found``, ``not_a_file``, ``empty_file``,
                ``too_large``, ``unsupported_type``, ``library_full``, ``conversion_failed``, ``copy_failed`` or
                ``library_unavailable``.
        """
        shelf = self._shelf(owner_id)
        source = source_path(path)
        content = self._read(source)
        sha256 = hashlib.sha256(content).hexdigest()
        key = stable_id(same_name_key(os.path.realpath(source)))
        if shelf.exists():  # before the costly part; asked again below, with nobody else writing
            self._replaced(shelf, source, sha256, key)
        document = convert(content, source.name)
        summary = self._summarize(document, display_name(source.name))
        spans = spans_of(document)
        with shelf.writing():
            replaced = self._replaced(shelf, source, sha256, key)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            document_id = replaced[0].document.id if replaced else secrets.token_hex(8)
            unique = f"{document_id}-{secrets.token_hex(3)}"
            record = Record(
                document=LibraryDocument.of(
                    document,
                    summary,
                    document_id=document_id,
                    source=source,
                    size_bytes=len(content),
                    added_at=replaced[0].document.added_at if replaced else now,
                    updated_at=now,
                ),
                sha256=sha256,
                source_key=key,
                copy_name=safe_name(source.name, unique),
                text_name=safe_name(source.name, unique, ".md"),
                headings=tuple(dict.fromkeys(block.text for block in document.headings)),
                spans=spans,
            )
            shelf.store(record, content, document.markdown, replaced)
        return shelf.located({"document": record.document.to_dict(), "text_name": record.text_name})

    def list(self, owner_id: str) -> Sequence[LibraryDocument]:
        """Return the owner's documents, the oldest first.

        Raises:
            LibraryError: ``missing_owner`` or ``library_unavailable``.
        """
        shelf = self._shelf(owner_id)
        if not shelf.exists():
            return []
        documents = [shelf.located(record) for record in shelf.read(lambda index: index.records())]
        return sorted(documents, key=lambda document: (document.added_at, document.title, document.id))

    def remove(self, owner_id: str, document_id: str) -> None:
        """Remove a document with its copy; the file it came from stays.

        Raises:
            LibraryError: ``missing_owner``, ``not_found`` (also for another owner's document) or
                ``library_unavailable``.
        """
        shelf = self._shelf(owner_id)
        if shelf.exists() and isinstance(document_id, str) and _DOCUMENT_ID.fullmatch(document_id):
            with shelf.writing():
                if shelf.discard(document_id):
                    return
        raise LibraryError("not_found", "The library has no such document; list it to see the ids.")

    def search(self, owner_id: str, query: str, limit: int = 5, *, passages: bool = False) -> Sequence[SearchHit]:
        """Find documents of one owner, the best first.

        Args:
            owner_id: whose documents.
            query: a question or words.
            limit: hits at most.
            passages: whether a document may be found several times, by different passages.

        Raises:
            LibraryError: ``missing_owner`` or ``library_unavailable``.
        """
        shelf = self._shelf(owner_id)
        if not shelf.exists():
            return []
        hits = shelf.read(lambda index: index.search(query, limit, passages=passages))
        return [SearchHit.of(hit, shelf.located(hit.record)) for hit in hits]

    def open_folder(self, path: str | os.PathLike[str]) -> FolderLibrary:
        """Open a directory in place, its index kept in the library; see :func:`open_folder`."""
        root = source_path(path)
        return open_folder(root, index_directory=self.directory / "folders" / stable_id(os.path.realpath(root)))

    def close(self) -> None:
        """Close the indexes; every later call fails with ``library_unavailable``."""
        with self._lock:
            self._closed = True
            shelves = list(self._shelves.values())
            self._shelves.clear()
        for shelf in shelves:
            shelf.close()

    def _shelf(self, owner_id: str) -> Shelf:
        if not isinstance(owner_id, str) or not owner_id.strip():
            raise LibraryError("missing_owner", "The library needs to know whose documents are meant.")
        # Named by a hash: no owner can be made to name another's folder, whatever the disk thinks of case.
        name = stable_id("owner", owner_id)
        with self._lock:
            if self._closed:
                raise LibraryError("library_unavailable", "The library has been closed.")
            shelf = self._shelves.pop(name, None) or Shelf(self.directory / "owners" / name)
            self._shelves[name] = shelf
            oldest = self._shelves.popitem(last=False)[1] if len(self._shelves) > _OPEN_SHELVES else None
        if oldest is not None:
            oldest.close()
        return shelf

    def _read(self, source: Path) -> bytes:
        """Return the bytes of a file that is not the library's own."""
        try:
            with open_to_read(source) as stream:
                if _is_inside(source, self.directory):
                    raise LibraryError("invalid_path", "The path lies in the library itself; give the original file.")
                return read_document(stream, self._max_bytes)
        except OSError as error:
            raise _source_error(error, source) from None
        except ValueError:
            raise LibraryError("invalid_path", "The path cannot name a file on this system.") from None

    def _replaced(self, shelf: Shelf, source: Path, sha256: str, key: str) -> Sequence[Record]:
        """Return the documents that this file takes the place of, the one from the same path first.

        Raises:
            LibraryError: ``library_full``: there is none, and the owner has as many as allowed.
        """
        found = shelf.records(sha256, key)
        by_path = [record for record in found if _same_file(record.document.source_path, source)]
        replaced = by_path + [record for record in found if record.sha256 == sha256 and record not in by_path]
        if not replaced and shelf.read(lambda index: index.count()) >= self._max_documents:
            raise LibraryError(
                "library_full", f"The library holds {self._max_documents} documents, the limit; remove one first."
            )
        return replaced


def _same_file(known: str, source: Path) -> bool:
    """Whether two paths that differ at most in case and Unicode form are one file on this disk."""
    if os.path.realpath(known) == os.path.realpath(source):
        return True
    with contextlib.suppress(OSError):
        return os.path.samefile(known, source)
    return False


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        root = folder.stat()
        return any(os.path.samestat(parent.stat(), root) for parent in Path(os.path.realpath(path)).parents)
    except OSError:
        return False


def _source_error(error: OSError, source: Path) -> LibraryError:
    if isinstance(error, IsADirectoryError) or os.path.isdir(source):
        return LibraryError("not_a_file", "The path names a directory; give the path of one file.")
    if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ELOOP:
        return LibraryError("not_found", "There is no file of this path; check it for typing mistakes.")
    if error.errno in {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}:
        return LibraryError("invalid_path", "The path cannot name a file on this system.")
    return LibraryError("copy_failed", f"The file cannot be read ({reason_of(error)}); check its permissions.")
