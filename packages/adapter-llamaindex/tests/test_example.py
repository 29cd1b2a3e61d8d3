"""The example runs offline and finds what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "llamaindex" / "main.py"


def test_example_finds_cites_and_keeps_teams_apart(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {"HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    releases, reviews, stranger, back = ran.stdout.split("--- ")[1:]
    assert "发布手册.md, section 审批" in releases
    assert "发布需要两位审核人批准" in releases
    assert "('source_1', 'https://docs.example.com/releases')" in releases
    assert "code-review.md" in reviews
    assert "not_found" in stranger
    assert "发布手册#1 source_1" in back
    assert list(tmp_path.iterdir()) == []
