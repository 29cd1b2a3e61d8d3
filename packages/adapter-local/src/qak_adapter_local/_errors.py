"""Why the library refused something, and what a retrieval says instead."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Literal

from qak_core import KnowledgeUnavailable, QakError
from qak_core.authoring import ErrorTable

LibraryErrorCode = Literal[
    "library_unavailable",
    "missing_owner",
    "invalid_path",
    "not_found",
    "not_a_file",
    "empty_file",
    "too_large",
    "unsupported_type",
    "library_full",
    "copy_failed",
    "conversion_failed",
]


class LibraryError(QakError):
    """The library could not do what its owner asked; for management clients, never for a model.

    Attributes:
        code: one of eleven, see :data:`LibraryErrorCode`.
        message: what was got, what was expected, what to do; holds no text of a document and no credential.
    """

    def __init__(self, code: LibraryErrorCode, message: str) -> None:
        self.code: LibraryErrorCode = code
        self.message = message
        super().__init__(code, message)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


ERRORS = ErrorTable(
    {LibraryError: KnowledgeUnavailable, sqlite3.Error: KnowledgeUnavailable, OSError: KnowledgeUnavailable}
)
"""For retrievals: whatever is wrong with the disk, the library cannot be reached now."""

# The codes of qak_documents, seen from an owner who wants to add a file.
CONVERSION_CODES: dict[str, LibraryErrorCode] = {"unsupported": "unsupported_type", "too_large": "too_large"}


class IndexDamaged(Exception):
    """An index file is not one that this version wrote whole."""


@contextlib.contextmanager
def unavailable(subject: str) -> Iterator[None]:
    """Say in the library's own words that the disk, the database or the lock of ``subject`` fails."""
    try:
        yield
    except TimeoutError as error:
        raise LibraryError("library_unavailable", f"{subject} is busy: {error}.") from None
    except (OSError, sqlite3.Error, IndexDamaged) as error:
        message = f"{subject} cannot be used ({reason_of(error)}); check its disk and permissions."
        raise LibraryError("library_unavailable", message) from None


def reason_of(error: Exception) -> str:
    """Return what the system says, without a path."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
