"""The child process: limits itself, reads a document from its input, writes blocks as JSON to its output.

Started as ``python -I -m qak_documents._worker FORMAT MIME_TYPE MAX_CHARS MAX_BLOCKS MEMORY_BYTES CPU_S``.
"""

import html
import importlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from qak_documents._archive import packed, readable_parts
from qak_documents._decoding import decode_text
from qak_documents._document import Piece, code, too_many_blocks
from qak_documents._errors import DamagedDocument, DocumentError, DocumentTooLarge
from qak_documents._formats import ARCHIVE_FORMATS
from qak_documents._markup import html_pieces
from qak_documents._nodes import extract_nodes
from qak_documents._pdf import pdf_pieces

# The extractor drops character references (`&amp;`, `&#20013;`) from Word text. They are replaced before it sees them,
# those for markup by stand-ins of a private plane.
_REFERENCE = re.compile(rb"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
_STAND_INS = {char: chr(0x10FA00 + ord(char)) for char in "&<>\"'"}
_RESTORED = str.maketrans({stand_in: char for char, stand_in in _STAND_INS.items()})
_LIBRARIES = {"html": None, "json": None, "pdf": "pypdfium2"}  # the rest is read by kreuzberg


def limit_resources(memory_bytes: int, cpu_s: float, resource: ModuleType | None) -> list[str]:
    """Set the limits of this process and return the names of those the platform can't set."""
    missing = []
    for name, soft, hard in (
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_FSIZE", 0, 0),
        ("RLIMIT_AS", memory_bytes, memory_bytes),
        ("RLIMIT_CPU", math.ceil(cpu_s), math.ceil(cpu_s) + 1),
    ):
        try:
            resource.setrlimit(getattr(resource, name), (soft, hard))  # type: ignore[union-attr]  # None is caught
        except (AttributeError, ValueError, OSError):
            missing.append(name)
    return missing


def _extract(data: bytes, format_name: str, mime_type: str, max_chars: int, max_blocks: int) -> dict[str, Any]:
    title: str | None = None
    page_count: int | None = None
    if format_name == "html":
        title, pieces = html_pieces(decode_text(data, html=True))
    elif format_name == "json":
        pieces = [_json_piece(decode_text(data), max_chars)]
    elif format_name == "pdf":
        title, page_count, pieces = pdf_pieces(data)
    else:
        if format_name in ARCHIVE_FORMATS:
            data = _repacked(data, format_name)
        title, page_count, pieces = extract_nodes(data, format_name, mime_type)
        if format_name == "docx":
            pieces = [
                piece._replace(text=piece.text.translate(_RESTORED), markdown=piece.markdown.translate(_RESTORED))
                for piece in pieces
            ]
    if len(pieces) > max_blocks:
        raise too_many_blocks(max_blocks)
    if sum(len(piece.markdown) + 2 for piece in pieces) > max_chars:
        raise DocumentTooLarge(f"The text has more than {max_chars:,} characters, the limit; split the file.")
    blocks = [
        [piece.kind, piece.level, piece.text if piece.kind == "heading" else None, piece.markdown, piece.page]
        for piece in pieces
    ]
    return {"title": title, "page_count": page_count, "blocks": blocks}


def _repacked(data: bytes, format_name: str) -> bytes:
    parts = readable_parts(io.BytesIO(data))
    if format_name != "epub" and any(b"<!DOCTYPE" in part for part in parts.values()):
        raise DamagedDocument("The file declares a document type, which files of its format never do; save it anew.")
    if format_name == "docx":
        for name in parts:
            if name.startswith("word/") and name.endswith(".xml"):
                parts[name] = _REFERENCE.sub(_plain_reference, parts[name])
    return packed(parts)


def _plain_reference(reference: re.Match[bytes]) -> bytes:
    char = html.unescape(reference[0].decode("ascii"))
    return _STAND_INS.get(char, char).encode("utf-8", "ignore")


def _json_piece(text: str, max_chars: int) -> Piece:
    try:
        values = _json_values(text)
        if "\n" not in text.strip() or "\\u" in text:
            text = _limited((part for value in values for part in (*_JSON.iterencode(value), "\n")), max_chars)
    except RecursionError as error:
        raise DamagedDocument("The JSON is nested too deeply; flatten it.") from error
    except ValueError as error:
        raise DamagedDocument("The file is not valid JSON, nor one JSON value a line; correct it.") from error
    return code(text, "json")


_JSON = json.JSONEncoder(ensure_ascii=False, indent=2)


def _json_values(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _limited(parts: Iterable[str], max_chars: int) -> str:
    target = io.StringIO()
    for part in parts:
        target.write(part)
        if target.tell() > max_chars:
            raise DocumentTooLarge(f"The text has more than {max_chars:,} characters, the limit; split the file.")
    return target.getvalue()


def main() -> None:
    """Read the document from standard input and write the answer to standard output, with nothing else on it."""
    format_name, mime_type, max_chars, max_blocks, memory_bytes, cpu_s = sys.argv[1:]
    answer_fd = os.dup(1)
    os.dup2(2, 1)  # what a library prints goes where errors go: nowhere
    if library := _LIBRARIES.get(format_name, "kreuzberg"):
        importlib.import_module(library)  # before the limits: no byte of the document has been read yet
    try:
        import resource
    except ImportError:  # not on this platform
        resource = None  # type: ignore[assignment]
    answer: dict[str, Any] = {"missing_limits": limit_resources(int(memory_bytes), float(cpu_s), resource)}
    try:
        answer |= _extract(sys.stdin.buffer.read(), format_name, mime_type, int(max_chars), int(max_blocks))
        text = json.dumps(answer, ensure_ascii=False)
    except DocumentError as error:
        text = json.dumps(answer | {"error": [error.code, error.message]})
    except MemoryError:
        os.abort()  # as native code does
    with os.fdopen(answer_fd, "wb") as target:
        target.write(text.encode("utf-8", "surrogatepass"))  # JSON may escape half a character


if __name__ == "__main__":
    main()
