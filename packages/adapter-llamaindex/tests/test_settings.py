"""Making a provider from settings, and what importing the package does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qak_adapter_llamaindex
from qak_adapter_llamaindex import LlamaIndexProvider, LlamaIndexSettings, create
from qak_core import SettingsError, create_provider, list_adapters

HOST = """
closed = []

class Retriever:
    def __init__(self, text):
        self.text = text
    def retrieve(self, query):
        node = type("Node", (), {})()
        node.node_id, node.metadata = self.text, {"owner": "alice", "kind": "lamp"}
        node.get_content = lambda metadata_mode: self.text
        return [node]

class Search:
    @staticmethod
    def retriever():
        return Retriever("lamp")

def chairs():
    return Retriever("chair")

def healthy():
    return {"status": "degraded", "message": "slow"}

def close():
    closed.append(True)

def broken():
    raise RuntimeError("sk-planted-9f8e7d6c5b4a")

def nothing():
    return None

number = 7
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "qak_llamaindex_host.py").write_text(HOST)
    monkeypatch.syspath_prepend(tmp_path)
    yield "qak_llamaindex_host"
    sys.modules.pop("qak_llamaindex_host", None)


def test_settings_make_a_provider(host: str, retrieve: Callable[..., Any]) -> None:
    provider = create_provider(
        "llamaindex",
        {
            "retriever": f"{host}:Search.retriever",
            "knowledge_bases": {"chairs": f"{host}:chairs"},
            "key": "shop",
            "label": "Shop",
            "score": "similarity",
            "filters": {"type": "eq", "key": "kind", "value": "lamp"},
            "owner_key": "owner",
            "citation_keys": {"title": "kind"},
            "health": f"{host}:healthy",
            "aclose": f"{host}:close",
            "max_workers": 2,
        },
    )
    assert isinstance(provider, LlamaIndexProvider)
    assert (provider.describe().key, provider.describe().label) == ("shop", "Shop")
    (result,) = retrieve(provider).results
    assert (result.content, result.source.title) == ("lamp", "lamp")
    assert [r.content for r in retrieve(provider, knowledge_base_ids=("chairs",)).results] == ["chair"]
    assert retrieve(provider, owner_id="bob").results == []


def problems(settings: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as caught:
        create(settings)
    assert "sk-planted" not in str(caught.value)
    assert caught.value.__context__ is None
    return "\n".join(caught.value.problems)


def test_every_problem_of_a_type_is_reported_at_once() -> None:
    found = problems({"retreiver": "a:b", "knowledge_bases": ["x"], "max_workers": "8", "score": "cosine", "key": 7})
    for name in ("retreiver", "did you mean 'retriever'", "knowledge_bases", "max_workers", "score", "key"):
        assert name in found


def test_every_problem_of_a_value_is_reported_at_once() -> None:
    found = problems(
        {
            "retriever": "no dots here",
            "knowledge_bases": {"chairs": "also:not:one"},
            "max_workers": 0,
            "owner_key": "",
            "citation_keys": {"titel": "x"},
            "filters": {"department": "sales"},
        }
    )
    for name in ("retriever:", "knowledge_bases.chairs:", "max_workers:", "owner_key:", "citation_keys:", "filters:"):
        assert name in found


def test_nothing_to_ask_is_a_problem() -> None:
    assert "retriever or knowledge_bases is required" in problems({})
    assert LlamaIndexSettings(knowledge_bases={"a": "b:c"}).retriever is None


def test_every_callable_that_can_not_be_used_is_reported_at_once(host: str) -> None:
    found = problems(
        {
            "retriever": f"{host}:broken",
            "knowledge_bases": {
                "a": "no_such_module_anywhere:make",
                "b": f"{host}:no_such_name",
                "c": f"{host}:number",
                "d": f"{host}:nothing",
            },
            "health": f"{host}:number",
        }
    )
    assert found.count("\n") == 5
    for text in (
        f"retriever: calling {host}:broken raised RuntimeError",
        "ModuleNotFoundError",
        "AttributeError",
        "got int",
    ):
        assert text in found


# Importing.

AUDIT = """
import json, sys
events = []
def audit(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or event.startswith("socket."):
        events.append(f"{event} {arguments[0]}")
sys.addaudithook(audit)
from qak_core import create_provider, list_adapters
[info] = [info for info in list_adapters() if info.name == "llamaindex"]
listed = "qak_adapter_llamaindex" in sys.modules
import qak_adapter_llamaindex as package
package.LlamaIndexProvider, package.LlamaIndexSettings, package.create
light = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
before = list(events)
package.as_retriever
heavy = "llama_index" in {name.partition(".")[0] for name in sys.modules}
found = {"problem": info.problem, "listed": listed, "light": light, "heavy": heavy, "events": before, "later": events}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-B", "-W", "error", "-c", AUDIT]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=home, env={"HOME": str(home)})
    assert ran.stderr == ""
    assert list(home.iterdir()) == []
    return json.loads(ran.stdout)


def test_listing_adapters_imports_nothing_of_this_one(audited: dict[str, Any]) -> None:
    assert not audited["listed"]
    assert audited["problem"] == ""


def test_importing_the_package_imports_no_llamaindex_until_a_retriever_is_wanted(audited: dict[str, Any]) -> None:
    vendor = ("llama", "numpy", "nltk", "PIL", "sqlalchemy", "pydantic", "httpx", "requests", "networkx")
    assert not [name for name in audited["light"] if name.startswith(vendor)]
    assert audited["heavy"]


def test_importing_writes_no_file_and_opens_no_socket(audited: dict[str, Any]) -> None:
    assert audited["events"] == []
    reaching_out = ("open", "socket.connect", "socket.getaddrinfo", "socket.sendto")  # of LlamaIndex's own import
    assert not [event for event in audited["later"] if event.startswith(reaching_out)]


def test_adapter_is_found_by_its_name() -> None:
    (info,) = (info for info in list_adapters() if info.name == "llamaindex")
    assert (info.distribution, info.target) == ("qak-adapter-llamaindex", "qak_adapter_llamaindex:create")


def test_public_names_are_these() -> None:
    names = {"KnowledgeRetriever", "LlamaIndexProvider", "LlamaIndexSettings", "as_retriever", "create"}
    assert set(qak_adapter_llamaindex.__all__) == names
    for name in names:
        assert callable(getattr(qak_adapter_llamaindex, name))
    with pytest.raises(AttributeError):
        _ = qak_adapter_llamaindex.nothing  # type: ignore[attr-defined]
