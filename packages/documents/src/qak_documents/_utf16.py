"""Offsets in UTF-16 code units, the unit of JavaScript strings and of the service's chunk listing."""

import re
from bisect import bisect_left

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


class Utf16Index:
    """Translates between code points and UTF-16 code units of one text."""

    __slots__ = ("_points", "_units")

    def __init__(self, text: str) -> None:
        self._points = [] if text.isascii() else [match.start() for match in _ASTRAL.finditer(text)]
        self._units = [point + count for count, point in enumerate(self._points)]

    def units(self, point: int) -> int:
        """Return the UTF-16 offset of the code point offset ``point``."""
        return point + bisect_left(self._points, point)

    def points(self, unit: int) -> int:
        """Return the code point offset of the UTF-16 offset ``unit``; a surrogate pair's inside counts as its start."""
        return unit - bisect_left(self._units, unit)


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of ``text``."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
