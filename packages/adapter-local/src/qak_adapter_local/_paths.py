"""Paths as people paste them, and names that every disk accepts."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote_to_bytes, urlsplit

from qak_adapter_local._errors import LibraryError
from qak_core.normalization import MAX_LOCATOR_CHARS

# What the section Text of the protocol removes or replaces, and as surely makes another path of it.
_NOT_KEPT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_MAX_STEM_BYTES = 100  # with what is added, below the 143 that encrypting file systems leave
_MAX_SUFFIX_CHARS = 12

_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "《": "》", "<": ">"}
_RESERVED = re.compile(r'[<>:"/\\|?*]')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_ADDRESS = re.compile(r"file:|[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def source_path(value: str | os.PathLike[str]) -> Path:
    """Return the absolute path that a pasted path or ``file:`` URL means.

    Blanks and quotes around it are removed, ``~`` is expanded, and a relative path counts from the working directory.
    Nothing is looked up on the disk.

    Raises:
        LibraryError: ``invalid_path``.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(text, str):
        raise LibraryError("invalid_path", f"The path must be text, got {type(text).__name__}.")
    if isinstance(value, str):  # a path object is exact; text was typed, pasted or dragged
        text = _unquoted(text)
        if _ADDRESS.match(text):
            text = _of_file_url(text)
    if not text:
        raise LibraryError("invalid_path", "The path is empty; give the path of one file.")
    if any(unicodedata.category(char) == "Cc" for char in text):  # surrogates stand for bytes that are no UTF-8
        raise LibraryError("invalid_path", "The path holds a control character, which no file name needs.")
    try:
        return Path(os.path.abspath(Path(text).expanduser()))
    except (RuntimeError, OSError, ValueError):
        raise LibraryError("invalid_path", "The path cannot be made absolute; give it in full.") from None


def same_name_key(path: str) -> str:
    """Return what is equal for all paths that a disk ignoring case and Unicode form could take for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_plain_text(name: str) -> bool:
    """Whether a name holds no control character and no byte that is not UTF-8."""
    return not any(unicodedata.category(char) in {"Cc", "Cs"} for char in name)


def display_name(name: str) -> str:
    """Return a file's name for people: NFC, on one line, without invisible characters."""
    text = " ".join(unicodedata.normalize("NFC", name).split())
    return "".join(char for char in text if char.isprintable()).strip()[:200] or "document"


def safe_name(name: str, unique: str, suffix: str | None = None) -> str:
    """Return a file name for the copy of ``name`` that any file system takes.

    Args:
        name: the name of the source.
        unique: letters and digits that make it unlike every other name, even where case and Unicode form don't count.
        suffix: the extension with its dot, instead of that of ``name``.
    """
    stem, extension = os.path.splitext(display_name(name))
    stem = _RESERVED.sub("_", stem).strip(" .").encode()[:_MAX_STEM_BYTES].decode(errors="ignore").strip(" .")
    stem = stem or "document"
    if _DEVICE.match(stem):
        stem = f"_{stem}"
    if suffix is None:
        suffix = extension.lower() if re.fullmatch(r"\.[A-Za-z0-9]+", extension) else ""
    return f"{stem}.{unique}{suffix[:_MAX_SUFFIX_CHARS]}"


def locator(path: str, page: int | None = None) -> str | None:
    """Return the path as a locator, with ``#page=N`` where a page is known; ``None`` if it would not stay as it is."""
    text = f"{path}#page={page}" if page else path
    # A longer one would be cut (clause response.source), and a cut path names another file.
    kept = len(text) <= MAX_LOCATOR_CHARS and text.strip() == text and not _NOT_KEPT.search(text)
    return text if kept else None


def _unquoted(text: str) -> str:
    text = text.strip()
    while len(text) >= 2 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text


def _of_file_url(text: str) -> str:
    try:
        url = urlsplit(text)
        path = unquote_to_bytes(url.path).decode()
    except ValueError:
        raise LibraryError("invalid_path", "The file: URL cannot be read; give a plain path.") from None
    if url.scheme.lower() != "file":
        raise LibraryError("invalid_path", f"Only files of this machine can be added, got an address ({url.scheme}:).")
    if url.netloc.lower() not in {"", "localhost"} or path.startswith("//"):
        raise LibraryError("invalid_path", "The file: URL names another machine; copy the file here first.")
    if re.search("%2f|%5c|%00", url.path, re.IGNORECASE):
        raise LibraryError("invalid_path", "The file: URL hides a separator behind a percent sign; give a plain path.")
    if not path.startswith("/"):
        raise LibraryError("invalid_path", "The file: URL must hold an absolute path, such as file:///home/me/a.pdf.")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise LibraryError("invalid_path", "The file: URL holds a control character, which no file name needs.")
    if os.name == "nt" and PureWindowsPath(path[1:]).drive:
        return path[1:]
    return path
