"""Which documents and passages fit a query best: BM25F over the occurrences of its rarer tokens."""

from __future__ import annotations

import heapq
import math
import sqlite3
from collections.abc import Iterable, Sequence
from operator import itemgetter

# BM25F: how much a word counts by where it stands, and the usual two constants.
_WEIGHTS = {"title": 4.0, "headings": 2.0, "body": 1.0}
_HEAD_WEIGHT = 0.5  # of title and headings beside the text
_SATURATION = 1.2
_LENGTH_EFFECT = 0.75
_USUAL_TOKENS = 200.0  # of a passage; its length is bounded, so a constant does for the average

_MAX_OCCURRENCES = 1_000  # read for one query, so that its cost does not grow with the library
_MAX_TOGETHER = 3
_FREQUENCY = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
_OCCURRENCES = "SELECT doc, col FROM occurrences WHERE term = ? LIMIT ?"
_TOGETHER = "SELECT rowid, iif(rowid < 0, 'title', 'body') FROM words WHERE words MATCH ? LIMIT ?"

# A row's number says all that ranking needs, so that no other table is read for each occurrence. Rows of titles and
# headings are below 0: they come first where only the beginning of a long list is read.
_LENGTH_BITS = 4
_ORDINAL_BITS = 20
_LENGTH_STEP = 32  # tokens
_LENGTH_MASK = (1 << _LENGTH_BITS) - 1
_NUMBER_SHIFT = _ORDINAL_BITS + _LENGTH_BITS
_SATURATION_BY_LENGTH = [
    _SATURATION * (1 - _LENGTH_EFFECT + _LENGTH_EFFECT * (length + 0.5) * _LENGTH_STEP / _USUAL_TOKENS)
    for length in range(_LENGTH_MASK + 1)
]

Ranked = tuple[float, int, int | None]
"""Score, document and passage; no passage where only the title or a heading matched."""


def head_row(number: int) -> int:
    """Return the row of a document's title and headings."""
    return -number


def passage_row(number: int, ordinal: int, tokens: int) -> int:
    """Return the row of a document's passage: its number, place and, roughly, length."""
    length = min(tokens // _LENGTH_STEP, _LENGTH_MASK)
    return ((number << _ORDINAL_BITS) + ordinal << _LENGTH_BITS) + length


def rows_of(number: int) -> tuple[int, int]:
    """Return the lowest and the highest row that a passage of the document can have."""
    return passage_row(number, 0, 0), passage_row(number + 1, 0, 0) - 1


def score(connection: sqlite3.Connection, tokens: Sequence[str], rows: int) -> Scores:
    """Read the occurrences of the query's tokens, rare ones first, and weigh them.

    A token too common to be read whole is passed over: it tells little, and reading it would make a query slower the
    larger the library is. Where all are, the first rows that hold the rarest of them together are taken.
    """
    frequencies = sorted(
        (connection.execute(_FREQUENCY, (f'"{token}"', _MAX_OCCURRENCES + 1)).fetchone()[0], position, token)
        for position, token in enumerate(tokens)
    )
    scores = Scores()
    left = _MAX_OCCURRENCES
    common: list[tuple[float, str]] = []
    for frequency, _, token in frequencies:
        rarity = math.log(1 + (max(rows - frequency, 0) + 0.5) / (frequency + 0.5))
        scores.highest += rarity * (_SATURATION + 1)
        if frequency > left:
            common.append((rarity, token))
        elif frequency:
            occurrences = connection.execute(_OCCURRENCES, (token, left)).fetchall()
            left -= len(occurrences)
            scores.add(rarity, occurrences)
    while common and not scores:
        together = " AND ".join(f'"{token}"' for _, token in common[:_MAX_TOGETHER])
        found = connection.execute(_TOGETHER, (together, _MAX_OCCURRENCES)).fetchall()
        # The text of a document whose title says it all may lie beyond the limit: its title stands for both.
        scores.add(sum(rarity for rarity, _ in common[:_MAX_TOGETHER]), found, head_weight=1 + 1 / _HEAD_WEIGHT)
        common = common[:_MAX_TOGETHER][:-1]
    return scores


class Scores:
    """What the tokens read so far are worth, by document and by passage."""

    def __init__(self) -> None:
        self.highest = 0.0
        self._heads: dict[int, float] = {}  # by document: its title and headings
        self._best: dict[int, float] = {}  # by document: for each token its best passage
        self._passages: dict[int, float] = {}  # by row

    def __bool__(self) -> bool:
        return bool(self._heads or self._passages)

    def add(self, rarity: float, occurrences: Iterable[tuple[int, str]], *, head_weight: float = 1.0) -> None:
        """Count the occurrences of one token, each a row and a column."""
        weights: dict[int, float] = {}
        for row, column in occurrences:
            weights[row] = weights.get(row, 0.0) + _WEIGHTS[column]
        best: dict[int, float] = {}
        for row, weight in weights.items():
            if row < 0:
                value = head_weight * rarity * (_SATURATION + 1) * weight / (weight + _SATURATION)
                self._heads[-row] = self._heads.get(-row, 0.0) + value
                continue
            value = rarity * (_SATURATION + 1) * weight / (weight + _SATURATION_BY_LENGTH[row & _LENGTH_MASK])
            self._passages[row] = self._passages.get(row, 0.0) + value
            if value > best.get(row >> _NUMBER_SHIFT, 0.0):
                best[row >> _NUMBER_SHIFT] = value
        for number, value in best.items():
            self._best[number] = self._best.get(number, 0.0) + value

    def best_passages(self, limit: int) -> list[Ranked]:
        """Rank passages; title and headings count for each passage of their document."""
        ranked: list[Ranked] = [
            (self._total(value, row >> _NUMBER_SHIFT), row >> _NUMBER_SHIFT, row)
            for row, value in self._passages.items()
        ]
        ranked += [(self._total(0.0, number), number, None) for number in self._heads if number not in self._best]
        return heapq.nlargest(limit, ranked, key=itemgetter(0))

    def best_documents(self, limit: int) -> list[Ranked]:
        """Rank documents, each with its best passage."""
        totals = {number: self._total(self._best.get(number, 0.0), number) for number in self._heads | self._best}
        ranked = heapq.nlargest(limit, totals.items(), key=itemgetter(1))
        rows: dict[int, int | None] = {number: None for number, _ in ranked}
        values = dict.fromkeys(rows, 0.0)
        for row, value in self._passages.items():
            number = row >> _NUMBER_SHIFT
            if number in rows and value > values[number]:
                rows[number], values[number] = row, value
        return [(total, number, rows[number]) for number, total in ranked]

    def _total(self, text: float, number: int) -> float:
        return (text + _HEAD_WEIGHT * self._heads.get(number, 0.0)) / (1 + _HEAD_WEIGHT)
