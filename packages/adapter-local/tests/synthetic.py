"""A library of any size whose words are distributed as in real text (Zipf), for benchmarks and scaling tests."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from pathlib import Path

from qak_adapter_local import DomainLibrary

OWNER = "owner-a"
_SYLLABLES = "ka ru mi to ne sha lo vi be du fa gi".split()
_HAN_START = 0x4E00
_VOCABULARY = 20_000


class SyntheticText:
    """Sentences of invented Latin and Han words, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(_VOCABULARY)))

    def word(self) -> str:
        rank = bisect(self._weights, self._random.random() * self._weights[-1])
        if rank % 2:
            return chr(_HAN_START + rank % 2500) + chr(_HAN_START + 2500 + rank // 8)
        digits = (rank // 12**place % 12 for place in range(4))
        return "".join(_SYLLABLES[digit] for digit in digits)

    def words(self, count: int) -> list[str]:
        return [self.word() for _ in range(count)]

    def document(self) -> str:
        sections = (f"## {' '.join(self.words(4))}\n\n{' '.join(self.words(100))}." for _ in range(4))
        return f"# {' '.join(self.words(5))}\n\n" + "\n\n".join(sections)


def build_synthetic_library(directory: Path, documents: int) -> DomainLibrary:
    """Add that many documents of about 400 words for ``OWNER``, through the public face."""
    library = DomainLibrary(directory / "library", max_documents=documents)
    source = directory / "source"
    source.mkdir(parents=True)
    text = SyntheticText()
    for number in range(documents):
        path = source / f"document-{number}.md"
        path.write_text(text.document(), encoding="utf-8")
        library.add(OWNER, path)
    return library


def synthetic_queries(count: int, *, words: int = 6) -> list[str]:
    """Return queries of the same words, so that common ones are as common as in the documents."""
    text = SyntheticText(seed=2)
    return [" ".join(text.words(words)) for _ in range(count)]
