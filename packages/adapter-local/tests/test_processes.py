"""Several processes at one library, and processes that die."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from qak_adapter_local import DomainLibrary

OWNER = "owner-a"
_DYING = """
    import os, signal, sys
    from qak_adapter_local import DomainLibrary, _files, _shelf
    import qak_adapter_local._index

    left = int(sys.argv[4])

    def dying(call):
        def wrapped(*args, **kwargs):
            global left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)
        return wrapped

    # Every step by which an add or a removal changes the disk.
    _shelf.write_durably = dying(_shelf.write_durably)
    _files.sync_folder = _shelf.sync_folder = dying(_files.sync_folder)
    qak_adapter_local._index.Index.put = dying(qak_adapter_local._index.Index.put)
    qak_adapter_local._index.Index.remove = dying(qak_adapter_local._index.Index.remove)
    os.unlink = dying(os.unlink)
    library = DomainLibrary(sys.argv[1])
    if sys.argv[2] == "add":
        library.add("owner-a", sys.argv[3])
    else:
        library.remove("owner-a", sys.argv[3])
    library.close()
"""


def run(script: str, *args: object) -> int:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.run(command, timeout=60, check=False, stdin=subprocess.DEVNULL).returncode


def assert_whole(library: DomainLibrary) -> None:
    """Each document listed can be found and read, and no other file of ours is there."""
    documents = library.list(OWNER)
    [folder] = (library.directory / "owners").iterdir()
    for document in documents:
        text = Path(document.path).read_text(encoding="utf-8")
        assert document.title in text
        assert document.id in {hit.document.id for hit in library.search(OWNER, text[-40:], 8)}
    for part in ("records", "files", "texts"):
        assert len(list((folder / part).iterdir())) == len(documents)
    assert {path.name for path in folder.iterdir()} - {"index.db-wal", "index.db-shm"} == {
        *("records", "files", "texts", "lock", "index.db")
    }


@pytest.mark.parametrize("step", range(1, 16))
def test_library_is_whole_after_a_process_was_killed_while_adding(
    tmp_path: Path, write: Callable[..., Path], step: int
) -> None:
    library = DomainLibrary(tmp_path / "library")
    library.add(OWNER, write("kept.md", "# Kept\n\nA zeppelin over the lake."))
    changed = library.add(OWNER, write("changed.md", "# Before\n\nThe first edition has a bicycle."))
    path = write("changed.md", "# After\n\nThe second edition has a tricycle.")

    code = run(_DYING, library.directory, "add", path, step)

    assert code in {0, -signal.SIGKILL}
    for used in (library, DomainLibrary(library.directory)):  # one that was open all the time, and a new one
        document = next(document for document in used.list(OWNER) if document.id == changed.id)
        expected = {"Before": "bicycle", "After": "tricycle"}[document.title]
        assert [hit.document.id for hit in used.search(OWNER, "bicycle tricycle", 8)] == [changed.id]
        assert [hit.document.id for hit in used.search(OWNER, expected, 8)] == [changed.id]
        used.close()
    again = DomainLibrary(library.directory)
    assert_whole(again)
    assert again.add(OWNER, path).id == changed.id
    assert_whole(again)
    again.close()


@pytest.mark.parametrize("step", range(1, 9))
def test_library_is_whole_after_a_process_was_killed_while_removing(tmp_path: Path, fees: Path, step: int) -> None:
    library = DomainLibrary(tmp_path / "library")
    document = library.add(OWNER, fees)
    library.close()

    run(_DYING, library.directory, "remove", document.id, step)

    again = DomainLibrary(library.directory)
    again.search(OWNER, "年费")
    assert_whole(again)
    again.close()


def test_library_takes_documents_from_two_processes_at_once(tmp_path: Path) -> None:
    adding = """
        import sys
        from pathlib import Path
        from qak_adapter_local import DomainLibrary, LibraryError
        library, name = DomainLibrary(sys.argv[1], max_documents=24), sys.argv[2]
        full = 0
        for number in range(16):
            path = Path(sys.argv[1]).parent / f"{name}-{number}.md"
            path.write_text(f"# {name} {number}\\n\\nWritten by {name}, unlike any other: {name}{number}x.")
            try:
                library.add("owner-a", path)
            except LibraryError as error:
                assert error.code == "library_full", error
                full += 1
            assert library.search("owner-a", "written") != []
        library.close()
        sys.exit(full)
    """
    command = [sys.executable, "-c", textwrap.dedent(adding), str(tmp_path / "library")]
    processes = [subprocess.Popen([*command, name]) for name in ("north", "south")]

    refused = [process.wait(timeout=60) for process in processes]

    assert sum(refused) == 32 - 24
    library = DomainLibrary(tmp_path / "library")
    assert len(library.list(OWNER)) == 24
    assert_whole(library)
    library.close()


def test_library_makes_one_document_when_two_processes_add_the_same(tmp_path: Path, fees: Path) -> None:
    adding = """
        import sys
        from qak_adapter_local import DomainLibrary
        library = DomainLibrary(sys.argv[1])
        for _ in range(8):
            library.add("owner-a", sys.argv[2])
        library.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(adding), str(tmp_path / "library"), str(fees)]
    processes = [subprocess.Popen(command) for _ in range(2)]

    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    library = DomainLibrary(tmp_path / "library")
    assert len(library.list(OWNER)) == 1
    assert_whole(library)
    library.close()


def test_library_sees_at_once_what_another_process_does(
    library: DomainLibrary, fees: Path, write: Callable[..., Path]
) -> None:
    library.add(OWNER, fees)
    other = """
        import sys
        from qak_adapter_local import DomainLibrary
        library = DomainLibrary(sys.argv[1])
        library.remove("owner-a", library.list("owner-a")[0].id)
        library.add("owner-a", sys.argv[2])
        library.close()
    """

    assert run(other, library.directory, write("lamp.md", "# Lamp\n\nThe heliotrope lamp.")) == 0

    assert library.search(OWNER, "年费") == []
    assert [hit.document.name for hit in library.search(OWNER, "heliotrope")] == ["lamp.md"]
