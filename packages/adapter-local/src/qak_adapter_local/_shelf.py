"""One owner's documents on the disk.

::

    <owner>/records/<id>.json   what is known of a document: the truth
    <owner>/files/…             a copy of each file, byte for byte
    <owner>/texts/…             its text as UTF-8 Markdown, for whoever reads the whole
    <owner>/index.db            the search index, made anew from the above when it is lost
    <owner>/pending.json        only while a writer works: the files to clear away if it dies

A document is there once its record is, and gone once it isn't; files that no record of ours named are never touched.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from qak_adapter_local._documents import LibraryDocument, passages_of
from qak_adapter_local._errors import IndexDamaged, LibraryError, reason_of, unavailable
from qak_adapter_local._files import exclusive_lock, make_folder, open_here, sync_folder, temporary_name, write_durably
from qak_adapter_local._index import Entry, Index
from qak_adapter_local._record import Record

_LOCK_TIMEOUT_S = 60.0
_RECORD_NAME = re.compile(r"[0-9a-f]{16}\.json")

_T = TypeVar("_T")
_log = logging.getLogger("qak_adapter_local")


class Shelf:
    """Read and change one owner's documents, from any number of threads and processes."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is made before the first document comes."""
        self._folder = folder
        self._records, self._files, self._texts = folder / "records", folder / "files", folder / "texts"
        self._pending = folder / "pending.json"
        self._index = Index(folder / "index.db")
        self._checked = False
        self._mutex = threading.RLock()
        self._holds_lock = False

    def exists(self) -> bool:
        """Whether the owner ever had a document.

        Raises:
            LibraryError: ``library_unavailable``, something else is in the folder's place.
        """
        with unavailable("The library"):
            if self._folder.is_symlink() or (self._folder.exists() and not self._folder.is_dir()):
                raise LibraryError(
                    "library_unavailable", "Something that is no folder is in the owner's folder's place."
                )
            try:
                return stat.S_ISDIR(self._records.stat().st_mode)
            except FileNotFoundError:
                return False

    def read(self, ask: Callable[[Index], _T]) -> _T:
        """Ask the index, mending it first where it has to be.

        Raises:
            LibraryError: ``library_unavailable``.
        """
        with unavailable("The library"):
            self._check()
            try:
                return ask(self._index)
            except IndexDamaged as damage:
                _log.warning("The index is rebuilt: %s.", damage)
                with self._locked():
                    try:
                        return ask(self._index)  # another process may have been faster
                    except IndexDamaged:
                        self._mend(rebuild=True)
                return ask(self._index)

    def located(self, record: Mapping[str, Any]) -> LibraryDocument:
        """Return the document of an index record, with the path of its text."""
        path = self._texts / record["text_name"]
        return LibraryDocument.from_dict({**record["document"], "path": str(path)})

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer of this owner's documents.

        Raises:
            LibraryError: ``library_unavailable``.
        """
        with unavailable("The library"):
            for folder in (self._folder, self._records, self._files, self._texts):
                make_folder(folder)
            with self._locked():
                self._checked = self._checked and self._healthy()
                self._check()
                yield

    def store(self, record: Record, content: bytes, markdown: str, replaced: Sequence[Record]) -> None:
        """Write a document and do away with those it replaces; inside :meth:`writing`.

        Raises:
            LibraryError: ``copy_failed``, nothing has changed then; ``library_unavailable``, it is stored and will be
                found once the index can be written.
        """
        files = {self._files / record.copy_name: content, self._texts / record.text_name: markdown.encode()}
        obsolete = [path for old in replaced for path in self._paths(old)]
        try:
            self._announce([*files, *obsolete])
            for path, data in files.items():
                write_durably(path, data)
            write_durably(self._record_path(record.document.id), record.to_json())
        except OSError as error:
            with contextlib.suppress(OSError, sqlite3.Error, IndexDamaged):  # else the next writer does it
                self._mend()
            raise LibraryError(
                "copy_failed", f"The file could not be copied into the library ({reason_of(error)}); check the disk."
            ) from None
        gone = [old.document.id for old in replaced if old.document.id != record.document.id]
        for document_id in gone:
            self._record_path(document_id).unlink(missing_ok=True)
        self._follow(gone, self._entry(record, markdown))
        self._clear(obsolete)

    def discard(self, document_id: str) -> bool:
        """Do away with a document, inside :meth:`writing`; ``False`` if there is none with this id.

        Of one whose record cannot be read any more the copies stay: nothing says for certain which they are.
        """
        path = self._record_path(document_id)
        if not path.is_file():
            return False
        record = self._load(document_id)
        files = self._paths(record) if record else []
        self._announce(files)
        path.unlink()
        sync_folder(self._records)
        self._follow([document_id])
        self._clear(files)
        return True

    def records(self, sha256: str, source_key: str) -> list[Record]:
        """Return the records of the documents that are of this content or from this source."""
        aliases = _aliases(sha256, source_key)
        ids = self.read(lambda index: index.find(aliases))
        return [record for document_id in ids if (record := self._load(document_id)) is not None]

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def _check(self) -> None:
        """Compare records and index once a process, so that what another left behind is made up for."""
        if self._checked:
            return
        with self._mutex:
            if not self._healthy() or self._index.stamps().keys() != self._ids():
                with self._locked():
                    self._mend()
            self._checked = True

    def _healthy(self) -> bool:
        try:
            return not self._pending.exists() and self._index.count() >= 0
        except IndexDamaged:
            return False

    def _follow(self, gone: Sequence[str], entry: Entry | None = None) -> None:
        """Bring into the index what has just happened to the records."""
        try:
            self._index.remove(gone)
            if entry is not None:
                self._index.put(entry)
        except IndexDamaged as damage:
            _log.warning("The index is rebuilt: %s.", damage)
            self._mend(rebuild=True)

    def _mend(self, *, rebuild: bool = False) -> None:
        """Finish what a dead writer began, and bring the index in line with the records; the lock is held."""
        for temporary in self._records.glob(".*.json.tmp"):
            if _RECORD_NAME.fullmatch(temporary.name[1:].removesuffix(".tmp")):
                temporary.unlink(missing_ok=True)
        announced = self._announced()
        try:
            named = self._bring_in_line(announced, rebuild=rebuild)
        except IndexDamaged:
            named = self._bring_in_line(announced, rebuild=True)
        self._clear(announced - named)

    def _bring_in_line(self, announced: set[Path], *, rebuild: bool) -> set[Path]:
        """Make the index say what the records say; return which of the announced files they name."""
        if rebuild:
            self._index.create()
        stamps, known = self._stamps(), self._index.stamps()
        self._index.remove(known.keys() - stamps.keys())
        named: set[Path] = set()
        for document_id, stamp in stamps.items():
            if not announced and known.get(document_id) == stamp:
                continue
            record = self._load(document_id)
            if record is None:
                self._index.remove([document_id])
                continue
            own = announced.intersection(self._paths(record))
            named |= own
            # The stamp of a record that a dead writer had replaced may equal the old one's: clocks tick slowly.
            if own or known.get(document_id) != stamp:
                self._index.put(self._entry(record, self._text(record)))
        return named

    def _ids(self) -> set[str]:
        with os.scandir(self._records) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return {name.removesuffix(".json") for name in names if _RECORD_NAME.fullmatch(name)}

    def _stamps(self) -> dict[str, str]:
        return {document_id: _stamp(self._record_path(document_id).lstat()) for document_id in self._ids()}

    def _entry(self, record: Record, markdown: str) -> Entry:
        document = record.document
        return Entry(
            key=document.id,
            stamp=_stamp(self._record_path(document.id).lstat()),
            record={"document": {**document.to_dict(), "path": ""}, "text_name": record.text_name},
            aliases=_aliases(record.sha256, record.source_key),
            titles=tuple(dict.fromkeys((document.title, Path(document.name).stem))),
            headings=[document.gist, *record.headings],
            passages=passages_of(markdown, record.spans),
        )

    def _load(self, document_id: str) -> Record | None:
        try:
            return Record.from_json(_read_own(self._record_path(document_id)), document_id)
        except (OSError, ValueError) as error:
            _log.warning("Document %s is passed over, its record cannot be read: %s.", document_id, reason_of(error))
            return None

    def _text(self, record: Record) -> str:
        try:
            return _read_own(self._texts / record.text_name).decode(errors="replace")
        except OSError as error:
            _log.warning(
                "The text of document %s is lost (%s); it is found by title and headings only until it is added again.",
                record.document.id,
                reason_of(error),
            )
            return ""

    def _record_path(self, document_id: str) -> Path:
        return self._records / f"{document_id}.json"

    def _paths(self, record: Record) -> list[Path]:
        return [self._files / record.copy_name, self._texts / record.text_name]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._mutex:  # so that the flag is this thread's alone
            if self._holds_lock:
                yield
                return
            with exclusive_lock(self._folder / "lock", timeout_s=_LOCK_TIMEOUT_S):
                self._holds_lock = True
                try:
                    yield
                finally:
                    self._holds_lock = False

    def _announce(self, paths: Sequence[Path]) -> None:
        """Note the files that are to go, or to go if this process dies before their record is written."""
        names = [str(path.relative_to(self._folder)) for path in paths]
        write_durably(self._pending, json.dumps(names).encode())

    def _announced(self) -> set[Path]:
        """Return the files that a dead writer had to do with."""
        temporary_name(self._pending).unlink(missing_ok=True)
        try:
            names = json.loads(_read_own(self._pending))
        except (FileNotFoundError, ValueError, RecursionError):
            return set()
        paths = {self._folder / name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
        return {path for path in paths if path.parent in (self._files, self._texts) and path.name != ".."}

    def _clear(self, paths: Iterable[Path]) -> None:
        for path in paths:
            for leftover in (path, temporary_name(path)):
                with contextlib.suppress(OSError):
                    leftover.unlink(missing_ok=True)
        self._pending.unlink(missing_ok=True)


def _aliases(sha256: str, source_key: str) -> tuple[str, str]:
    """Return by what a second import of the same document is known."""
    return f"sha256:{sha256}", f"source:{source_key}"


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def _read_own(path: Path) -> bytes:
    """Read a file of the library's own, never one that a link of this name points to, and never wait on a pipe."""
    with open(path, "rb", opener=open_here) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return stream.read()
