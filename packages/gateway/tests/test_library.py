"""`qak library` and `qak search --library`, with the local adapter."""

import json
import re
from pathlib import Path

import pytest

RULE = "# 发布手册\n\n## 审批\n\n发布需要两位审核人批准。\n"


@pytest.fixture
def library(tmp_path: Path, qak):
    """Run `qak` with a library of its own in `tmp_path`, switched on."""
    settings = f'[provider]\nadapter = "local"\ndirectory = "{(tmp_path / "library").as_posix()}"\nsummary = false\n'
    (tmp_path / "qak.toml").write_text(settings, "utf-8")
    (tmp_path / "rule.md").write_text(RULE, "utf-8")
    return qak


def test_added_document_is_listed_found_and_removed(library, tmp_path: Path) -> None:
    added = library("library", "add", "rule.md")
    assert (added.code, added.err) == (0, "")
    verb, document_id, title = added.out.rstrip("\n").split("\t")
    assert (verb, title) == ("added", "发布手册")
    assert library("library", "list").out.split("\t")[:3] == [document_id, "发布手册", "rule.md"]
    assert "1. 发布手册" in library("search", "审核人").out
    removed = library("library", "remove", document_id)
    assert (removed.code, removed.out) == (0, f"removed\t{document_id}\n")
    assert (tmp_path / "rule.md").exists()
    assert library("library", "list").code == 1
    assert library("search", "审核人").code == 1


def test_adding_goes_on_after_a_failure_and_ends_with_3(library, tmp_path: Path) -> None:
    (tmp_path / "empty.md").touch()
    ran = library("library", "add", "missing.md", "rule.md", "empty.md", ".")
    assert ran.code == 3
    assert ran.out.startswith("added\t")
    assert len(ran.out.splitlines()) == 1
    long = library("library", "add", "x" * 300 + ".md", "line\nqak: forged.md", "rule.md")
    assert long.code == 3
    assert long.out.startswith("added\t")
    assert "x.md: invalid_path" in long.err
    assert "\nqak: forged" not in long.err
    for said in ("missing.md: not_found", "empty.md: empty_file", ".: not_a_file"):
        assert said in ran.err


def test_documents_are_kept_apart_by_owner(library) -> None:
    library("library", "add", "rule.md", "--owner", "ada")
    assert library("library", "list", "--owner", "bob").code == 1
    assert library("search", "审核人", "--owner", "bob").code == 1
    assert library("search", "审核人", "--owner", "ada").code == 0


def test_removing_what_is_not_there_is_exit_code_1(library) -> None:
    ran = library("library", "remove", "no\x1b[2Jsuch")
    assert ran.code == 1
    assert "qak library list" in ran.err
    assert "\x1b" not in ran.err


def test_files_are_found_from_the_working_directory_not_from_that_of_the_configuration(library, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.md").write_text("# Other\n\ntext\n", "utf-8")
    ran = library("library", "add", "other.md", "rule.md", "--config", "../qak.toml", cwd=elsewhere)
    assert ran.code == 3
    assert "Other" in ran.out
    assert "rule.md: not_found" in ran.err


def test_library_of_the_environment_needs_no_configuration(qak, tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text(RULE, "utf-8")
    own = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "QWEN_AUDIO_DOMAIN_LIBRARY": "on"}
    assert qak("library", "add", "rule.md", **own).code == 0
    assert qak("search", "审核人", **own).code == 0
    assert "adapter local" in qak("doctor", "--query", "审核人", **own).out


def test_library_that_is_a_folder_cannot_be_managed(qak, tmp_path: Path) -> None:
    (tmp_path / "qak.toml").write_text('[provider]\nadapter = "local"\nfolder = "."\n', "utf-8")
    ran = qak("library", "list")
    assert ran.code == 2
    assert "folder" in ran.err


def test_adding_shows_a_progress_bar_on_a_terminal(library, qak_on_terminal) -> None:
    ran = qak_on_terminal("library", "add", "rule.md", "missing.md")
    assert ran.code == 3
    assert "adding" in ran.out
    assert "发布手册" in ran.out
    assert "not_found" in ran.out
    assert "adding" not in library("library", "add", "rule.md").out


def test_search_in_a_folder_gives_passages_and_leaves_it_as_it_was(qak, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "rule.md").write_text(RULE, "utf-8")
    before = sorted(folder.rglob("*"))
    ran = qak("search", "谁来批准发布", "--library", "texts", "--json")
    answer = json.loads(ran.out)
    assert "两位审核人" in answer["results"][0]["content"]
    assert answer["results"][0]["source"]["locator"].startswith(str(folder.resolve()))
    assert answer["citations"] == []
    assert sorted(folder.rglob("*")) == before


def test_search_in_a_folder_warns_of_files_that_cannot_be_read(qak, tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text(RULE, "utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing\n")
    ran = qak("search", "审核人", "--library", ".")
    assert ran.code == 0
    assert "broken.pdf" in ran.err


def test_search_in_a_folder_waits_for_the_reading_longer_than_for_a_retrieval(qak, tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text(RULE, "utf-8")
    (tmp_path / "qak.toml").write_text("[runtime]\ntimeout_s = 0.001\n", "utf-8")
    assert qak("search", "审核人", "--library", ".").code == 0


def test_words_in_a_folder_are_highlighted_on_a_terminal(qak_on_terminal, tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text(RULE, "utf-8")
    ran = qak_on_terminal("search", "批准", "--library", ".")
    assert re.search(r"\x1b\[1;33m批准", ran.out)
