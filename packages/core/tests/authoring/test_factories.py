import sys
from types import ModuleType, SimpleNamespace

import pytest

from qak_core.authoring import make_target, named_targets, resolve_target, target_problems

pytestmark = pytest.mark.clause("registry.factory")


@pytest.fixture(autouse=True)
def host(monkeypatch):
    module = ModuleType("hosts_module")
    vars(module).update(make=lambda: "made", number=7, Search=SimpleNamespace(make=lambda: "found"))

    def broken():
        raise RuntimeError("sk-planted-0123456789")

    module.broken = broken
    monkeypatch.setitem(sys.modules, "hosts_module", module)


def test_targets_are_named_by_their_settings():
    settings = SimpleNamespace(retriever="a:b", health=None, knowledge_bases={"x": "c:d", "y": "e:f"})
    assert named_targets(settings, "retriever", "health", "knowledge_bases") == {
        "retriever": "a:b",
        "knowledge_bases.x": "c:d",
        "knowledge_bases.y": "e:f",
    }


@pytest.mark.parametrize("target", ["a:b", "a.b:c", "a:b.c", "_a1.b:_c"])
def test_module_and_callable_are_accepted(target):
    assert target_problems({"retriever": target}) == []


@pytest.mark.parametrize("target", ["", "a", "a:", ":b", "a:b:c", "a.:b", "a:b()", "1a:b", "a b:c", "a:b\n"])
def test_what_is_no_module_and_callable_is_named(target):
    (problem,) = target_problems({"retriever": target})
    assert problem.startswith("retriever: expected 'module:callable', got")


def test_target_is_resolved_or_made():
    problems = []
    assert resolve_target("health", "hosts_module:make", problems)() == "made"
    assert make_target("retriever", "hosts_module:make", problems) == "made"
    assert make_target("retriever", "hosts_module:Search.make", problems) == "found"
    assert problems == []


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("no_such_module_here:make", "ModuleNotFoundError"),
        ("hosts_module:missing", "AttributeError"),
        ("hosts_module:number", "must be callable, got int"),
        ("hosts_module:broken", "raised RuntimeError"),
    ],
)
def test_target_that_fails_is_a_problem_told_by_its_class_alone(target, told):
    problems = []
    assert make_target("retriever", target, problems) is None
    (problem,) = problems
    assert problem.startswith("retriever: ")
    assert told in problem
    assert "planted" not in problem
