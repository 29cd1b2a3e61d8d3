"""The Python in READMEs and docs runs as it stands, in a folder that has nothing but the examples."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("packages/*/README.md"), *ROOT.glob("docs/**/*.md")])
SNIPPETS = [
    (page, number, code)
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S), 1
    )
]


def is_program(code: str) -> bool:
    """A snippet that starts something is a program; the others only show what to write, and must compile."""
    return "asyncio.run(" in code or "print(" in code


@pytest.mark.parametrize(
    ("page", "number", "code"), SNIPPETS, ids=[f"{page.relative_to(ROOT)}:{number}" for page, number, _ in SNIPPETS]
)
def test_snippet_runs_as_it_stands(page: Path, number: int, code: str, tmp_path: Path) -> None:
    if not is_program(code):
        compile(code, f"{page.name}:{number}", "exec")
        return
    program = tmp_path / "snippet.py"
    program.write_text(code, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # what a snippet writes must not stay in the checkout
    done = subprocess.run(
        [sys.executable, "-W", "error", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
