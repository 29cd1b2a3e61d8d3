"""What importing does and does not do, and that what is written for users runs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import qak_adapter_langchain

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]


def run(*arguments: object, cwd: Path) -> str:
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def test_package_exports_what_it_says() -> None:
    names = ["LangChainProvider", "LangChainRetriever", "LangChainSettings", "as_retriever", "create"]
    assert qak_adapter_langchain.__all__ == names
    assert all(hasattr(qak_adapter_langchain, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        qak_adapter_langchain.missing  # noqa: B018 - reading it is what is tested


AUDITED = """
import sys
sys.dont_write_bytecode = True
done = []

def audit(event, arguments):
    if event.startswith("socket.") and event != "socket.__new__":
        done.append((event, arguments))
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        done.append((event, arguments))
    if event in {"os.mkdir", "os.remove", "os.rename", "subprocess.Popen"}:
        done.append((event, arguments))

sys.addaudithook(audit)
"""


def test_importing_and_listing_loads_no_vendor_writes_no_file_and_opens_no_socket(tmp_path: Path) -> None:
    code = (
        AUDITED
        + """
from qak_core import list_adapters
assert "langchain" in {info.name for info in list_adapters()}
assert not [name for name in sys.modules if name.startswith("qak_adapter")]
import qak_adapter_langchain
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"langchain_core", "langsmith", "numpy", "pydantic"}
assert done == [], done
from qak_adapter_langchain import as_retriever
done = [(event, arguments) for event, arguments in done if arguments[1:] != (("::1", 0),)]  # urllib3 tries IPv6
assert "langchain_core.retrievers" in sys.modules
assert not [name for name in sys.modules if name.partition(".")[0] in {"chromadb", "qdrant_client", "faiss", "openai"}]
assert done == [], done
"""
    )
    run("-c", code, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_creating_a_provider_loads_only_its_vendor(tmp_path: Path) -> None:
    code = (
        AUDITED
        + """
import qak_adapter_langchain
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
qak_adapter_langchain.LangChainProvider(InMemoryVectorStore(DeterministicFakeEmbedding(size=8)))
done = [(event, arguments) for event, arguments in done if arguments[1:] != (("::1", 0),)]  # urllib3 tries IPv6
assert not [name for name in sys.modules if name.partition(".")[0] in {"chromadb", "qdrant_client", "faiss", "openai"}]
assert done == [], done
"""
    )
    run("-c", code, cwd=tmp_path)


def test_example_runs_offline(tmp_path: Path) -> None:
    printed = run(ROOT / "examples" / "langchain" / "main.py", cwd=tmp_path)
    assert "two approvers" in printed
    assert "https://docs.example.com/releases" in printed
    assert list(tmp_path.iterdir()) == []


def test_readme_names_every_argument_and_setting() -> None:
    rows = re.findall(r"^\| (`.+?) \|", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.M)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    arguments = set(inspect.signature(qak_adapter_langchain.LangChainProvider).parameters)
    settings = {field.name for field in dataclasses.fields(qak_adapter_langchain.LangChainSettings)}
    assert settings <= arguments <= named


def test_readme_runs_as_it_stands(tmp_path: Path) -> None:
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    snippets = [code for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "print(" in code]
    assert snippets
    for code in snippets:
        program = tmp_path / "snippet.py"
        program.write_text(code, encoding="utf-8")
        assert run(program, cwd=ROOT).strip()
