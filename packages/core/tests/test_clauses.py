"""Each clause of the core has a test, and each test a clause that exists."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROTOCOL = HERE.parents[2] / "docs" / "protocol.md"

CLAUSES = """
provider.shape describe.version describe.key describe.label describe.capabilities describe.knowledge_bases
describe.frozen health.states close.once
request.query request.top_k request.knowledge_base_ids request.filters context.trusted context.signal
runtime.gate runtime.deadline runtime.soft_deadline runtime.in_flight runtime.breaker runtime.turn_citations
runtime.errors
response.shape response.fields response.id response.content response.dropped response.caps response.order
response.score response.metadata response.source response.budget response.json response.envelope
uri.public_only citation.fields citation.stable notice
registry.lazy registry.load registry.factory registry.direct
""".split()

SECTIONS = ["text", "tool", "errors", "management", "composition"]
"""Sections of the protocol that have no ids of their own."""


def clauses_of_tests():
    """Return file and test name to the clauses that its marks name, read from the source: no selection hides a test."""
    found = {}
    for path in sorted(HERE.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shared = {clause for node in tree.body if isinstance(node, ast.Assign) for clause in marked(node.value)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = {clause for decorator in node.decorator_list for clause in marked(decorator)}
                found[f"{path.relative_to(HERE)}::{node.name}"] = own | shared
    return found


def marked(node):
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.clause":
            yield from (ast.literal_eval(argument) for argument in call.args)


TESTS = clauses_of_tests()


@pytest.mark.clause("provider.shape")
def test_the_list_of_clauses_is_the_protocols():
    written = re.findall(r"^\| `([a-z_.]+)` \|", PROTOCOL.read_text(encoding="utf-8"), re.MULTILINE)
    assert [clause for clause in written if not clause.startswith("knowledge_")] == CLAUSES


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize("clause", [*CLAUSES, *SECTIONS])
def test_a_clause_is_proved_by_at_least_one_test(clause):
    assert any(clause in clauses for clauses in TESTS.values())


@pytest.mark.clause("provider.shape")
def test_no_test_names_a_clause_that_does_not_exist_or_none_at_all():
    unknown = defaultdict(set)
    for test, clauses in TESTS.items():
        unknown[test] |= clauses - {*CLAUSES, *SECTIONS}
        if not clauses:
            unknown[test].add("(none)")
    assert {test: clauses for test, clauses in unknown.items() if clauses} == {}


@pytest.mark.clause("provider.shape")
def test_every_module_of_the_core_has_its_tests():
    source = HERE.parent / "src" / "qak_core"
    expected = {
        path.parent.relative_to(source) / f"test_{path.stem.lstrip('_')}.py"
        for path in source.rglob("*.py")
        if path.stem != "__init__"
    }
    present = {path.relative_to(HERE) for path in HERE.rglob("test_*.py")}
    covered_elsewhere = {Path(f"test_{name}.py") for name in ("addresses", "admission", "answers", "exact", "texts")}
    assert expected - present == covered_elsewhere
