import logging
import socket
import sys
import tempfile
import types
from typing import Any

import pytest

from qak_documents import _extraction
from qak_documents._process import run_limited
from qak_documents._worker import limit_resources

GRANDCHILD = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {GRANDCHILD!r}, sys.argv[1]])"


def run(script: str, *arguments: str, wall_s: float = 60, max_output_bytes: int = 1000) -> Any:
    with tempfile.TemporaryFile() as empty:
        command = [sys.executable, "-I", "-c", script, *arguments]
        return run_limited(command, empty, wall_s=wall_s, max_output_bytes=max_output_bytes)


def test_wall_limit_kills_grandchildren_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        outcome = run(CHILD, str(server.getsockname()[1]), wall_s=3)
        assert outcome.timed_out
        connection, _ = server.accept()
        with connection:
            connection.settimeout(30)
            assert connection.recv(1) == b""  # the other end is gone


def test_child_gets_neither_environment_nor_input_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    outcome = run("import os, sys; print(sorted(os.environ), len(sys.stdin.read()))")
    assert b"SERVICE_API_KEY" not in outcome.output
    assert b"PYTHONPATH" not in outcome.output
    assert outcome.output.endswith(b" 0\n")


def test_child_that_writes_without_end_is_stopped_at_the_output_limit() -> None:
    outcome = run("while True: print('x' * 1000)", max_output_bytes=5000)
    assert len(outcome.output) == 5001
    assert not outcome.timed_out


def test_child_that_dies_is_told_by_its_signal() -> None:
    outcome = run("import os; os.abort()")
    assert (outcome.output, outcome.timed_out) == (b"", False)
    assert outcome.returncode < 0


def test_limits_hold_in_the_child_and_it_can_write_no_file() -> None:
    script = (
        "import resource, tempfile\n"
        "from qak_documents._worker import limit_resources\n"
        "print(limit_resources(512 * 1024 * 1024, 5.2, resource))\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE))\n"
        "try:\n    f = tempfile.TemporaryFile(); f.write(b'x'); f.flush()\nexcept OSError: print('refused')\n"
    )
    if sys.platform == "linux":
        assert run(script).output.decode().splitlines() == ["[]", "(6, 7) (0, 0)", "refused"]
    else:
        assert run(script).output.decode().splitlines()[1:] == ["(6, 7) (0, 0)", "refused"]


def test_limits_that_the_platform_lacks_are_named() -> None:
    def refuse(kind: int, values: tuple[int, int]) -> None:
        if kind == 3:
            raise ValueError("current limit exceeds maximum limit")

    partial: Any = types.SimpleNamespace(RLIMIT_CORE=1, RLIMIT_FSIZE=2, RLIMIT_AS=3, setrlimit=refuse)
    assert limit_resources(1, 1, partial) == ["RLIMIT_AS", "RLIMIT_CPU"]
    assert limit_resources(1, 1, None) == ["RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_CPU"]


def test_missing_limits_are_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extraction, "_warned", set())
    with caplog.at_level(logging.WARNING, "qak_documents"):
        for _ in range(3):
            _extraction._warn_of_missing_limits(["RLIMIT_AS"])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "RLIMIT_AS" in caplog.text
