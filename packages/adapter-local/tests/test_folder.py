"""A directory searched in place."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from qak_adapter_local import DomainLibrary, FolderLibrary, LibraryError, _folder, open_folder
from qak_adapter_local._errors import IndexDamaged
from qak_adapter_local._files import open_below
from qak_adapter_local._index import Index

SECRET = "# Vault\n\nThe zugzwang code is 4711.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "handbook"
    (root / "finance").mkdir(parents=True)
    (root / "release.md").write_text("# Release approval\n\nTwo reviewers approve a release.\n")
    (root / "finance" / "收费.md").write_text("# 收费规定\n\n## 标准\n\n白金卡的年费为三百元。\n")
    return root


@contextmanager
def opened(root: Path, **options: Any) -> Iterator[FolderLibrary]:
    folder = open_folder(root, **{"refresh_interval_s": 0.0, **options})
    try:
        yield folder
    finally:
        folder.close()


def found(folder: FolderLibrary, query: str) -> list[str]:
    return [Path(hit.document.path).relative_to(folder.root).as_posix() for hit in folder.search(query)]


def state(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in (root, *root.rglob("*"))}


def test_folder_is_searched_in_place_and_not_written_to(root: Path) -> None:
    before = state(root)

    with opened(root) as folder:
        assert found(folder, "年费") == ["finance/收费.md"]
        assert found(folder, "reviewers") == ["release.md"]
        [hit] = folder.search("年费")
        assert (hit.section, hit.document.source_path) == ("标准", str(root / "finance" / "收费.md"))
        assert [document.name for document in folder.documents()] == ["收费.md", "release.md"]

    assert state(root) == before


def test_folder_follows_changes(root: Path) -> None:
    with opened(root) as folder:
        ids = {document.name: document.id for document in folder.documents()}
        (root / "release.md").write_text("# Release approval\n\nOne captain approves it.\n")
        (root / "lamp.md").write_text("# Lamp\n\nThe heliotrope lamp.\n")
        (root / "finance" / "收费.md").unlink()

        assert found(folder, "captain") == ["release.md"]
        assert found(folder, "reviewers") == []
        assert found(folder, "heliotrope") == ["lamp.md"]
        assert found(folder, "年费") == []
        assert {document.name: document.id for document in folder.documents()}["release.md"] == ids["release.md"]
        os.rename(root / "lamp.md", root / "finance" / "lamp.md")
        assert found(folder, "heliotrope") == ["finance/lamp.md"]


def test_folder_looks_for_changes_only_now_and_then(root: Path) -> None:
    with opened(root, refresh_interval_s=3600) as folder:
        (root / "lamp.md").write_text("# Lamp\n\nThe heliotrope lamp.\n")

        assert found(folder, "heliotrope") == []
        folder.refresh()
        assert found(folder, "heliotrope") == ["lamp.md"]


def test_folder_is_never_left_by_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "vault.md").write_text(SECRET)
    (root / "vault.md").symlink_to(outside / "vault.md")
    (root / "more").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to(root)
    os.link(outside / "vault.md", root / "hardlink.md")

    with opened(root) as folder:
        assert found(folder, "zugzwang") == ["hardlink.md"]
        assert len(folder.documents()) == 3


@pytest.mark.parametrize("swapped", ["release.md", "finance"])
def test_folder_is_not_left_when_a_link_is_put_in_place_of_what_was_seen(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "收费.md").write_text(SECRET)
    target = tmp_path / "outside" if swapped == "finance" else tmp_path / "outside" / "收费.md"
    scan = FolderLibrary._scan

    def scan_then_swap(folder: FolderLibrary) -> dict[str, str]:
        seen = scan(folder)
        os.rename(root / swapped, tmp_path / "aside")
        (root / swapped).symlink_to(target)
        return seen

    monkeypatch.setattr(FolderLibrary, "_scan", scan_then_swap)
    with opened(root, refresh_interval_s=3600) as folder:
        assert folder.search("zugzwang") == []
        assert [problem.code for problem in folder.problems] in (["invalid_path"], ["copy_failed"])


def test_file_is_opened_through_no_link_in_any_part_of_its_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "deep" / "vault.md").write_text(SECRET)
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "finance" / "link.md").symlink_to(tmp_path / "outside" / "deep" / "vault.md")

    for name in ("link/deep/vault.md", "finance/link.md"):
        with pytest.raises(OSError):
            open_below(root, name, os.O_RDONLY)
    os.close(open_below(root, "finance/收费.md", os.O_RDONLY))


def test_folder_passes_over_what_is_hidden_or_no_document(root: Path) -> None:
    for name in (".hidden.md", ".git/config.md", "~$release.docx", "tool.py", "picture.png", "noextension"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(SECRET)
    os.mkfifo(root / "pipe.md")
    with suppress(OSError):  # not every disk takes a name that is no text
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.md")).write_text(SECRET)

    with opened(root) as folder:
        assert len(folder.documents()) == 2
        assert folder.problems == ()


def test_folder_reports_a_broken_file_and_searches_the_rest(
    root: Path, make_pdf: Callable[..., bytes], make_docx: Callable[..., bytes]
) -> None:
    (root / "manual.pdf").write_bytes(make_pdf([["Introduction"], ["The heliotrope lamp"]]))
    (root / "broken.pdf").write_bytes(make_pdf([["Lost"]])[:70])
    (root / "合同.docx").write_bytes(make_docx([("Heading1", "退款条款"), ("", "七日内可以全额退款。")]))
    (root / "empty.md").write_bytes(b"")
    (root / "large.txt").write_text("a" * 200_000)
    calls: list[tuple[int, int, str]] = []

    with opened(root, max_file_bytes=100_000, on_progress=lambda *call: calls.append(call)) as folder:
        problems = {problem.name: problem.code for problem in folder.problems}
        assert problems == {"broken.pdf": "conversion_failed", "empty.md": "empty_file", "large.txt": "too_large"}
        assert all(problem.message for problem in folder.problems)
        assert found(folder, "heliotrope") == ["manual.pdf"]
        assert found(folder, "全额退款") == ["合同.docx"]
        assert [call[:2] for call in calls] == [(done, 7) for done in range(1, 8)]
        assert {call[2] for call in calls} >= {"broken.pdf", "finance/收费.md"}
        (root / "broken.pdf").write_bytes(make_pdf([["Mended at last"]]))
        assert found(folder, "mended") == ["broken.pdf"]
        assert "broken.pdf" not in {problem.name for problem in folder.problems}


@pytest.mark.parametrize("bound", [{"max_files": 1}, {"max_total_bytes": 70}])
def test_folder_says_when_it_is_too_large(root: Path, bound: dict[str, int]) -> None:
    with opened(root, **bound) as folder:
        assert len(folder.documents()) == 1
        [problem] = folder.problems
        assert (problem.name, problem.code) == (".", "too_large")


def test_folder_reads_the_rest_when_one_file_is_larger_than_all_may_be(root: Path) -> None:
    with open(root / "0.md", "wb") as sparse:
        sparse.truncate(1 << 40)
    folder = open_folder(root, max_file_bytes=10_000, max_total_bytes=20_000)

    assert [(problem.name, problem.code) for problem in folder.problems] == [("0.md", "too_large")]
    assert folder.search("年费")
    folder.close()


def test_folder_keeps_its_index_where_it_is_told(root: Path, tmp_path: Path) -> None:
    read: list[str] = []
    options = {"index_directory": tmp_path / "index", "on_progress": lambda done, total, name: read.append(name)}
    with opened(root, **options):
        assert sorted(read) == ["finance/收费.md", "release.md"]
    read.clear()
    (root / "release.md").write_text("# Release approval\n\nOne captain approves it.\n")

    with opened(root, **options) as folder:
        assert read == ["release.md"]
        assert found(folder, "年费") == ["finance/收费.md"]
    moved = root.rename(tmp_path / "renamed")
    read.clear()
    with opened(moved, **options) as folder:
        assert read == []
        assert folder.search("年费")[0].document.path == str(moved / "finance" / "收费.md")
    moved.rename(root)
    next((tmp_path / "index").glob("index.db")).write_bytes(b"garbage" * 1000)
    with opened(root, **options) as folder:
        assert found(folder, "年费") == ["finance/收费.md"]
        (tmp_path / "index" / "index.db").write_bytes(b"garbage" * 1000)
        (tmp_path / "index" / "index.db-wal").unlink(missing_ok=True)
        assert found(folder, "年费") == ["finance/收费.md"]


def test_folder_is_read_again_once_however_many_searches_find_its_index_damaged(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    waited: set[int] = set()
    seen = threading.Barrier(2)
    search, convert = Index.search, _folder.convert

    def search_together(index: Index, *args: Any, **options: Any) -> Any:
        try:
            return search(index, *args, **options)
        except IndexDamaged:
            if threading.get_ident() not in waited:
                waited.add(threading.get_ident())
                seen.wait(30)  # until the other has seen it, too
            raise

    def convert_and_count(content: bytes, name: str) -> Any:
        read.append(name)
        return convert(content, name)

    with opened(root, index_directory=tmp_path / "index", refresh_interval_s=3600) as folder:
        monkeypatch.setattr(Index, "search", search_together)
        monkeypatch.setattr(_folder, "convert", convert_and_count)
        (tmp_path / "index" / "index.db").unlink()

        with ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(lambda query: found(folder, query), ("年费", "reviewers")))

    assert answers == [["finance/收费.md"], ["release.md"]]
    assert sorted(read) == ["finance/收费.md", "release.md"]


def test_folder_leaves_nothing_behind(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())

    with opened(root):
        assert len(set(tmp_path.iterdir()) - before) == 1

    assert set(tmp_path.iterdir()) == before


def test_folder_of_a_library_keeps_its_index_in_the_library(library: DomainLibrary, root: Path) -> None:
    folder = library.open_folder(f"'{root}'")

    assert found(folder, "年费") == ["finance/收费.md"]
    assert len(list((library.directory / "folders").iterdir())) == 1
    folder.close()


def test_folder_refuses_a_path_that_no_disk_takes(tmp_path: Path) -> None:
    with pytest.raises(LibraryError) as caught:
        open_folder(tmp_path / ("x" * 5000))

    assert caught.value.code == "not_found"


def test_folder_refuses_a_path_that_is_no_folder(root: Path) -> None:
    for path, code in (
        (root / "none", "not_found"),
        (root / "release.md", "invalid_path"),
        ("http://x/", "invalid_path"),
    ):
        with pytest.raises(LibraryError) as caught:
            open_folder(path)
        assert caught.value.code == code
    with pytest.raises(LibraryError) as caught:
        open_folder(root, index_directory=root / "finance" / "index")
    assert caught.value.code == "invalid_path"
    assert not (root / "finance" / "index").exists()


def test_folder_is_unavailable_once_it_is_gone_or_closed(root: Path, tmp_path: Path) -> None:
    with opened(root) as folder:
        os.rename(root, tmp_path / "elsewhere")
        with pytest.raises(LibraryError) as caught:
            folder.search("年费")
        assert caught.value.code == "library_unavailable"
    with pytest.raises(LibraryError) as caught:
        folder.search("年费")
    assert caught.value.code == "library_unavailable"


def test_folder_stops_reading_when_it_is_closed(root: Path) -> None:
    for number in range(300):
        (root / f"{number}.md").write_text(f"# Document {number}\n\nText.\n")
    folder = open_folder(root.parent / "handbook" / "finance", refresh_interval_s=0.0)
    folder.root = root
    started = threading.Event()
    failure: list[LibraryError] = []

    def refresh() -> None:
        try:
            folder.refresh(lambda done, total, name: started.set())
        except LibraryError as error:
            failure.append(error)

    thread = threading.Thread(target=refresh)
    thread.start()
    assert started.wait(30)
    folder.close()
    thread.join(30)

    assert [error.code for error in failure] == ["library_unavailable"]
