"""What the README says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from qak_adapter_local import LibraryErrorCode, LocalSettings

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "正文 / Full text:"), (1, "Two reviewers approve")], ids=["library", "folder"]
)
def test_readme_lines_work(tmp_path: Path, number: int, expected: str) -> None:
    snippet = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[number]

    command = [sys.executable, "-W", "error", "-c", snippet]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout


def test_readme_names_every_setting_and_error_code() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))

    assert {field.name for field in fields(LocalSettings)} <= rows
    assert set(get_args(LibraryErrorCode)) <= rows
