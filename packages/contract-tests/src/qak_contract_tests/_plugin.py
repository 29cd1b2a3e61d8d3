"""The pytest plugin: shows waived clauses, and writes the report that ``--qak-report`` asks for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_PROPERTY = "qak_contract"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("qak", "knowledge-provider contract")
    group.addoption("--qak-report", metavar="PATH", help="write the outcome of every contract clause to PATH as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Collect the outcomes where the report is written, which under xdist is the controller."""
    path = config.getoption("--qak-report")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(Path(path)), "qak-report")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put a clause's outcome on its report, where xdist carries it along."""
    report = yield
    clause = getattr(getattr(item, "function", None), "qak_clause", None)
    if clause is None or (report.when != "call" and not report.failed):
        return report
    outcome = getattr(getattr(item, "instance", None), "qak_outcome", None)
    if outcome is None or (report.failed and outcome.outcome != "failed"):
        found: dict[str, Any] = {"outcome": "failed", "detail": f"{report.when} {report.outcome}", "provider": {}}
    else:
        found = {"outcome": outcome.outcome, "detail": outcome.detail, "provider": dict(outcome.provider)}
    found |= {"id": clause.id, "test_class": item.nodeid.rpartition("::")[0]}
    report.user_properties.append((_PROPERTY, json.dumps(found)))
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Show a waived clause as waived."""
    if report.when == "call" and report.passed and (_found(report) or {}).get("outcome") == "waived":
        return "waived", "w", ("WAIVED", {"yellow": True})
    return None


class _Report:
    """Gathers outcomes, and writes them when the run ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, dict[str, dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (found := _found(report)) is not None:
            self._found.setdefault(found.pop("test_class"), {})[found["id"]] = found

    def pytest_sessionfinish(self) -> None:
        reports = [_contract(test_class, found) for test_class, found in self._found.items()]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(reports[0] if len(reports) == 1 else reports, ensure_ascii=False, indent=2)
        self._path.write_text(f"{text}\n", encoding="utf-8")


def _found(report: pytest.TestReport) -> dict[str, Any] | None:
    found = dict(report.user_properties).get(_PROPERTY)
    return json.loads(found) if isinstance(found, str) else None


def _contract(test_class: str, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from qak_contract_tests.clauses import CLAUSES
    from qak_core import PROTOCOL_VERSION

    known = [found[clause_id] for clause_id in CLAUSES if clause_id in found]
    provider = next((entry["provider"] for entry in known if entry["provider"]), {"key": "", "label": ""})
    counts = Counter(entry["outcome"] for entry in known)
    return {
        "protocol_version": PROTOCOL_VERSION,
        "test_class": test_class,
        "provider": provider,
        "clauses": [{name: entry[name] for name in ("id", "outcome", "detail")} for entry in known],
        "summary": {
            **{outcome: counts[outcome] for outcome in ("passed", "failed", "waived")},
            "total": len(known),
            "not_run": len(CLAUSES) - len(known),
        },
    }
