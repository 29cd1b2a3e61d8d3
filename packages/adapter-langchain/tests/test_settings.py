"""From ``qak.toml`` to a provider."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from qak_adapter_langchain import create
from qak_core import AdapterInfo, SettingsError, create_provider, list_adapters

from ._vendors import bm25, found, in_memory
from .test_provider import DOCUMENTS


@pytest.fixture
def factories(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_retrievers")
    module.make = lambda: in_memory(DOCUMENTS)  # type: ignore[attr-defined]
    module.words = lambda: bm25(DOCUMENTS)  # type: ignore[attr-defined]
    module.broken = lambda: 1 / 0  # type: ignore[attr-defined]
    module.nothing = lambda: object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_retrievers", module)


@pytest.mark.usefixtures("factories")
def test_adapter_is_found_by_its_name_and_created_from_settings() -> None:
    (info,) = (info for info in list_adapters() if info.name == "langchain")
    assert isinstance(info, AdapterInfo)
    provider = create_provider(
        "langchain",
        {
            "retriever": "my_retrievers:make",
            "key": "handbook",
            "label": "Handbook",
            "score": "similarity",
            "filters": {"type": "gte", "key": "n", "value": 5},
            "citation_keys": {"title": "headline"},
            "run_in_thread": True,
        },
    )
    assert provider.describe().key == "handbook"
    assert all(result.metadata["n"] >= 5 for result in found(provider, "lamp"))


@pytest.mark.usefixtures("factories")
def test_knowledge_bases_each_have_a_factory() -> None:
    provider = create({"knowledge_bases": {"vectors": "my_retrievers:make", "words": "my_retrievers:words"}})
    assert [base.id for base in provider.describe().knowledge_bases] == ["vectors", "words"]
    assert {result.id.partition(":")[0] for result in found(provider, "lamp")} == {"vectors", "words"}


@pytest.mark.usefixtures("factories")
@pytest.mark.parametrize(
    ("settings", "problems"),
    [
        ({}, ["retriever or knowledge_bases is required"]),
        ({"retriever": "no colon"}, ["retriever: expected 'module:callable'"]),
        (
            {"retreiver": "a:b", "score": "best", "max_workers": "8", "filters": 5},
            ["did you mean 'retriever'", "score: expected one of", "max_workers: expected a whole number"],
        ),
        (
            {"retriever": "my_retrievers:broken", "knowledge_bases": {"a": "no_such_module:make", "b": "x"}},
            ["knowledge_bases.b: expected 'module:callable'"],
        ),
        (
            {"retriever": "my_retrievers:broken", "knowledge_bases": {"a": "no_such_module:make"}},
            ["raised ZeroDivisionError", "knowledge_bases.a: no_such_module:make", "ModuleNotFoundError"],
        ),
        ({"retriever": "my_retrievers:missing"}, ["it raised AttributeError"]),
        ({"retriever": "my_retrievers:nothing"}, ["expected a retriever with ainvoke"]),
        (
            {"retriever": "my_retrievers:make", "first_page": 3, "citation_keys": {"page": "p"}},
            ["first_page: expected 0 or 1", "citation_keys: 'page' is no field of a source"],
        ),
        ({"retriever": "my_retrievers:make", "filters": {"n": 1}}, ["filters: a filter's type must be one of"]),
        ({"retriever": "my_retrievers:make", "max_workers": 0}, ["max_workers: expected 1 to 64"]),
    ],
)
def test_settings_are_refused_with_every_problem(settings: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        create(settings)
    for problem in problems:
        assert any(problem in found for found in caught.value.problems), caught.value.problems
    assert caught.value.__cause__ is None
