"""Writing for people and for pipes; nothing that is shown can steer a terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# What json.dumps leaves as it is and a terminal may obey: DEL and C1, line separators, bidi controls.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_WIDE = "\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_AFTER = "、。，．！？：；）］｝」』】》〉”’…％"  # no line begins with one of these
_BEFORE = "（［｛「『【《〈“‘"  # and none ends with one of these
_PIECE = re.compile(f"[{_BEFORE}]*[{_WIDE}][{_AFTER}]*\\s*|[^\\s{_WIDE}]+[{_AFTER}]*\\s*|\\s+")
_MIN_WIDTH = 12  # columns; a narrower terminal breaks the lines itself, and a Han character needs two
_HARMLESS = "\n\t\u00ad\u200c\u200d\u200e\u200f"  # joiners and marks that emoji and many scripts need
_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # Unicode categories


def prepare() -> None:
    """Make the standard streams and the log safe to write to; called once, when the process starts."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by the caller: else the next file to be opened would get its number
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            mode = "w" if descriptor else "r"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # until the end
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a terminal that lacks a letter shows a question mark instead
    handler = logging.StreamHandler()
    handler.setFormatter(_LogFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether standard output, or another stream, goes to a person; what goes elsewhere is written plainly."""
    return (stream or sys.stdout).isatty()


def printable(value: object) -> str:
    """Return text without what a terminal would obey: control and format characters become U+FFFD."""
    return "".join(
        char if char in _HARMLESS or unicodedata.category(char) not in _OBEYED else "\ufffd" for char in str(value)
    )


def one_line(value: object) -> str:
    """Return printable text with each run of white space as one blank."""
    return printable(" ".join(str(value).split()))


def escape_json(text: str) -> str:
    r"""Return JSON text with every character that a terminal would obey as ``\uXXXX``; its value stays the same."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a line to standard output or another stream; a reader that has gone away is no error."""
    stream = stream or sys.stdout
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        _discard(stream)


def write_utf8(text: str) -> None:
    """Write a line to standard output as UTF-8, whatever the locale says."""
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _discard(sys.stdout)


def note(message: str) -> None:
    """Say something to the person at the terminal, on standard error."""
    text = f"qak: {printable(message)}"
    write(wrap(text, shutil.get_terminal_size().columns) if is_terminal(sys.stderr) else text, sys.stderr)


def write_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table on a terminal, and one line a row with tabs between the cells elsewhere."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not is_terminal():
        for row in cells:
            write("\t".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    write_rich(table)


def write_rich(*renderables: RenderableType, stream: TextIO | None = None) -> None:
    """Write what rich draws; for terminals only."""
    screen = console(stream)
    with screen.capture() as captured:
        for renderable in renderables:
            screen.print(renderable)
    write("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")), stream)


def wrap(text: str, width: int) -> str:
    """Break lines at blanks and between Chinese, Japanese or Korean characters, never before their punctuation."""
    from rich.cells import cell_len, chop_cells

    lines = []
    for paragraph in text.split("\n"):
        line = ""
        room = width
        for piece in _PIECE.findall(paragraph):
            if line and cell_len(piece.rstrip()) > room:
                lines.append(line.rstrip())
                line, room = "", width
            *whole, rest = chop_cells(piece.rstrip(), width) or [""]  # a word longer than a line is cut
            lines += whole
            line += rest + piece[len(piece.rstrip()) :]
            room = width - cell_len(line)
        lines.append(line.rstrip())
    return "\n".join(lines)


def console(stream: TextIO | None = None) -> Console:
    """Return a console that takes text literally: no markup, no emoji names, no guessed highlights."""
    from rich.console import Console  # 50 ms that only a terminal needs

    screen = Console(file=stream, markup=False, emoji=False, highlight=False)
    screen.width = max(screen.width, _MIN_WIDTH)
    return screen


@contextlib.contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show that something goes on, where a person watches."""
    if not is_terminal(sys.stderr):
        yield
        return
    with console(sys.stderr).status(doing):
        yield


class _LogFormatter(logging.Formatter):
    """Writes what libraries log as one safe line, without tracebacks: those are for debuggers, not for users."""

    def format(self, record: logging.LogRecord) -> str:
        from qak_core.authoring import redact_credentials

        return f"qak: {one_line(redact_credentials(record.getMessage()))}"


def _discard(stream: TextIO) -> None:
    """Send what is still written to a closed pipe nowhere, also what Python flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
