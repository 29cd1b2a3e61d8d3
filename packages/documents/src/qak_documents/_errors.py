"""Why a file could not be turned into text."""

from typing import ClassVar


class DocumentError(Exception):
    """A file that gives no text, with a stable code and a message fit for its owner.

    Messages name the limit or the format concerned and what to do; they never hold text of the file or a traceback.
    Files that can't be opened at all raise the `OSError` of the operating system instead.

    Args:
        code: One of `unsupported`, `encrypted`, `damaged`, `too_large`, `timed_out`, `empty`.
        message: What was got, what was expected, what to do.
    """

    code: str

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class _CodedError(DocumentError):
    default_code: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(self.default_code, message)

    def __reduce__(self) -> tuple[type["_CodedError"], tuple[str]]:
        return type(self), (self.message,)


class UnsupportedDocument(_CodedError):
    """The format is not one this package reads, or the name and the content disagree."""

    default_code = "unsupported"


class EncryptedDocument(_CodedError):
    """The file needs a password."""

    default_code = "encrypted"


class DamagedDocument(_CodedError):
    """The file breaks the rules of its own format."""

    default_code = "damaged"


class DocumentTooLarge(_CodedError):
    """The file, its text, its archive or the memory it needs is over a limit."""

    default_code = "too_large"


class ExtractionTimedOut(_CodedError):
    """The file used up its processor or wall time."""

    default_code = "timed_out"


class EmptyDocument(_CodedError):
    """The file was read without fault and holds no text, such as a scanned PDF."""

    default_code = "empty"


ERRORS: dict[str, type[_CodedError]] = {
    kind.default_code: kind
    for kind in (
        UnsupportedDocument,
        EncryptedDocument,
        DamagedDocument,
        DocumentTooLarge,
        ExtractionTimedOut,
        EmptyDocument,
    )
}
