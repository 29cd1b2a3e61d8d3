"""A tiny deterministic embedding, for adapters whose vendor needs one."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from itertools import pairwise

_PLACES = 4
_WORD = re.compile(r"[0-9a-z_]+|[^\W0-9a-z_]+")


def toy_embedding(text: str, dimensions: int = 1024) -> list[float]:
    """Return a unit vector by hashing words, and the character pairs of scripts that are written without blanks.

    By cosine similarity every question of the corpus finds its document first. It knows nothing of meaning.

    Args:
        text: any text; without a word the vector's first component is 1.
        dimensions: length of the vector; below 256, too many words collide.
    """
    vector = [0.0] * dimensions
    for token in tokens(text):
        # Several signed places for each word: two words that share one place are still told apart by the others.
        digest = hashlib.blake2b(token.encode(errors="replace"), digest_size=4 * _PLACES).digest()
        for (place,) in struct.iter_unpack("<i", digest):
            vector[place % dimensions] += 1.0 if place < 0 else -1.0
    if not any(vector):
        vector[0] = 1.0
    length = math.hypot(*vector)
    return [component / length for component in vector]


def tokens(text: str) -> list[str]:
    """Return the words of a text, and the character pairs of scripts that are written without blanks."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        found += [word] if word.isascii() or len(word) == 1 else map("".join, pairwise(word))
    return found
