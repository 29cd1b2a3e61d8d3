"""`qak check`: the contract's clauses from the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS_NEEDED = """
from dataclasses import dataclass
from qak_core.authoring import read_settings

@dataclass(frozen=True, kw_only=True)
class Settings:
    folder: str

class Provider:
    def describe(self):
        return {"protocolVersion": 1, "key": "strict", "label": "Strict"}

    async def retrieve(self, request, context):
        context.signal.raise_if_cancelled()
        return []

def create(settings):
    read_settings(Settings, settings)
    return Provider()
"""


def outcomes(text: str) -> dict[str, str]:
    return {line.split("\t")[0]: line.split("\t")[1] for line in text.splitlines()}


def test_check_of_the_configured_provider_shows_each_clause(qak, configured) -> None:
    configured()
    ran = qak("check")
    shown = outcomes(ran.out)
    assert ran.code == 0
    assert set(shown.values()) == {"kept"}
    assert f"{len(shown)} clauses checked, 0 broken" in ran.err


def test_check_fails_with_3_when_a_clause_is_broken_and_says_how(qak, configured) -> None:
    configured("greedy")
    ran = qak("check")
    assert ran.code == 3
    assert [clause for clause, outcome in outcomes(ran.out).items() if outcome == "broken"] == ["request.top_k"]
    assert "at most 1 results, got 2" in ran.out
    assert "1 broken" in ran.err


def test_check_says_that_an_unavailable_provider_had_no_answers_to_judge(qak, configured) -> None:
    configured("fail")
    ran = qak("check")
    assert ran.code == 3
    assert "clauses that need an answer had none: the provider is unavailable. no route" in ran.err


def test_check_of_a_module_and_factory_needs_no_configuration(qak, tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(SETTINGS_NEEDED.replace("    folder: str\n", "    folder: str = ''\n"), "utf-8")
    shown = outcomes(qak("check", "strict:create").out)
    assert shown["context.signal.cancelled"] == "kept"


def test_check_uses_the_settings_only_of_the_adapter_they_belong_to(qak, tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(SETTINGS_NEEDED, "utf-8")
    ran = qak("check", "strict:create")
    assert ran.code == 2
    assert "folder is required" in ran.err
    (tmp_path / "qak.toml").write_text('[provider]\nadapter = "strict:create"\nfolder = "x"\n', "utf-8")
    assert outcomes(qak("check", "strict:create").out)["describe.version"] == "kept"


@pytest.mark.parametrize("file", [None, '[provider]\nadapter = "other"\nsetting = 1\n'])
def test_check_of_an_adapter_that_needs_settings_does_not_blame_a_file_for_them(qak, tmp_path: Path, file) -> None:
    (tmp_path / "needs.py").write_text(
        "from qak_core import SettingsError\ndef create(settings): raise SettingsError(['url is required'])\n"
    )
    if file is not None:
        (tmp_path / "qak.toml").write_text(file, "utf-8")
    ran = qak("check", "needs:create")
    assert ran.code == 2
    assert ran.err == "qak: adapter 'needs:create' without settings cannot be used:\n  - [provider] url is required\n"


def test_check_without_a_provider_is_exit_code_2(qak) -> None:
    ran = qak("check")
    assert ran.code == 2
    assert "no provider is configured" in ran.err


def test_check_names_the_package_that_holds_the_clauses(tmp_path: Path) -> None:
    """A finder that refuses the package stands for an environment without it."""
    probe = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'qak_contract_tests': raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from qak_gateway.cli import app\n"
        "app(['check', 'strict:create'])"
    )
    (tmp_path / "strict.py").write_text(SETTINGS_NEEDED, "utf-8")
    ran = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert ran.returncode == 2
    assert "pip install qak-contract-tests" in ran.stderr
    assert "Traceback" not in ran.stderr
