"""File to document: the one way in."""

import contextlib
import io
import json
import logging
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
from typing import Any, BinaryIO

from qak_documents._decoding import decode_text
from qak_documents._document import Document, Piece, clean, join
from qak_documents._errors import (
    ERRORS_BY_CODE,
    DamagedDocument,
    DocumentTooLarge,
    EmptyDocument,
    ExtractionTimedOut,
    UnsupportedDocument,
)
from qak_documents._formats import MIME_TYPES, detect
from qak_documents._limits import ExtractionLimits
from qak_documents._plaintext import csv_document, markdown_document, text_document
from qak_documents._process import Outcome, run_limited

_logger = logging.getLogger("qak_documents")
_IN_PROCESS = {"txt": text_document, "md": markdown_document, "csv": csv_document}
_MAX_UTF8_BYTES = 4  # of one character
_DEFAULT_LIMITS = ExtractionLimits()
_warned: set[str] = set()
_warned_lock = threading.Lock()


def extract(
    source: str | os.PathLike[str] | bytes,
    *,
    filename: str | None = None,
    limits: ExtractionLimits = _DEFAULT_LIMITS,
) -> Document:
    """Read one file as Markdown with blocks.

    Blocks the calling thread for as long as the file takes, at most a little over ``limits.wall_s``; may be called from
    any number of threads. Text, Markdown and CSV are read here; everything else in a child process under ``limits``,
    which gets the file's bytes and no name, no environment and no way to write files.

    Args:
        source: a path, or the bytes of a file.
        filename: the name whose extension counts; by default that of the path. Bytes without one are told by content.
        limits: what the extraction may use.

    Returns:
        The document; its ``markdown`` holds at least one visible character.

    Raises:
        DocumentError: one of its subclasses.
        OSError: the path can't be opened or read.
    """
    if isinstance(source, bytes):
        return _extract(io.BytesIO(source), len(source), filename, limits)
    with open(source, "rb", opener=_open_without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnsupportedDocument("The path names a device, pipe or socket; give the path of a file.")
        return _extract(stream, status.st_size, filename or os.fspath(source), limits)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a named pipe would wait for its writer


def _extract(stream: BinaryIO, size: int, filename: str | None, limits: ExtractionLimits) -> Document:
    if size > limits.max_bytes:
        raise DocumentTooLarge(f"The file has {size:,} bytes, the limit is {limits.max_bytes:,}; split it.")
    if size == 0:
        raise EmptyDocument("The file has 0 bytes; upload it again if it should hold something.")
    found = detect(stream, filename, limits)
    stream.seek(0)
    if read_text := _IN_PROCESS.get(found):
        if size > limits.max_output_chars * _MAX_UTF8_BYTES:
            raise _too_long(limits)
        document = read_text(decode_text(stream.read(limits.max_bytes)), MIME_TYPES[found], limits.max_blocks)
    else:
        document = _in_child(stream, found, limits)
    if len(document.markdown) > limits.max_output_chars:
        raise _too_long(limits)
    if not document.blocks:
        raise EmptyDocument(
            "No text was found. If the file holds pictures of text, as a scan does, run text recognition (OCR) on it."
        )
    return document


def _too_long(limits: ExtractionLimits) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"The text has more than {limits.max_output_chars:,} characters, the limit; split the file."
    )


def _in_child(stream: BinaryIO, found: str, limits: ExtractionLimits) -> Document:
    command = [
        *(sys.executable, "-I", "-m", "qak_documents._worker", found, MIME_TYPES[found]),
        *map(str, (limits.max_output_chars, limits.max_blocks, limits.max_memory_bytes, limits.cpu_s)),
    ]
    max_output_bytes = limits.max_output_chars * 8 + 1024 * 1024  # JSON of any text within the limit, with its blocks
    in_memory = isinstance(stream, io.BytesIO)
    with tempfile.TemporaryFile() if in_memory else contextlib.nullcontext(stream) as file:
        if in_memory:
            shutil.copyfileobj(stream, file)
            file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        outcome = run_limited(command, file, wall_s=limits.wall_s, max_output_bytes=max_output_bytes)
    answer = _answer(outcome, limits, max_output_bytes)
    pieces = [
        Piece(kind, level, clean(markdown if text is None else text), clean(markdown), page)
        for kind, level, text, markdown, page in answer["blocks"]
    ]
    title = answer["title"]
    return join(
        pieces,
        title=None if title is None else clean(title),
        mime_type=MIME_TYPES[found],
        page_count=answer["page_count"],
    )


def _answer(outcome: Outcome, limits: ExtractionLimits, max_output_bytes: int) -> dict[str, Any]:
    if outcome.timed_out:
        raise ExtractionTimedOut(f"Reading the file took longer than {limits.wall_s:g} s, the limit; split it.")
    if len(outcome.output) > max_output_bytes:
        raise _too_long(limits)
    if not outcome.output:
        if outcome.returncode == -getattr(signal, "SIGXCPU", 0):
            raise ExtractionTimedOut(f"Reading the file took more than {limits.cpu_s:g} s of CPU, the limit; split it.")
        if outcome.returncode in (-signal.SIGABRT, -getattr(signal, "SIGKILL", signal.SIGTERM)):
            raise DocumentTooLarge(
                f"Reading the file needs more than {limits.max_memory_bytes:,} bytes of memory, the limit; split it."
            )
        raise DamagedDocument("The file made its reader crash; open it in its own program and save it anew.")
    answer: dict[str, Any] = json.loads(outcome.output)
    _warn_of_missing_limits(answer["missing_limits"])
    if "error" in answer:
        code, message = answer["error"]
        raise ERRORS_BY_CODE[code](message)
    return answer


def _warn_of_missing_limits(names: list[str]) -> None:
    with _warned_lock:
        new = sorted(set(names) - _warned)
        _warned.update(new)
    if new:
        _logger.warning("This platform can't set %s; hostile documents may use more than allowed.", ", ".join(new))
