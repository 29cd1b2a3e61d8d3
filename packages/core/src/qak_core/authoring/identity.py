"""Ids for results whose vendor gives none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def stable_id(*parts: object) -> str:
    """Return 32 hexadecimal digits that depend on all parts, their order and their borders.

    Use what names a passage for good, such as knowledge base, source, locator and content. ``None`` and ``""`` differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = b"" if part is None else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"-" if part is None else b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:32]


def unique_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids in order, with ``#2``, ``#3`` … added to those that came before.

    Two chunks may share a vendor's id, for instance that of their file; dropping one would lose a passage.
    """
    taken: set[str] = set()
    unique = []
    for original in ids:
        candidate, number = original, 1
        while candidate in taken:
            number += 1
            candidate = f"{original}#{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique
