"""Why a file could not be turned into text."""

from typing import ClassVar


class DocumentError(Exception):
    """A file that gives no text: one of the subclasses, with a stable code and a message fit for its owner.

    Messages name the limit or the format concerned and what to do; they never hold text of the file or a traceback.
    Files that can't be opened at all raise the ``OSError`` of the operating system instead.

    Attributes:
        code: one of ``unsupported``, ``encrypted``, ``damaged``, ``too_large``, ``timed_out``, ``empty``.
        message: what was got, what was expected, what to do.
    """

    code: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnsupportedDocument(DocumentError):
    """The format is not one this package reads, or the name and the content disagree."""

    code = "unsupported"


class EncryptedDocument(DocumentError):
    """The file needs a password."""

    code = "encrypted"


class DamagedDocument(DocumentError):
    """The file breaks the rules of its own format."""

    code = "damaged"


class DocumentTooLarge(DocumentError):
    """The file, its text, its archive or the memory it needs is over a limit."""

    code = "too_large"


class ExtractionTimedOut(DocumentError):
    """The file used up its processor or wall time."""

    code = "timed_out"


class EmptyDocument(DocumentError):
    """The file was read without fault and holds no text, such as a scanned PDF."""

    code = "empty"


ERRORS_BY_CODE: dict[str, type[DocumentError]] = {error.code: error for error in DocumentError.__subclasses__()}
"""Code to class, the closed list."""
