"""The command as a whole: help, version, exit codes, pipes, interruption."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qak_gateway.cli import app
from qak_gateway.outcome import run


def test_help_names_every_command_and_the_exit_codes() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    for word in ("adapters", "search", "library", "check", "doctor", "0 found, 1 nothing found"):
        assert word in shown.output


@pytest.mark.parametrize("command", ["search", "check", "doctor", "adapters", "library", "library add"])
def test_help_of_each_command_fits_80_columns(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "-h"])
    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize("group", [(), ("library",)])
def test_help_of_a_group_cuts_no_sentence_of_its_commands(group) -> None:
    assert "..." not in CliRunner().invoke(app, [*group, "-h"]).output.partition("Commands:")[2]


def test_version_is_that_of_the_distribution(qak) -> None:
    assert qak("--version").out == f"qak {version('qak-gateway')}\n"


def test_help_answers_at_once(qak) -> None:
    took_s = []
    for _ in range(10):
        started_s = _children_cpu_s()
        assert qak("--help").code == 0
        took_s.append(_children_cpu_s() - started_s)
    assert min(took_s) < 0.4, took_s  # of processor time: on a busy machine the clock measures what else it does


def _children_cpu_s() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def test_help_imports_neither_core_nor_rich() -> None:
    probe = (
        "import sys; from qak_gateway.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: print(sorted({'qak_core', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ast.literal_eval(shown.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("search",), ("search", "x", "--top-k", "9"), ("serch", "x"), ("search", "x", "--library", "missing")],
    ids=" ".join,
)
def test_usage_error_is_exit_code_2_on_standard_error(qak, arguments) -> None:
    ran = qak(*arguments)
    assert ran.code == 2
    assert "Usage: qak" in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_reader_that_goes_away_changes_no_exit_code(start_qak, configured, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("line\n" * 900, "utf-8")
    configured(settings='file = "long.txt"')
    for arguments in (["search", "x"], ["search", "x", "--json"], ["doctor"], ["check"]):
        process = start_qak(*arguments)
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(timeout=60) == 0
        assert "Broken" not in errors
        assert "Traceback" not in errors


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_stream_changes_neither_the_exit_code_nor_the_other_stream(configured, tmp_path: Path, closed) -> None:
    configured()
    shell = f'exec "$0" search "two reviewers" --json {closed}'
    qak = Path(sysconfig.get_path("scripts")) / "qak"
    ran = subprocess.run(["sh", "-c", shell, qak], cwd=tmp_path, capture_output=True, timeout=60)
    assert ran.returncode == 0
    assert ran.stderr == (b"" if "2>" in closed else b"a banner of the vendor\n")
    assert (ran.stdout[:1] == b"{") == (closed in ("<&-", "2>&-"))


def test_ctrl_c_ends_with_130_while_a_thread_of_the_provider_hangs(start_qak, configured, tmp_path: Path) -> None:
    configured("deaf thread", runtime="timeout_s = 50")
    process = start_qak("search", "x")
    deadline = time.monotonic() + 30
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert output == b""
    assert b"Traceback" not in errors


def test_deaf_thread_of_a_provider_does_not_keep_the_process(qak, configured) -> None:
    configured("deaf thread", runtime="timeout_s = 0.3")
    started = time.monotonic()
    ran = qak("search", "x", "--json")
    assert time.monotonic() - started < 20
    assert ran.code == 3
    assert json.loads(ran.out)["code"] == "knowledge_timeout"
    assert "timeout_s" in ran.err


@pytest.mark.parametrize("command", [("search", "x"), ("doctor",), ("check",)])
def test_provider_that_ends_the_program_has_failed(qak, configured, command) -> None:
    configured(mode="exit")
    ran = qak(*command)
    assert ran.code == 3
    assert "SystemExit" in ran.err + ran.out


def test_adapter_that_fails_to_create_its_provider_is_exit_code_2(qak, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def create(settings):\n    raise ValueError('password=hunter22')\n", "utf-8")
    (tmp_path / "qak.toml").write_text('[provider]\nadapter = "broken:create"\n', "utf-8")
    for command in (("search", "x"), ("doctor",), ("check",)):
        ran = qak(*command)
        assert ran.code == 2
        assert "ValueError" in ran.out + ran.err
        assert "Traceback" not in ran.err
        assert "hunter22" not in ran.out + ran.err


def test_error_that_nobody_foresaw_is_one_redacted_sentence(capsys) -> None:
    async def command() -> int:
        raise ZeroDivisionError("password=hunter22 \x1b[2J\nnext")

    assert run(command()) == 3
    said = capsys.readouterr().err
    assert re.fullmatch(r"qak: unexpected ZeroDivisionError: .+ \(test_cli.py, line \d+\)\n", said)
    assert "hunter22" not in said
    assert "\x1b" not in said


@pytest.mark.parametrize("module", ["qak_gateway.cli", "qak_gateway.search", "qak_gateway.library"])
def test_no_module_imports_an_adapter(module: str) -> None:
    probe = f"import sys, {module}; print([name for name in sys.modules if name.startswith('qak_adapter')])"
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ast.literal_eval(shown.stdout) == []
