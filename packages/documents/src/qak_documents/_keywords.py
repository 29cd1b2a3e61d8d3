"""Words of a text as a keyword index stores them."""

import re
import threading
import unicodedata
from functools import lru_cache

from qak_documents._tokens import CJK

_WORD = rf"[^\W{CJK}]+"
_TOKEN = re.compile(rf"([{CJK}]+)|({_WORD}(?:[-.'’]{_WORD})*(?:\+\+|#)?)")
_PART = re.compile(r"[^\W_]+")
# Normalization sorts the marks on one letter in quadratic time; no writing puts 32 on one.
_LONG_SIGNS = re.compile(r"[^\w\s\x00-\x7f]{32,}")
_CONTRACTION = re.compile(r"['’](?:s|t|re|ve|ll|d|m)$")
# Frequent enough to say nothing. Chinese has no such list here: function characters are parts of words (目的, 了解).
_STOP_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have he her his how i in is it its of on or she that "
    "the their them they this to was were what when where which who whom why will with you your".split()
)
_MAX_WORD_LETTERS = 40  # longer is no word: stemming it costs much and nobody searches for its end
_stemmers = threading.local()


def keyword_tokens(text: str) -> list[str]:
    """Return the index terms of ``text``, in its order; the same for documents and queries.

    NFKC and lower case. Han, Kana and Hangul runs give overlapping pairs (年费标准 → 年费 费标 标准), a lone character
    itself. Other words give their English Snowball stem, unless they are English stop words. What holds a digit, an
    underscore, ``++`` or ``#`` stays whole besides its parts, unstemmed: ``gpt-4`` → ``gpt-4 gpt 4``,
    ``v2.1`` → ``v2.1 v2 1``.
    """
    tokens: list[str] = []
    text = _LONG_SIGNS.sub(_without_marks, text)
    for run, word in _TOKEN.findall(unicodedata.normalize("NFKC", text).lower()):
        if run:
            tokens.extend([run[at : at + 2] for at in range(len(run) - 1)] if len(run) > 1 else run)
        elif len(word) <= _MAX_WORD_LETTERS:
            tokens.extend(_word_tokens(word))
        else:
            for part in _PART.findall(word):
                tokens.extend(_word_tokens(part[:_MAX_WORD_LETTERS]))
    return tokens


def _without_marks(signs: re.Match[str]) -> str:
    return "".join(char for char in signs[0] if not unicodedata.combining(char))


@lru_cache(maxsize=1 << 16)
def _word_tokens(word: str) -> tuple[str, ...]:
    if word.isalpha():
        return () if word in _STOP_WORDS else (_stem(word),)
    word = _CONTRACTION.sub("", word)
    parts = tuple(_stem(part) for part in _PART.findall(word) if part not in _STOP_WORDS)
    whole = word.isalpha() or word in parts or not any(char.isdigit() or char in "_+#" for char in word)
    return parts if whole else (word, *parts)


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    try:
        stemmer = _stemmers.english
    except AttributeError:  # one a thread: a stemmer keeps the word it is at
        from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]  # unannotated

        stemmer = _stemmers.english = EnglishStemmer()
    return str(stemmer.stemWord(word))
