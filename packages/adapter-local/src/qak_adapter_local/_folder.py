"""A directory searched in place: read, never written to, and never left."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from qak_adapter_local._documents import LibraryDocument, SearchHit, convert, passages_of, spans_of
from qak_adapter_local._errors import (
    IndexDamaged,
    LibraryError,
    LibraryErrorCode,
    reason_of,
    unavailable,
)
from qak_adapter_local._files import exclusive_lock, make_folder, open_below, read_document
from qak_adapter_local._index import Entry, Index
from qak_adapter_local._paths import source_path
from qak_adapter_local._summary import summarize_by_headings
from qak_adapter_local._walk import walk
from qak_core.authoring import stable_id

MAX_FILES = 10_000
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024 * 1024
REFRESH_INTERVAL_S = 2.0
_LOCK_TIMEOUT_S = 60.0
_BATCH = 64

Progress = Callable[[int, int, str], None]
"""Called with the number of files done, of files to do, and the name of the last one."""

_T = TypeVar("_T")
_log = logging.getLogger("qak_adapter_local")


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderProblem:
    """A file, or the folder itself (``.``), that could not be taken in whole.

    Attributes:
        name: its path below the folder.
        code: as of :class:`LibraryError`.
        message: what was found and what to do.
    """

    name: str
    code: LibraryErrorCode
    message: str


def open_folder(
    path: str | os.PathLike[str],
    *,
    index_directory: str | os.PathLike[str] | None = None,
    max_files: int = MAX_FILES,
    max_file_bytes: int = MAX_FILE_BYTES,
    max_total_bytes: int = MAX_TOTAL_BYTES,
    refresh_interval_s: float = REFRESH_INTERVAL_S,
    on_progress: Progress | None = None,
) -> FolderLibrary:
    """Index a directory in place and return it, ready to be searched.

    Nothing is written into it. Hidden files, symbolic links, types other than documents and names with control
    characters are passed over; a file that cannot be read is among the ``problems`` and harms no other.

    Args:
        path: of the directory; text may be quoted, a ``file:`` URL or start with ``~``.
        index_directory: where to keep the index, so that the next time only what changed is read; it must lie outside
            of ``path``. By default a temporary one, removed on ``close()``.
        max_files: files looked at.
        max_file_bytes: of one file.
        max_total_bytes: of all files looked at.
        refresh_interval_s: seconds after which a search looks for changes again.
        on_progress: told of each file that is read, from the calling thread.

    Raises:
        LibraryError: ``invalid_path``, ``not_found`` or ``library_unavailable``.
    """
    folder = FolderLibrary(
        path,
        index_directory,
        max_files=max_files,
        max_file_bytes=max_file_bytes,
        max_total_bytes=max_total_bytes,
        refresh_interval_s=refresh_interval_s,
    )
    try:
        folder.refresh(on_progress)
    except BaseException:
        folder.close()
        raise
    return folder


class FolderLibrary:
    """An indexed directory. Blocking, safe for threads and processes.

    :func:`open_folder` makes one that has been read; made directly, it is read at the first search.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        index_directory: str | os.PathLike[str] | None = None,
        *,
        max_files: int = MAX_FILES,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
        refresh_interval_s: float = REFRESH_INTERVAL_S,
    ) -> None:
        """Check the paths; see :func:`open_folder` for all arguments.

        Raises:
            LibraryError: ``invalid_path`` or ``not_found``.
        """
        import tempfile  # 5 ms that a library does not need

        root = source_path(path)
        if not os.path.exists(root):
            raise LibraryError("not_found", "There is no folder of this path; check it for typing mistakes.")
        if not root.is_dir():
            raise LibraryError("invalid_path", "The path names a file; give the path of a folder.")
        self.root = Path(os.path.realpath(root))
        if index_directory is not None and Path(os.path.realpath(index_directory)).is_relative_to(self.root):
            raise LibraryError(
                "invalid_path", "The index would lie in the folder itself; name a directory outside of it."
            )
        self._max_files = max_files
        self._max_file_bytes = max_file_bytes
        self._max_total_bytes = max_total_bytes
        self._refresh_interval_s = refresh_interval_s
        self._temporary = None if index_directory else tempfile.TemporaryDirectory(prefix="qak-")
        self._home = Path(index_directory or self._temporary.name)  # type: ignore[union-attr]  # one of them is there
        self._index = Index(self._home / "index.db")
        self._bounds: tuple[FolderProblem, ...] = ()
        self._refreshing = threading.Lock()
        self._due: float | None = None  # when to look for changes again; None before the first time
        self._closed = False

    @property
    def problems(self) -> Sequence[FolderProblem]:
        """What could not be taken in the last time, by name."""
        if self._due is None:
            return ()
        with unavailable("The folder"):
            records = self._index.records()
        broken = [FolderProblem(**record["problem"]) for record in records if "problem" in record]
        return (*self._bounds, *sorted(broken, key=lambda problem: problem.name))

    def documents(self) -> Sequence[LibraryDocument]:
        """Return the documents, by name."""
        records = self._ask(lambda index: index.records())
        documents = [self._located(record) for record in records if "document" in record]
        return sorted(documents, key=lambda document: document.path)

    def search(self, query: str, limit: int = 5, *, passages: bool = False) -> Sequence[SearchHit]:
        """Find documents, the best first, after a look for changes if the last one is some time ago.

        Args:
            query: a question or words.
            limit: hits at most.
            passages: whether a document may be found several times, by different passages.

        Raises:
            LibraryError: ``library_unavailable``.
        """
        hits = self._ask(lambda index: index.search(query, limit, passages=passages))
        return [SearchHit.of(hit, self._located(hit.record)) for hit in hits]

    def refresh(self, on_progress: Progress | None = None) -> None:
        """Look for changes now, and read what is new.

        Raises:
            LibraryError: ``library_unavailable``.
        """
        with self._writing():
            try:
                self._follow(on_progress)
            except IndexDamaged:
                self._index.create()
                self._follow(on_progress)
            self._due = time.monotonic() + self._refresh_interval_s

    def close(self) -> None:
        """Stop reading and close the index; the temporary one is removed."""
        self._closed = True
        with self._refreshing:
            self._index.close()
            if self._temporary is not None:
                self._temporary.cleanup()

    def _ask(self, ask: Callable[[Index], _T]) -> _T:
        # Whoever comes while another reads what is new gets what is known already.
        if self._due is None or (time.monotonic() >= self._due and not self._refreshing.locked()):
            self.refresh()
        if self._closed:
            raise LibraryError("library_unavailable", "The folder has been closed.")
        with unavailable("The folder"):
            try:
                return ask(self._index)
            except IndexDamaged as damage:
                _log.warning("The index of the folder is rebuilt: %s.", damage)
        with self._writing():
            with contextlib.suppress(IndexDamaged):
                return ask(self._index)  # another search may have been faster
            self._index.create()
            self._follow(None)
            return ask(self._index)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only one who changes the index."""
        with unavailable("The folder"), self._refreshing:
            if self._closed:
                raise LibraryError("library_unavailable", "The folder has been closed.")
            make_folder(self._home)
            with exclusive_lock(self._home / "lock", timeout_s=_LOCK_TIMEOUT_S):
                yield

    def _follow(self, on_progress: Progress | None) -> None:
        known, found = self._index.stamps(), self._scan()
        self._index.remove(known.keys() - found.keys())
        changed = sorted(name for name, stamp in found.items() if known.get(name) != stamp)
        if not changed:
            return
        done = 0
        executor = ThreadPoolExecutor(min(os.cpu_count() or 1, len(changed)), thread_name_prefix="qak-folder")
        try:
            # One batch in flight, so that no more texts are held than are being read.
            for start in range(0, len(changed), _BATCH):
                batch = changed[start : start + _BATCH]
                reading = {executor.submit(self._entry, name, found[name]): name for name in batch}
                for future in as_completed(reading):
                    self._index.put(future.result())
                    done += 1
                    if on_progress is not None:
                        on_progress(done, len(changed), reading[future])
        finally:
            executor.shutdown(cancel_futures=True)

    def _scan(self) -> dict[str, str]:
        """Return the files to index and what tells their versions apart; also sets what the bounds left out."""
        found: dict[str, str] = {}
        bounds = []
        total = 0
        for name, status in walk(self.root):
            if len(found) >= self._max_files:
                bounds.append(f"only the first {self._max_files:,} files are searched")
                break
            size = status.st_size if status.st_size <= self._max_file_bytes else 0  # what is too large is never read
            if total + size > self._max_total_bytes:
                bounds.append(f"only files of {self._max_total_bytes:,} bytes together are searched")
                break
            found[name] = f"{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_size}-{status.st_ino}"
            total += size
        self._bounds = tuple(
            FolderProblem(name=".", code="too_large", message=f"The folder is large: {bound}; open a part of it.")
            for bound in bounds
        )
        return found

    def _entry(self, name: str, stamp: str) -> Entry:
        if self._closed:
            raise LibraryError("library_unavailable", "The folder was closed while it was read.")
        try:
            return self._read(name, stamp)
        except LibraryError as error:
            problem = {"name": name, "code": error.code, "message": error.message}
            # A reader that could not run at all is tried again; a file that it refused only once it changes.
            stamp = "" if error.code == "library_unavailable" else stamp
        return Entry(key=name, stamp=stamp, record={"problem": problem})

    def _read(self, name: str, stamp: str) -> Entry:
        content, status = self._content(name)
        document = convert(content, name)
        summary = summarize_by_headings(document, name)
        changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        described = LibraryDocument.of(
            document,
            summary,
            document_id=stable_id("folder", name)[:16],
            source=self.root / name,
            size_bytes=len(content),
            added_at=changed,
            updated_at=changed,
        )
        return Entry(
            key=name,
            stamp=stamp,
            record={"document": described.to_dict(), "name": name},
            titles=tuple(dict.fromkeys((summary.title, Path(name).stem))),
            headings=tuple(dict.fromkeys(block.text for block in document.headings)),
            passages=passages_of(document.markdown, spans_of(document)),
        )

    def _located(self, record: Mapping[str, Any]) -> LibraryDocument:
        """Return the document of an index record, with the path it has below the folder as that is called now."""
        path = str(self.root / record["name"])
        return LibraryDocument.from_dict({**record["document"], "path": path, "source_path": path})

    def _content(self, name: str) -> tuple[bytes, os.stat_result]:
        """Read a file that is in the folder for certain, even if somebody swaps links while we look."""
        path = self.root / name
        try:
            with open(path, "rb", opener=lambda _, flags: open_below(self.root, name, flags)) as stream:
                status = os.fstat(stream.fileno())
                resolved = Path(os.path.realpath(path))
                if not resolved.is_relative_to(self.root) or not os.path.samestat(status, resolved.stat()):
                    raise LibraryError("invalid_path", "The file is outside of the folder.")
                return read_document(stream, self._max_file_bytes), status
        except OSError as error:
            raise LibraryError("copy_failed", f"The file cannot be read ({reason_of(error)}).") from None
