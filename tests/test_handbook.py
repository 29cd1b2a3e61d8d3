"""The example handbook is what its README says: the demo and its questions stand on it."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kreuzberg import ExtractionConfig, extract_file_sync

HANDBOOK = Path(__file__).resolve().parents[1] / "examples" / "handbook"
DOCUMENTS = sorted((HANDBOOK / "documents").iterdir())
BINARIES = [path for path in DOCUMENTS if path.suffix in {".pdf", ".docx"}]


@cache
def extract(path: Path) -> tuple[str, list[str], int]:
    """Return the text, the headings and the number of pages (0 where the format has none) as a reader gets them."""
    config = ExtractionConfig(include_document_structure=True, output_format="markdown", use_cache=False)
    result = extract_file_sync(path, config=config)
    assert result.document is not None
    contents = [node["content"] for node in result.document["nodes"]]
    headings = [content["text"] for content in contents if content["node_type"] == "heading"]
    return result.content, headings, result.metadata.get("page_count") or 0


def is_chinese(text: str) -> bool:
    return len(re.findall(r"[\u4e00-\u9fff]", text)) > len(re.findall(r"[A-Za-z]+", text))


def source_of(binary: Path) -> str:
    return (HANDBOOK / "_sources" / f"{binary.name}.md").read_text(encoding="utf-8")


def test_handbook_has_documents_of_three_formats_in_two_languages() -> None:
    counts = Counter((path.suffix, is_chinese(extract(path)[0])) for path in DOCUMENTS)
    assert len(DOCUMENTS) >= 12
    assert set(counts) == {(suffix, chinese) for suffix in (".md", ".pdf", ".docx") for chinese in (True, False)}
    chinese = sum(count for (_, is_chinese), count in counts.items() if is_chinese)
    assert 0.4 <= chinese / len(DOCUMENTS) <= 0.6


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_handbook_document_has_a_title_and_sections(path: Path) -> None:
    _, headings, pages = extract(path)
    assert len(headings) >= 5
    assert pages >= 3 or path.suffix != ".pdf"


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: path.name)
def test_handbook_binary_gives_back_every_letter_and_heading_of_its_source(path: Path) -> None:
    text, headings, _ = extract(path)
    source = source_of(path)
    assert headings == re.findall(r"^#+ (.+)$", source, flags=re.MULTILINE)
    assert Counter(filter(str.isalpha, text)) == Counter(filter(str.isalpha, source))


def test_annual_fee_is_named_in_the_body_of_one_document_only() -> None:
    holders = [path for path in DOCUMENTS if "年费" in extract(path)[0]]
    assert [path.name for path in holders] == ["客户合同与退款.docx"]
    assert not any("年费" in name for path in DOCUMENTS for name in (path.name, *extract(path)[1]))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("发布手册.md", "发布需要两位审核人批准"),
        ("release-captain-guide.md", "Two reviewers approve a release"),
        ("客户合同与退款.docx", "自开通之日起 14 天内申请，年费全额退还"),
        ("on-call-escalation.pdf", "How fast to answer a page"),
    ],
)
def test_handbook_document_states_the_rule_a_demo_question_asks_for(name: str, rule: str) -> None:
    assert rule in extract(HANDBOOK / "documents" / name)[0]


def test_public_sources_are_https_pages_of_documents_that_exist() -> None:
    sources = tomllib.loads((HANDBOOK / "sources.toml").read_text(encoding="utf-8"))
    assert sources.keys() <= {path.name for path in DOCUMENTS}
    for source in sources.values():
        assert source["title"]
        assert urlsplit(source["url"])[:2] == ("https", "docs.example.com")


def test_make_binaries_reproduces_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, HANDBOOK / "make_binaries.py", tmp_path], check=True, timeout=60)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in BINARIES}
