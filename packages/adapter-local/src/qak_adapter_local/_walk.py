"""The documents below a directory."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from qak_adapter_local._paths import is_plain_text

_MAX_DEPTH = 32
# Documents, not source code; anything else in the folder is passed over.
_SUFFIXES = frozenset(
    ".txt .text .md .markdown .csv .tsv .json .html .htm .pdf .docx .pptx .xlsx .odt .rtf .epub".split()
)

_log = logging.getLogger("qak_adapter_local")


def walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the documents below a folder as POSIX paths, by name, without following a link."""
    waiting: list[tuple[Path, int]] = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            if folder == root:
                raise
            _log.warning("A folder below the searched one cannot be read: %s.", error.strerror)
            continue
        below = []
        for entry in entries:
            # "~$" marks the lock files of Office. A name that is not Unicode could not be told to anybody.
            if entry.name.startswith((".", "~$")) or not is_plain_text(entry.name):
                continue
            with contextlib.suppress(OSError):  # it went away
                if entry.is_dir(follow_symlinks=False) and depth < _MAX_DEPTH:
                    below.append((Path(entry.path), depth + 1))
                elif entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in _SUFFIXES:
                    yield Path(entry.path).relative_to(root).as_posix(), entry.stat(follow_symlinks=False)
        waiting.extend(reversed(below))
