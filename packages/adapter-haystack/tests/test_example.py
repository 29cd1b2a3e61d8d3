"""The example, run as its readers run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "haystack" / "main.py"


def test_example_answers_each_owner_from_their_own_documents(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HAYSTACK_")}
    env |= {"HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE], cwd=tmp_path, env=env, capture_output=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert list(tmp_path.iterdir()) == []
    _, alice, bob, prompt = ran.stdout.decode().split("--- ")
    assert alice.splitlines()[1] == ("source_1 Release captain | The release captain approves at night alone.")
    assert "Salaries" not in alice
    assert bob.splitlines()[1:] == ["source_1 Salaries | Release engineers get two salaries as a bonus."]
    assert prompt.splitlines()[1] == "[source_1] 发布需要两位审核人批准，其中一位是发布负责人。"
