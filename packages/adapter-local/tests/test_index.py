"""The index: what it finds, that it cannot be lost, and what a query may cost."""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from qak_adapter_local import DomainLibrary
from qak_adapter_local._errors import IndexDamaged
from qak_adapter_local._index import Entry, Index, Passage
from qak_adapter_local._query import MAX_QUERY_TOKENS, query_tokens
from qak_documents import keyword_tokens

OWNER = "owner-a"


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index(tmp_path / "index.db")
    index.create()
    return index


def entry(key: str, *texts: str, title: str = "", stamp: str = "1") -> Entry:
    return Entry(
        key=key,
        stamp=stamp,
        record={"key": key},
        titles=[title],
        passages=[Passage(text=text, page=number) for number, text in enumerate(texts, 1)],
    )


def keys(index: Index, query: str, limit: int = 8) -> list[str]:
    return [hit.record["key"] for hit in index.search(query, limit, passages=False)]


def damage_garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage" * 4096)


def damage_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_tail(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_version(path: Path) -> None:
    path.unlink()
    other = Index(path)
    other.create()
    with other._connection() as connection:
        connection.execute("PRAGMA user_version = 999")
    other.close()


def damage_link(path: Path) -> None:
    other = path.with_name("elsewhere.db")
    path.rename(other)
    path.symlink_to(other)


def damage_rows(sql: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(sql)
            connection.commit()

    damage.__name__ = sql
    return damage


DAMAGES = [
    *(damage_garbage, damage_half, damage_tail, damage_empty, damage_missing, damage_version, damage_link),
    damage_rows("UPDATE documents SET record = replace(record, 'title', 'titel')"),
    damage_rows("UPDATE documents SET record = x'ff00'"),
    damage_rows("UPDATE documents SET number = number + 100"),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("while_open", [True, False], ids=["while open", "between runs"])
def test_library_rebuilds_its_index_when_it_is_damaged(
    library: DomainLibrary, fees: Path, releases: Path, damage: Callable[[Path], None], while_open: bool
) -> None:
    ids = {library.add(OWNER, path).id for path in (fees, releases)}
    [path] = library.directory.rglob("index.db")
    if while_open:
        library.search(OWNER, "年费")
        damage(path)
        path.with_name("index.db-wal").unlink(missing_ok=True)
        used = library
    else:
        library.close()
        damage(path)
        used = DomainLibrary(library.directory)

    assert {document.id for document in used.list(OWNER)} == ids
    assert [hit.document.name for hit in used.search(OWNER, "年费")] == [fees.name]
    assert [hit.document.name for hit in used.search(OWNER, "captain")] == [releases.name]
    assert used.add(OWNER, fees).id in ids
    used.close()


def test_library_rebuilds_an_index_whose_words_are_gone(library: DomainLibrary, fees: Path, releases: Path) -> None:
    library.add(OWNER, fees)
    library.close()
    [path] = library.directory.rglob("index.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE words")
        connection.commit()
    again = DomainLibrary(library.directory)

    again.add(OWNER, releases)

    assert [hit.document.name for hit in again.search(OWNER, "年费")] == [fees.name]
    assert [hit.document.name for hit in again.search(OWNER, "captain")] == [releases.name]
    again.close()


def test_library_survives_a_foreign_write_ahead_log(library: DomainLibrary, fees: Path) -> None:
    document = library.add(OWNER, fees)
    library.close()
    [path] = library.directory.rglob("index.db")
    path.with_name("index.db-wal").write_bytes(b"garbage" * 5000)

    again = DomainLibrary(library.directory)

    assert [hit.document.id for hit in again.search(OWNER, "年费")] == [document.id]
    again.close()


def test_library_finds_documents_of_a_lost_text_by_their_title(
    library: DomainLibrary, fees: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = library.add(OWNER, fees)
    Path(document.path).unlink()
    next(library.directory.rglob("index.db")).unlink()

    assert [hit.document.id for hit in library.search(OWNER, "收费规定")] == [document.id]
    assert library.search(OWNER, "白金卡") == []
    assert document.id in caplog.text


@pytest.mark.parametrize("seed", range(12))
def test_library_survives_bytes_of_its_index_that_the_disk_lost(
    library: DomainLibrary, fees: Path, releases: Path, seed: int
) -> None:
    lost = random.Random(seed)
    documents = {library.add(OWNER, path).id for path in (fees, releases)}
    library.close()
    path = next((library.directory / "owners").iterdir()) / "index.db"
    content = bytearray(path.read_bytes())
    for _ in range(lost.choice((1, 20, 300))):
        content[lost.randrange(len(content))] = lost.randrange(256)
    path.write_bytes(content)

    again = DomainLibrary(library.directory)
    for query in ("年费", "approves a release"):  # what is found may be less, but nothing raises
        assert {hit.document.id for hit in again.search(OWNER, query)} <= documents
    assert {document.id for document in again.list(OWNER)} == documents
    again.close()


def test_library_rebuilds_an_index_whose_tables_contradict_each_other(library: DomainLibrary, fees: Path) -> None:
    library.add(OWNER, fees)
    library.close()
    damage_rows("DELETE FROM documents")(next(library.directory.rglob("index.db")))

    again = DomainLibrary(library.directory)
    assert len(again.search(OWNER, "年费")) == 1
    again.close()


def test_index_that_is_a_link_leaves_the_other_file_alone(library: DomainLibrary, fees: Path, tmp_path: Path) -> None:
    library.add(OWNER, fees)
    library.close()
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    before = other.read_bytes()
    path = next((library.directory / "owners").iterdir()) / "index.db"
    path.unlink()
    path.symlink_to(other)

    again = DomainLibrary(library.directory)
    assert len(again.search(OWNER, "年费")) == 1
    again.close()

    assert other.read_bytes() == before


def test_index_says_when_it_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged):
        Index(tmp_path / "none.db").count()


def test_index_reads_the_file_that_has_its_name_also_after_one_that_was_replaced_meanwhile(
    index: Index, tmp_path: Path
) -> None:
    index.put(entry("old", "zeppelin"))
    other = Index(tmp_path / "index.db")  # of another process

    with index._connection():  # a search that takes long
        other.create()
        other.put(entry("new", "bicycle"))
        assert index.stamps().keys() == {"new"}

    assert [list(index.stamps()) for _ in range(3)] == [["new"]] * 3
    index.close()
    other.close()


def test_index_replaces_and_removes_without_a_trace(index: Index, tmp_path: Path) -> None:
    index.put(entry("a", "zeppelin over the lake", "second passage", title="Old"))
    index.put(entry("a", "bicycle", title="New", stamp="2"))
    index.put(entry("b", "tricycle"))

    assert keys(index, "zeppelin") == keys(index, "old") == keys(index, "second") == []
    assert keys(index, "bicycle new") == ["a"]
    assert index.stamps() == {"a": "2", "b": "1"}
    index.remove(["a", "unknown"])
    index.remove(["b"])
    assert keys(index, "bicycle tricycle new") == []
    with index._connection() as connection:
        assert connection.execute("SELECT rows FROM totals").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM occurrences").fetchone() == (0,)
    index.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("白金卡持有人的年费为三百元", "年费"),
        ("Mit freundlichen Grüßen", "GRÜSSE grüßen"),
        ("gpt-4 and v2.1 in snake_case of C++ and C#", "gpt-4"),
        ("gpt-4 and v2.1 in snake_case of C++ and C#", "v2.1"),
        ("gpt-4 and v2.1 in snake_case of C++ and C#", "snake_case"),
        ("gpt-4 and v2.1 in snake_case of C++ and C#", "C++"),
        ("Les années suivantes", "ANNÉES"),
        ("годовая плата", "плата"),
        ("연회비는 면제됩니다", "연회비"),
        ("ＡＢＣ１２３", "abc123"),
    ],
)
def test_index_finds_words_of_any_script(index: Index, text: str, query: str) -> None:
    index.put(entry("a", text))
    index.put(entry("b", "something else entirely"))

    assert keys(index, query) == ["a"]
    index.close()


def test_index_prefers_documents_with_more_of_the_query(index: Index) -> None:
    index.put(entry("one", "approval approval approval approval", "approval once more"))
    index.put(entry("two", "approval of a release", "unrelated"))
    index.put(entry("apart", "approval", "release"))

    assert set(keys(index, "release approval", 2)) == {"two", "apart"}
    assert keys(index, "release approval")[-1] == "one"
    index.close()


def test_index_gives_the_passage_that_fits_best(index: Index) -> None:
    index.put(
        entry("a", "introduction to lamps", "the heliotrope lamp charges in the sun", "index of lamps", title="Lamps")
    )

    [hit] = index.search("heliotrope lamp", 1, passages=True)
    assert (hit.passage and hit.passage.page, hit.by_text) == (2, True)
    [hit] = index.search("heliotrope", 1, passages=False)
    assert (hit.passage and hit.passage.page, hit.by_text) == (2, True)
    index.put(entry("b", "first words", "more words", title="Zeppelin"))
    [hit] = index.search("zeppelin", 1, passages=True)
    assert (hit.passage and hit.passage.page, hit.by_text) == (1, False)
    index.close()


def test_query_tokens_are_bounded_and_distinct() -> None:
    assert query_tokens("a-" * 5_000_000, lambda text: [str(len(text))]) == ["10000"]
    tokens = query_tokens(" ".join(f"word{number} word{number}" for number in range(500)), keyword_tokens)

    assert len(tokens) == len(set(tokens)) == MAX_QUERY_TOKENS


def test_index_answers_common_words_together_in_any_size(index: Index) -> None:
    for number in range(1200):
        index.put(entry(f"alpha-{number}", "alpha company policy"))
    for number in range(1200):
        index.put(entry(f"beta-{number}", "beta company policy"))
    index.put(entry("both", "alpha and beta company policy"))
    index.put(entry("titled", "company policy", title="Company policy"))

    assert keys(index, "alpha beta", 1) == ["both"]
    assert keys(index, "company policy", 1) == ["titled"]
    assert len(keys(index, "company")) == 8
    index.close()


def test_index_query_costs_grow_less_than_the_library(tmp_path: Path, synthetic: SimpleNamespace) -> None:
    text = synthetic.SyntheticText()
    medians = []
    for size in (400, 4000):
        index = Index(tmp_path / f"{size}.db")
        index.create()
        for number in range(size):
            index.put(entry(str(number), " ".join(text.words(60))))
        spent = []
        for query in synthetic.synthetic_queries(60):
            start = time.thread_time()
            index.search(query, 5, passages=False)
            spent.append(time.thread_time() - start)
        medians.append(statistics.median(spent))
        index.close()

    assert medians[1] < 6 * medians[0]  # ten times the documents
