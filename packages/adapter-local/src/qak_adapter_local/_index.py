"""The full-text index of one library or folder: derived data, rebuilt whenever it cannot be trusted.

One SQLite file. Each document has one row of its title and headings and one row a passage, all in one FTS5 table whose
words are made by ``qak_documents.keyword_tokens``, so that Chinese is found by pairs of characters.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import stat
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qak_adapter_local._errors import IndexDamaged
from qak_adapter_local._query import query_tokens
from qak_adapter_local._ranking import Ranked, head_row, passage_row, rows_of, score

_SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE documents (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, record TEXT NOT NULL
);
CREATE TABLE aliases (alias TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (alias, number)) WITHOUT ROWID;
CREATE INDEX aliases_by_number ON aliases (number);
CREATE TABLE passages (row INTEGER PRIMARY KEY, page INTEGER, section TEXT, text TEXT NOT NULL);
CREATE TABLE totals (rows INTEGER NOT NULL);
INSERT INTO totals (rows) VALUES (0);
CREATE VIRTUAL TABLE words USING fts5(
  title, headings, body, columnsize=0, tokenize="ascii tokenchars '_'"
);
CREATE VIRTUAL TABLE occurrences USING fts5vocab(words, instance);
"""
_MAX_TOKEN_CHARS = 64
_FOREIGN = re.compile("[^0-9a-z_\x80-\U0010ffff]")

_BUSY_TIMEOUT_S = 5.0
_IDLE_CONNECTIONS = 4

_File = tuple[int, int]  # device and number


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """One window of a document's text."""

    text: str
    page: int | None = None
    section: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What the index takes in of one document.

    Attributes:
        key: its name in the index.
        stamp: changes whenever the document does.
        record: what a search gives back, as plain JSON values.
        aliases: by which :meth:`Index.find` knows it.
        titles: names of the document, the words that count most.
        headings: all of them.
        passages: the text.
    """

    key: str
    stamp: str
    record: Mapping[str, Any]
    aliases: Sequence[str] = ()
    titles: Sequence[str] = ()
    headings: Sequence[str] = ()
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexHit:
    """A document that was found, with its best passage.

    Attributes:
        record: as it was put.
        score: above 0, at most 1.
        passage: ``None`` for a document without text.
        by_text: whether the passage holds a word of the query; else title or headings do, and it is the first one.
    """

    record: Mapping[str, Any]
    score: float
    passage: Passage | None
    by_text: bool


class Index:
    """Search and change one index file, from any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        """Name the file; it is opened when first needed."""
        self._path = path
        self._idle: deque[tuple[_File, sqlite3.Connection]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def create(self) -> None:
        """Start anew with an empty index; the caller holds the library's lock."""
        self.release()
        for suffix in ("-wal", "-shm", ""):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        with contextlib.closing(self._connect()) as connection:
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;")

    def stamps(self) -> dict[str, str]:
        """Return key and stamp of every document."""
        with self._connection() as connection:
            return dict(connection.execute("SELECT key, stamp FROM documents"))

    def count(self) -> int:
        """Return how many documents there are."""
        with self._connection() as connection:
            return int(connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def records(self) -> list[dict[str, Any]]:
        """Return the records of all documents, in the order they came."""
        with self._connection() as connection:
            rows = connection.execute("SELECT record FROM documents ORDER BY number").fetchall()
        return [_unsealed(record) for (record,) in rows]

    def find(self, aliases: Iterable[str]) -> list[str]:
        """Return the keys of the documents with one of these aliases."""
        found: dict[str, None] = {}
        with self._connection() as connection:
            for alias in aliases:
                query = "SELECT key FROM aliases JOIN documents USING (number) WHERE alias = ?"
                found.update((key, None) for (key,) in connection.execute(query, (alias,)))
        return list(found)

    def put(self, entry: Entry) -> None:
        """Add a document or replace the one with its key, at once for every reader."""
        title = _words(entry.titles)
        headings = _words(entry.headings)
        bodies = [_words([passage.text]) for passage in entry.passages]
        with self._connection() as connection, _transaction(connection):
            old = connection.execute("SELECT number FROM documents WHERE key = ?", (entry.key,)).fetchone()
            if old is not None:
                _delete(connection, old[0])
            number = connection.execute(
                "INSERT INTO documents (number, key, stamp, record) VALUES (?, ?, ?, ?)",
                (old and old[0], entry.key, entry.stamp, _sealed(entry.record)),
            ).lastrowid
            assert number is not None
            connection.executemany(
                "INSERT OR IGNORE INTO aliases (alias, number) VALUES (?, ?)",
                ((alias, number) for alias in entry.aliases),
            )
            connection.execute(
                "INSERT INTO words (rowid, title, headings) VALUES (?, ?, ?)", (head_row(number), title, headings)
            )
            for ordinal, (passage, body) in enumerate(zip(entry.passages, bodies, strict=True)):
                row = passage_row(number, ordinal, body.count(" ") + 1)
                connection.execute(
                    "INSERT INTO passages (row, page, section, text) VALUES (?, ?, ?, ?)",
                    (row, passage.page, passage.section, passage.text),
                )
                connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (row, body))
            connection.execute("UPDATE totals SET rows = rows + ?", (1 + len(bodies),))

    def remove(self, keys: Iterable[str]) -> None:
        """Remove documents; unknown keys are passed over."""
        with self._connection() as connection, _transaction(connection):
            for key in keys:
                old = connection.execute("SELECT number FROM documents WHERE key = ?", (key,)).fetchone()
                if old is not None:
                    _delete(connection, old[0])

    def search(self, query: str, limit: int, *, passages: bool) -> list[IndexHit]:
        """Return the best documents, or the best passages, in order.

        The score is the part of the highest possible one that was reached: above 0, at most 1, not comparable between
        queries.

        Args:
            query: any text; its question words are passed over.
            limit: hits at most.
            passages: whether one document may appear with several passages.
        """
        from qak_documents import keyword_tokens

        tokens = [_encoded(token) for token in query_tokens(query, keyword_tokens)]
        if not tokens or limit < 1:
            return []
        with self._connection() as connection:
            connection.execute("BEGIN")  # one state of the index for all that is read
            rows = connection.execute("SELECT CAST(total(rows) AS INTEGER) FROM totals").fetchone()[0]
            scores = score(connection, tokens, rows)
            ranked = scores.best_passages(limit) if passages else scores.best_documents(limit)
            hits = [_hit(connection, place, scores.highest) for place in ranked]
            connection.execute("COMMIT")
        return hits

    def release(self) -> None:
        """Close the connections that nobody uses; later calls open new ones."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for _, connection in idle:
            connection.close()

    def close(self) -> None:
        """Close for good; calls that are still running close their own connection."""
        self._closed = True
        self.release()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to the file that now has the index's name.

        Raises:
            IndexDamaged: it is missing, of another version, or SQLite cannot make sense of it.
            sqlite3.OperationalError: it is locked or the disk fails.
        """
        try:
            status = self._path.lstat()
        except FileNotFoundError:
            raise IndexDamaged("the file is missing") from None
        if not stat.S_ISREG(status.st_mode):  # what a link leads to is not ours to open
            raise IndexDamaged("it is no regular file")
        # Somebody may replace a damaged file at any time; its number stays taken while a connection to it is open.
        file = (status.st_dev, status.st_ino)
        connection = self._idle_connection(file) or self._checked_connection()
        with _closed_on_error(connection):
            yield connection
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append((file, connection))
                return
        connection.close()

    def _idle_connection(self, file: _File) -> sqlite3.Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                known, connection = self._idle.popleft()
            if known == file:
                return connection
            connection.close()

    def _checked_connection(self) -> sqlite3.Connection:
        connection = self._connect()
        with _closed_on_error(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != _SCHEMA_VERSION:
                raise IndexDamaged(f"version {version} instead of {_SCHEMA_VERSION}")
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        with _closed_on_error(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # derived data: a lost commit is found and made up for
            connection.execute("PRAGMA secure_delete = ON")
        return connection


def _sealed(record: Mapping[str, Any]) -> str:
    """Return a record as stored: SQLite would not notice a byte that the disk lost."""
    text = json.dumps(record)
    return f"{zlib.crc32(text.encode()):08x}{text}"


def _unsealed(stored: object) -> dict[str, Any]:
    """Return what was sealed.

    Raises:
        IndexDamaged: it is not that any more.
    """
    checksum, text = (stored[:8], stored[8:]) if isinstance(stored, str) else ("", "")
    if checksum != f"{zlib.crc32(text.encode()):08x}":
        raise IndexDamaged("a record is not as it was written")
    record: dict[str, Any] = json.loads(text)
    return record


def _hit(connection: sqlite3.Connection, ranked: Ranked, highest: float) -> IndexHit:
    """Read one hit; one by the title alone gets its document's first passage."""
    value, number, row = ranked
    found = connection.execute("SELECT record FROM documents WHERE number = ?", (number,)).fetchone()
    if found is None:
        raise IndexDamaged("a document is missing")
    passage = connection.execute(
        "SELECT CAST(text AS TEXT), page, section FROM passages WHERE row >= ? AND row <= ? ORDER BY row LIMIT 1",
        (row, row) if row is not None else rows_of(number),
    ).fetchone()
    return IndexHit(
        record=_unsealed(found[0]),
        score=min(value / highest, 1.0),
        passage=passage and Passage(text=passage[0], page=passage[1], section=passage[2]),
        by_text=row is not None,
    )


def _words(texts: Iterable[str]) -> str:
    from qak_documents import keyword_tokens

    return " ".join(_encoded(token) for text in texts for token in keyword_tokens(text))


def _encoded(token: str) -> str:
    """Return the token in characters that the index's tokenizer leaves alone."""
    return _FOREIGN.sub(lambda found: f"_{ord(found[0]):x}_", token[:_MAX_TOKEN_CHARS])


def _delete(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM words WHERE rowid = ?", (head_row(number),))
    connection.execute("DELETE FROM words WHERE rowid >= ? AND rowid <= ?", rows_of(number))
    deleted = connection.execute("DELETE FROM passages WHERE row >= ? AND row <= ?", rows_of(number)).rowcount
    connection.execute("UPDATE totals SET rows = rows - ?", (1 + deleted,))
    connection.execute("DELETE FROM aliases WHERE number = ?", (number,))
    connection.execute("DELETE FROM documents WHERE number = ?", (number,))


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close the connection when something fails, and tell damage of the file from all else."""
    try:
        yield
    except BaseException as error:
        connection.close()
        # SQLite may quote the damage itself in its message, which then is no Unicode.
        if isinstance(error, UnicodeDecodeError) or (isinstance(error, sqlite3.DatabaseError) and _is_damage(error)):
            raise IndexDamaged(str(error)) from None
        raise


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is to blame, rather than a lock, the disk or a full one."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # SQLITE_ERROR stands for a table that is gone, SQLITE_CONSTRAINT for tables that contradict each other.
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF in {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
    }
