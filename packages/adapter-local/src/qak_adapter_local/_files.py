"""Files that survive a crash, a full disk and a second process."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from qak_adapter_local._errors import LibraryError

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
_LOCK_POLL_S = 0.02


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their user alone; one that exists stays as it is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def open_to_read(path: Path) -> BinaryIO:
    """Open a file without ever waiting for the writer of a pipe."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))


def read_document(stream: BinaryIO, max_bytes: int) -> bytes:
    """Return what is in an open file, reading no more than allowed.

    Raises:
        LibraryError: ``not_a_file``, ``too_large`` or ``empty_file``.
    """
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise LibraryError("not_a_file", "The path names no regular file; give the path of one file.")
    content = b"" if status.st_size > max_bytes else stream.read(max_bytes + 1)
    if max(status.st_size, len(content)) > max_bytes:
        raise LibraryError("too_large", f"The file has more than {max_bytes:,} bytes, the limit; split it.")
    if not content:
        raise LibraryError("empty_file", "The file has 0 bytes; save it again if it should hold something.")
    return content


def temporary_name(target: Path) -> Path:
    """Return where a file is written until it is whole."""
    return target.with_name(f".{target.name}.tmp")


def write_durably(target: Path, data: bytes) -> None:
    """Write a file whole or not at all, and have it on the disk on return; one writer a target at a time.

    Raises:
        OSError: as the disk says; nothing new is left behind.
    """
    temporary = temporary_name(target)
    try:
        with open(temporary, "wb", opener=open_here) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the platform knows how."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_below(folder: Path, name: str, flags: int) -> int:
    """Open a file by its POSIX path below a folder without following a link in any part of it.

    Where the platform cannot open step by step, only a link at the end is refused.
    """
    if os.open not in os.supports_dir_fd:
        return open_here(str(folder / name), flags)
    *parents, last = name.split("/")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for parent in parents:
            below = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def exclusive_lock(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold the lock file alone among all threads and processes; the system frees it when its holder dies.

    Raises:
        TimeoutError: somebody else held it all the time.
        OSError: the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    try:
        deadline = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"another process has held the lock for {timeout_s:g} s")
            time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)  # frees the lock


def open_here(path: str, flags: int) -> int:
    """Open what has this very name: no link is followed, no pipe is waited for."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), _FILE_MODE)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
