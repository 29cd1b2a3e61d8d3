"""What the library refuses, and what it never touches."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qak_adapter_local import DomainLibrary, LibraryError

OWNER = "owner-a"
Write = Callable[..., Path]


def code_of(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(LibraryError) as caught:
        call(*args)
    assert caught.value.message
    return caught.value.code


def owner_folder(library: DomainLibrary) -> Path:
    return next((library.directory / "owners").iterdir())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_process(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("owner_id", ["", "  ", None, 7])
def test_library_refuses_a_missing_owner(library: DomainLibrary, fees: Path, owner_id: Any) -> None:
    assert code_of(library.add, owner_id, fees) == "missing_owner"
    assert code_of(library.list, owner_id) == "missing_owner"
    assert code_of(library.remove, owner_id, "x") == "missing_owner"
    assert code_of(library.search, owner_id, "年费") == "missing_owner"


def test_library_refuses_what_is_no_regular_file(library: DomainLibrary, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert code_of(library.add, OWNER, tmp_path) == "not_a_file"
    assert code_of(library.add, OWNER, tmp_path / "pipe.md") == "not_a_file"
    assert code_of(library.add, OWNER, "/dev/zero") == "not_a_file"


def test_library_refuses_a_path_that_leads_nowhere(library: DomainLibrary, tmp_path: Path, fees: Path) -> None:
    (tmp_path / "loop.md").symlink_to(tmp_path / "loop.md")

    assert code_of(library.add, OWNER, tmp_path / "none.md") == "not_found"
    assert code_of(library.add, OWNER, fees / "below") == "not_found"
    assert code_of(library.add, OWNER, tmp_path / "loop.md") == "not_found"
    assert code_of(library.add, OWNER, tmp_path / ("x" * 5000)) == "invalid_path"
    assert not library.directory.exists()


def test_library_refuses_files_by_size_and_type(tmp_path: Path, write: Write) -> None:
    library = DomainLibrary(tmp_path / "library", max_bytes=1000)

    assert code_of(library.add, OWNER, write("empty.md", b"")) == "empty_file"
    assert code_of(library.add, OWNER, write("large.md", b"a" * 1001)) == "too_large"
    assert code_of(library.add, OWNER, write("program.exe", b"MZ\x90\x00")) == "unsupported_type"
    assert code_of(library.add, OWNER, write("picture.png", b"\x89PNG\r\n\x1a\n")) == "unsupported_type"
    assert library.add(OWNER, write("just.md", b"a" * 1000)).size_bytes == 1000
    library.close()


def test_library_refuses_a_file_that_cannot_be_converted(
    library: DomainLibrary, write: Write, make_pdf: Callable[..., bytes]
) -> None:
    whole = make_pdf([["Annual fee"]])

    assert code_of(library.add, OWNER, write("cut.pdf", whole[:60])) == "conversion_failed"
    assert code_of(library.add, OWNER, write("scan.pdf", make_pdf([[]]))) == "conversion_failed"
    assert code_of(library.add, OWNER, write("blank.md", " \n \n")) == "conversion_failed"
    assert library.list(OWNER) == []


def test_library_takes_forty_documents_and_refuses_the_next(library: DomainLibrary, write: Write) -> None:
    for number in range(40):
        library.add(OWNER, write(f"{number}.md", f"document {number}"))

    assert code_of(library.add, OWNER, write("40.md", "one too many")) == "library_full"
    library.add(OWNER, write("7.md", "document 7, second edition"))
    library.add("owner-b", write("40.md", "one too many"))
    library.remove(OWNER, library.list(OWNER)[0].id)
    library.add(OWNER, write("40.md", "one too many"))
    assert len(library.list(OWNER)) == 40


def test_library_says_copy_failed_and_keeps_nothing_when_the_disk_refuses(
    tmp_path: Path, fees: Path, write: Write
) -> None:
    large = write("large.md", "# Large\n\n" + "annual fee " * 40_000)
    done = in_process(
        """
        import resource, sys
        from qak_adapter_local import DomainLibrary, LibraryError
        library = DomainLibrary(sys.argv[1])
        kept = library.add("owner-a", sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # a disk with little room
        try:
            library.add("owner-a", sys.argv[3])
        except LibraryError as error:
            print(error.code)
        assert [document.id for document in library.list("owner-a")] == [kept.id]
        library.close()
        """,
        *(tmp_path / "library", fees, large),
    )

    assert (done.stdout, done.stderr) == ("copy_failed\n", "")
    assert not [
        name for name in tree(tmp_path / "library") if "large" in name or name.endswith((".tmp", "pending.json"))
    ]


def test_library_says_copy_failed_when_the_file_cannot_be_opened(tmp_path: Path, fees: Path) -> None:
    done = in_process(
        """
        import os, resource, sys
        from qak_adapter_local import DomainLibrary, LibraryError
        import qak_adapter_local.library
        library = DomainLibrary(sys.argv[1])
        free = os.dup(0); os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))
        try:
            library.add("owner-a", sys.argv[2])
        except LibraryError as error:
            print(error.code)
        """,
        *(tmp_path / "library", fees),
    )

    assert (done.stdout, done.stderr) == ("copy_failed\n", "")


def test_library_is_unavailable_where_its_directory_is_a_file(tmp_path: Path, fees: Path) -> None:
    library = DomainLibrary(fees)

    assert code_of(library.add, OWNER, fees) == "library_unavailable"
    assert code_of(library.search, OWNER, "年费") == "library_unavailable"
    assert code_of(library.list, OWNER) == "library_unavailable"
    assert fees.read_bytes()


def test_library_is_unavailable_once_closed(library: DomainLibrary, fees: Path) -> None:
    library.add(OWNER, fees)
    library.close()

    assert code_of(library.search, OWNER, "年费") == "library_unavailable"
    assert code_of(library.add, OWNER, fees) == "library_unavailable"


def test_library_refuses_its_own_copies_as_sources(library: DomainLibrary, fees: Path, tmp_path: Path) -> None:
    document = library.add(OWNER, fees)
    (tmp_path / "link.md").symlink_to(document.path)

    assert code_of(library.add, OWNER, document.path) == "invalid_path"
    assert code_of(library.add, "owner-b", tmp_path / "link.md") == "invalid_path"


@pytest.mark.parametrize("owner_id", ["../owner-a", "owner-a/..", "OWNER-A", "owner-a ", "ｏwner-a", "..", "/", "a\0b"])
def test_library_keeps_owners_apart_however_they_are_spelt(library: DomainLibrary, fees: Path, owner_id: str) -> None:
    mine = library.add(OWNER, fees)

    assert library.list(owner_id) == []
    assert library.search(owner_id, "年费") == []
    assert code_of(library.remove, owner_id, mine.id) == "not_found"
    library.add(owner_id, fees)
    library.remove(owner_id, library.list(owner_id)[0].id)
    assert [hit.document.id for hit in library.search(OWNER, "年费")] == [mine.id]
    assert {path.name for path in library.directory.iterdir()} == {"owners"}


@pytest.mark.parametrize("document_id", ["../records/x", "", "*", "0" * 16, "a" * 5000, "a\0b", "\udcff"])
def test_library_does_not_find_what_is_no_id(library: DomainLibrary, fees: Path, document_id: str) -> None:
    library.add(OWNER, fees)

    assert code_of(library.remove, OWNER, document_id) == "not_found"


def test_library_never_touches_files_that_are_not_its_own(library: DomainLibrary, fees: Path, write: Write) -> None:
    library.add(OWNER, fees)
    folder = owner_folder(library)
    foreign = [
        *(library.directory / "notes.md", folder / "notes.md", folder / "records" / "notes.json"),
        *(folder / "records" / "0123456789abcdef.json.bak", folder / "files" / fees.name, folder / "texts" / "x.md"),
        *(folder / "texts" / ".x.md.tmp", folder / "records" / ".notes.json.tmp"),
    ]
    for path in foreign:
        path.write_text("mine")

    library.add(OWNER, write(fees.name, "# Changed"))
    (folder / "index.db").write_bytes(b"garbage")
    library.search(OWNER, "年费")
    library.remove(OWNER, library.list(OWNER)[0].id)

    assert {path: path.read_text() for path in foreign} == dict.fromkeys(foreign, "mine")
    assert fees.exists()


def test_library_never_deletes_outside_when_a_record_was_tampered_with(
    library: DomainLibrary, fees: Path, tmp_path: Path
) -> None:
    document = library.add(OWNER, fees)
    victim = tmp_path / "victim.md"
    victim.write_text("mine")
    record = owner_folder(library) / "records" / f"{document.id}.json"
    values = json.loads(record.read_bytes())
    values["copy_name"] = f"../../../../{victim.name}"
    record.write_text(json.dumps(values))
    (owner_folder(library) / "pending.json").write_text(
        json.dumps(["../../../victim.md", str(victim), "files/../../x", 7])
    )
    library.close()

    again = DomainLibrary(library.directory)
    assert again.add(OWNER, fees).id != document.id
    again.remove(OWNER, document.id)
    assert len(again.list(OWNER)) == len(again.search(OWNER, "年费")) == 1
    again.close()

    assert victim.read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 1, "document": 7}', b'{"format": 2}'])
def test_library_passes_over_a_record_it_cannot_read(
    library: DomainLibrary, fees: Path, releases: Path, content: bytes
) -> None:
    broken, whole = library.add(OWNER, fees), library.add(OWNER, releases)
    library.close()
    (owner_folder(library) / "records" / f"{broken.id}.json").write_bytes(content)
    again = DomainLibrary(library.directory)

    again.remove(OWNER, whole.id)
    assert {document.id for document in again.list(OWNER)} == {broken.id}
    assert again.add(OWNER, fees).id != broken.id
    again.remove(OWNER, broken.id)
    assert [hit.document.name for hit in again.search(OWNER, "年费")] == [fees.name]
    assert len(again.list(OWNER)) == 1
    again.close()


@pytest.mark.parametrize(
    "change",
    [
        {"headings": None},
        {"headings": ["\ud800"]},
        {"copy_name": "a\0b"},
        {"sha256": 7},
        {"spans": [{"start": 0, "end": "x", "page": None, "section": None}]},
        {"spans": [{"start": 0, "end": 1, "page": 10**30, "section": None}]},
        {"spans": [{"start": 0, "end": 1, "page": None, "section": [1]}]},
        {"document": {"title": None}},
        {"document": {"name": {}}},
        {"document": {"added_at": 7}},
        {"document": {"id": "0123456789abcdef"}},
    ],
    ids=repr,
)
def test_library_passes_over_a_record_with_values_of_other_types(
    library: DomainLibrary, fees: Path, releases: Path, change: dict[str, Any]
) -> None:
    broken, whole = library.add(OWNER, fees), library.add(OWNER, releases)
    library.close()
    record = owner_folder(library) / "records" / f"{broken.id}.json"
    values = json.loads(record.read_bytes())
    document = {**values["document"], **change.get("document", {})}
    record.write_text(json.dumps({**values, **change, "document": document}))
    (owner_folder(library) / "index.db").unlink()

    again = DomainLibrary(library.directory)
    assert [document.id for document in again.list(OWNER)] == [whole.id]
    assert again.search(OWNER, "approves")[0].document.id == whole.id
    again.close()


def test_library_passes_over_a_record_that_is_nested_too_deeply(library: DomainLibrary, fees: Path) -> None:
    broken = library.add(OWNER, fees)
    library.close()
    (owner_folder(library) / "records" / f"{broken.id}.json").write_bytes(b"[" * 200_000)
    (owner_folder(library) / "pending.json").write_bytes(b"[" * 200_000)

    again = DomainLibrary(library.directory)
    assert again.add(OWNER, fees).id != broken.id
    again.close()


def test_library_never_waits_on_a_pipe_in_the_place_of_its_files(library: DomainLibrary, fees: Path) -> None:
    document = library.add(OWNER, fees)
    library.close()
    for path in (Path(document.path), owner_folder(library) / "pending.json"):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    (owner_folder(library) / "index.db").unlink()

    again = DomainLibrary(library.directory)
    with contextlib.suppress(LibraryError):
        again.search(OWNER, "收费")
    again.close()


def test_library_writes_through_no_link(library: DomainLibrary, fees: Path, tmp_path: Path) -> None:
    library.add(OWNER, fees)
    victim = tmp_path / "victim.md"
    victim.write_text("mine")
    (owner_folder(library) / ".pending.json.tmp").symlink_to(victim)
    fees.write_text("# Changed")

    assert code_of(library.add, OWNER, fees) == "copy_failed"
    library.add(OWNER, fees)

    assert victim.read_text() == "mine"


def test_library_does_not_follow_links_out_of_its_folders(library: DomainLibrary, fees: Path, tmp_path: Path) -> None:
    document = library.add(OWNER, fees)
    secret = tmp_path / "secret.md"
    secret.write_text("The vault code is 4711. " * 40)
    Path(document.path).unlink()
    Path(document.path).symlink_to(secret)
    (owner_folder(library) / "index.db").unlink()

    assert library.search(OWNER, "vault code") == []
    assert [hit.document.id for hit in library.search(OWNER, "收费")] == [document.id]
    library.remove(OWNER, document.id)
    assert secret.exists()


def test_library_does_not_use_a_link_in_the_place_of_an_owners_folder(
    library: DomainLibrary, fees: Path, tmp_path: Path
) -> None:
    library.add(OWNER, fees)
    folder = owner_folder(library)
    library.close()
    shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    again = DomainLibrary(library.directory)
    assert code_of(again.search, OWNER, "年费") == "library_unavailable"
    assert code_of(again.add, OWNER, fees) == "library_unavailable"
    again.close()


def test_library_is_closed_to_other_users(library: DomainLibrary, fees: Path) -> None:
    library.add(OWNER, fees)

    folders = [path for path in (library.directory, *library.directory.rglob("*")) if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    files = [path for folder in ("files", "texts", "records") for path in (owner_folder(library) / folder).iterdir()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
