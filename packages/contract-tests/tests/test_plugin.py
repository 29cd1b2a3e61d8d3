"""The suite runs on anybody's provider in anybody's folder, reports, and keeps out of everybody else's way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qak_contract_tests import CLAUSES, CORPUS
from qak_contract_tests._mutants.answering import WorstComesFirst

FOREIGN_PROVIDER = '''
"""A search engine that has never heard of the core: mappings in, mappings out."""

import asyncio


class AcmeSearch:
    def __init__(self, rows):
        self.rows = rows

    def describe(self):
        return {
            "protocolVersion": 1,
            "key": "acme-search",
            "label": "Acme 企业搜索",
            "capabilities": {"filters": True, "scores": True, "citations": True},
        }

    async def retrieve(self, request, context):
        context.signal.raise_if_cancelled()
        await asyncio.sleep(0)
        context.signal.raise_if_cancelled()
        if request.knowledge_base_ids:
            return {"results": []}
        words = request.query.lower().split()
        found = []
        for row in self.rows:
            wanted = {request.filters["key"]: request.filters.get("value")} if "key" in (request.filters or {}) else {}
            matching = all(row["metadata"].get(name) == value for name, value in wanted.items())
            distance = sum(word not in row["text"].lower() for word in words)
            if row["owner"] == context.owner_id and matching and distance < len(words):
                found.append((distance, row))
        found.sort(key=lambda pair: pair[0])
        return {"results": [
            {
                "id": row["id"],
                "content": row["text"],
                "score": float(distance),
                "source": {"id": row["id"], "title": row["title"], "uri": row["uri"], "mimeType": "text/plain"},
                "metadata": dict(row["metadata"]),
            }
            for distance, row in found[: request.top_k]
        ]}
'''

FOREIGN_TEST = """
from contextlib import asynccontextmanager

from acme_search import AcmeSearch
from qak_contract_tests import KnowledgeProviderContract


class TestAcmeSearch(KnowledgeProviderContract):
    waivers = {"response.score.direction": "Acme gives distances; its next version turns them round"}

    @asynccontextmanager
    async def open_provider(self, corpus):
        yield AcmeSearch([
            {"id": d.id, "owner": d.owner_id, "title": d.title, "text": d.text, "uri": d.uri, "metadata": d.metadata}
            for d in corpus.documents
        ])
"""


def run_pytest(folder: Path, *arguments: str, failing: bool = False) -> str:
    quiet = ("-p", "no:cacheprovider", "-p", "no:asyncio")  # pytest-asyncio, where installed, warns if not configured
    command = [sys.executable, "-W", "error", "-m", "pytest", *quiet, "-W", "error", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == int(failing), ended.stdout + ended.stderr
    return ended.stdout


def report_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_suite_judges_a_foreign_provider_and_reports(tmp_path: Path, monkeypatch, mode: str) -> None:
    (tmp_path / "installed" / "acme_search").mkdir(parents=True)
    (tmp_path / "installed" / "acme_search" / "__init__.py").write_text(FOREIGN_PROVIDER, encoding="utf-8")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "test_acme.py").write_text(FOREIGN_TEST, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))

    output = run_pytest(folder, f"--import-mode={mode}", "--qak-report", "reports/acme.json")

    assert f"{len(CLAUSES) - 1} passed, 1 waived" in output
    report = report_of(folder / "reports" / "acme.json")
    assert report["protocol_version"] == 1
    assert report["test_class"] == "test_acme.py::TestAcmeSearch"
    assert report["provider"] == {"key": "acme-search", "label": "Acme 企业搜索"}
    assert [clause["id"] for clause in report["clauses"]] == list(CLAUSES)
    assert [clause for clause in report["clauses"] if clause["outcome"] != "passed"] == [
        {
            "id": "response.score.direction",
            "outcome": "waived",
            "detail": "Acme gives distances; its next version turns them round",
        }
    ]
    assert report["summary"] == {
        "passed": len(CLAUSES) - 1,
        "failed": 0,
        "waived": 1,
        "total": len(CLAUSES),
        "not_run": 0,
    }


def test_report_of_several_contracts_is_a_list_with_their_failures(tmp_path: Path) -> None:
    (tmp_path / "test_both.py").write_text(
        f"""
import pytest
from qak_contract_tests import KnowledgeProviderContract, ReferenceProvider
from {WorstComesFirst.__module__} import WorstComesFirst

class TestRight(KnowledgeProviderContract):
    def open_provider(self, corpus):
        return ReferenceProvider.open(corpus)

class TestWrong(KnowledgeProviderContract):
    @pytest.fixture(autouse=True)
    def broken(self, request):
        assert "label" not in request.node.name, "a fixture that fails"

    def open_provider(self, corpus):
        return WorstComesFirst.open(corpus)

def test_of_something_else():
    pass
""",
        encoding="utf-8",
    )
    run_pytest(tmp_path, "--qak-report", "report.json", "-k", "best_document or label or something_else", failing=True)
    right, wrong = report_of(tmp_path / "report.json")
    assert right["summary"] == {"passed": 2, "failed": 0, "waived": 0, "total": 2, "not_run": len(CLAUSES) - 2}
    failed = {clause["id"]: clause["detail"] for clause in wrong["clauses"] if clause["outcome"] == "failed"}
    assert set(failed) == {"describe.label", "response.order"}
    assert failed["describe.label"] == "setup failed"
    assert failed["response.order"].startswith("'Larkspur approvers captain' must find 'release-approval' first, got")


def test_skipped_clause_is_reported_as_failed(tmp_path: Path) -> None:
    (tmp_path / "test_skipping.py").write_text(
        """
import pytest
from qak_contract_tests import KnowledgeProviderContract

class TestSkipping(KnowledgeProviderContract):
    def open_provider(self, corpus):
        pytest.skip("no server")
""",
        encoding="utf-8",
    )
    run_pytest(tmp_path, "--qak-report", "report.json", "-k", "label")
    (clause,) = report_of(tmp_path / "report.json")["clauses"]
    assert clause == {"id": "describe.label", "outcome": "failed", "detail": "call skipped"}


def test_plugin_leaves_other_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        """
import sys

def test_nothing_of_the_suite_is_loaded():
    assert "qak_contract_tests._plugin" in sys.modules
    assert not {"qak_core", "qak_contract_tests.contract", "qak_contract_tests.corpus"} & set(sys.modules)
""",
        encoding="utf-8",
    )
    assert "1 passed" in run_pytest(tmp_path)


README = Path(__file__).parents[1] / "README.md"


def test_example_of_the_readme_passes(tmp_path: Path) -> None:
    blocks = [block.partition("```")[0] for block in README.read_text(encoding="utf-8").split("```python\n")[1:]]
    provider, test = blocks[:2]
    (tmp_path / "my_search.py").write_text(provider, encoding="utf-8")
    (tmp_path / "test_my_search.py").write_text(test, encoding="utf-8")
    assert f"{len(CLAUSES)} passed" in run_pytest(tmp_path)


def test_readme_lists_every_clause_with_its_title() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in README.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    listed = {row[0].strip("`"): row[1] for row in rows}
    assert {clause_id: listed.get(clause_id) for clause_id in CLAUSES} == {
        clause_id: clause.title for clause_id, clause in CLAUSES.items()
    }
    assert str(len(CLAUSES)) in README.read_text(encoding="utf-8")
    assert str(len(CORPUS.documents)) in README.read_text(encoding="utf-8")
