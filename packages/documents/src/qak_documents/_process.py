"""One child process under limits, killed with all its descendants when its time or its output is over."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

# Where programs and temporary files are; nothing that could hold a secret or change how Python starts.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a child ended.

    Attributes:
        output: what it wrote, at most one byte more than allowed.
        returncode: as in ``subprocess``: negative for the signal that ended it.
        timed_out: it was killed at its wall limit.
    """

    output: bytes
    returncode: int
    timed_out: bool


def run_limited(command: Sequence[str], stdin: BinaryIO, *, wall_s: float, max_output_bytes: int) -> Outcome:
    """Run ``command`` on ``stdin`` (a real file) until it closes its output, then kill its whole process group.

    Its error stream is dropped: it could hold text of the document.
    """
    process = subprocess.Popen(  # noqa: S603  # the command is ours, the document is only on its input
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.path.abspath(os.sep),
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        | {"PATH": os.defpath, "MALLOC_ARENA_MAX": "1"},
        start_new_session=True,
    )
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill_group(process)

    timer = threading.Timer(wall_s, expire)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdout is not None
        with process.stdout:
            output = process.stdout.read(max_output_bytes + 1)
    finally:
        timer.cancel()
        timer.join()
        _kill_group(process)  # before it is waited for, while its number can't belong to anybody else
        process.wait()
    return Outcome(output=output, returncode=process.returncode, timed_out=expired.is_set())


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
