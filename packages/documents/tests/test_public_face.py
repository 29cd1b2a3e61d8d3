import re
import subprocess
import sys
from dataclasses import fields
from importlib import resources
from pathlib import Path

import qak_documents


def test_package_exports_exactly_its_documented_names() -> None:
    assert qak_documents.__all__ == [
        "Block",
        "BlockKind",
        "Chunk",
        "DamagedDocument",
        "Document",
        "DocumentError",
        "DocumentTooLarge",
        "EmptyDocument",
        "EncryptedDocument",
        "ExtractionLimits",
        "ExtractionTimedOut",
        "UnsupportedDocument",
        "chunk",
        "estimate_tokens",
        "extract",
        "keyword_tokens",
    ]
    assert all(hasattr(qak_documents, name) for name in qak_documents.__all__)


def test_package_is_typed() -> None:
    assert resources.files("qak_documents").joinpath("py.typed").is_file()


def test_import_loads_none_of_the_heavy_libraries() -> None:
    script = (
        "import sys, qak_documents; heavy = {'kreuzberg', 'charset_normalizer', 'snowballstemmer', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_readme_lines_run() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    result = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.splitlines() == ["1 会员手册 None 0 6", "0 20 ('会员手册',) ['会员', '员手', '手册']"]


def test_readme_tells_each_code_and_limit_with_its_default() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    for name in ("unsupported", "encrypted", "damaged", "too_large", "timed_out", "empty"):
        assert f"| `{name}` |" in readme
    for field in fields(qak_documents.ExtractionLimits):
        assert f"| `{field.name}` |" in readme
