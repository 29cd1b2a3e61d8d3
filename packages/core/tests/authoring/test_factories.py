import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from qak_core import SettingsError
from qak_core.authoring import load_targets, target_problems

pytestmark = pytest.mark.clause("registry.factory")

SECRET = "sk-planted-0123456789"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    retriever: str | None = None
    knowledge_bases: Mapping[str, str] = field(default_factory=dict)
    health: str | None = None
    key: str = "x"


@pytest.fixture(autouse=True)
def host(monkeypatch):
    def broken():
        raise RuntimeError(SECRET)

    module = ModuleType("hosts_module")
    vars(module).update(
        make=lambda: "made", number=7, Search=SimpleNamespace(make=lambda: "found"), broken=broken, nothing=lambda: None
    )
    monkeypatch.setitem(sys.modules, "hosts_module", module)
    return module


def load(**settings: Any):
    return load_targets(Settings(**settings), make=("retriever", "knowledge_bases"), resolve=("health",), subject="s")


@pytest.mark.parametrize("target", ["a:b", "a.b:c", "a:b.c", "_a1.b:_c", None])
def test_module_and_callable_are_accepted(target):
    assert target_problems(Settings(retriever=target), "retriever", "knowledge_bases") == []


@pytest.mark.parametrize("target", ["", "a", "a:", ":b", "a:b:c", "a.:b", "a:b()", "1a:b", "a b:c", "a:b\n"])
def test_what_is_no_module_and_callable_is_named(target):
    settings = Settings(retriever=target, knowledge_bases={"kb": target})
    names = [
        problem.partition(": expected 'module:callable', got ")[0]
        for problem in target_problems(settings, "retriever", "knowledge_bases")
    ]
    assert names == ["retriever", "knowledge_bases.kb"]


def test_objects_are_made_or_resolved_in_place_of_names(host):
    bases = {"a": "hosts_module:Search.make", "b": "hosts_module:make"}
    assert load(retriever="hosts_module:make", knowledge_bases=bases, health="hosts_module:broken") == {
        "retriever": "made",
        "knowledge_bases": {"a": "found", "b": "made"},
        "health": host.broken,
        "key": "x",
    }
    assert load() == {"retriever": None, "knowledge_bases": {}, "health": None, "key": "x"}


def test_every_target_that_fails_is_told_by_its_class_alone():
    bases = {
        "a": "no_such_module_here:make",
        "b": "hosts_module:missing",
        "c": "hosts_module:broken",
        "d": "hosts_module:nothing",
    }
    with pytest.raises(SettingsError) as caught:
        load(retriever="hosts_module:number", knowledge_bases=bases, health="hosts_module:number")
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)
    told = {
        "retriever": "must be callable, got int",
        "knowledge_bases.a": "cannot be imported, it raised ModuleNotFoundError",
        "knowledge_bases.b": "cannot be imported, it raised AttributeError",
        "knowledge_bases.c": "raised RuntimeError",
        "knowledge_bases.d": "returned nothing",
        "health": "must be callable, got int",
    }
    for problem, (name, text) in zip(caught.value.problems, told.items(), strict=True):
        assert problem.startswith(f"{name}: ")
        assert text in problem
