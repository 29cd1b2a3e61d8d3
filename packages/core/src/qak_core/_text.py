"""Cleaning, collapsing and cutting text that came from outside (protocol section 6)."""

from __future__ import annotations

import re
import unicodedata

from qak_core._exact import exact_str

_REMOVED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL, C1
    "\u202a-\u202e\u2066-\u2069"  # bidi overrides and isolates
    "\u200b\u2060\ufeff"  # zero-width space, word joiner, byte order mark
    "\ufff9-\ufffb\U000e0000-\U000e007f]+"  # interlinear annotation, tag characters
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

_ZWJ = "\u200d"
_MAX_CLUSTER = 64  # a longer "character" is an attack, not writing; it is cut like any text


def clean(text: str) -> str:
    """Remove control, bidi-override and invisible characters; keep tab, newline, joiners, variation selectors.

    A lone surrogate becomes U+FFFD, so that the result is always encodable.
    """
    text = exact_str(text)
    # isprintable() is false for all that is removed, and an order of magnitude faster than looking for each.
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return _SURROGATE.sub(_REPLACEMENT, _REMOVED.sub("", text))


def collapse(text: str) -> str:
    """Clean ``text``, turn each run of Unicode whitespace into one space and trim it."""
    return " ".join(clean(text).split())


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` code points of ``text``, without splitting a grapheme cluster or ending in a blank.

    Text whose first cluster alone is longer than ``limit``, and clusters above 64 code points, are cut inside it.
    """
    if len(text) <= limit:
        return text
    return text[: _cluster_start(text, limit) or limit].rstrip()


def json_bytes(text: str, encoded: bytes) -> int:
    """Return how many bytes cleaned ``text`` takes as a JSON string in UTF-8, quotes included.

    Args:
        text: the text.
        encoded: the same in UTF-8, which whoever needs its size mostly has already.
    """
    return len(encoded) + _escapes(encoded) + 2


def cut_to_json_bytes(text: str, encoded: bytes, limit: int) -> str:
    """Return a prefix of cleaned ``text`` that takes at most ``limit`` bytes as a JSON string in UTF-8."""
    encoded = encoded[: max(0, limit - 2)]
    prefix = encoded.decode(errors="ignore")
    while prefix and (excess := json_bytes(prefix, encoded) - limit) > 0:
        prefix = prefix[: -(excess // 4 + 1)]  # a code point takes at most four bytes
        encoded = prefix.encode()
    return text[: _cluster_start(text, len(prefix))]


def _escapes(encoded: bytes) -> int:
    # Looking whether a byte is there costs a fraction of counting it, and most are not.
    return sum(encoded.count(byte) for byte in (b'"', b"\\", b"\n", b"\t") if byte in encoded)


def _cluster_start(text: str, position: int) -> int:
    """Return the largest cluster boundary at or before ``position``, within 64 code points."""
    boundary = position
    while boundary > 0 and position - boundary < _MAX_CLUSTER:
        if _is_boundary(text, boundary):
            return boundary
        boundary -= 1
    return position if boundary else 0


def _is_boundary(text: str, position: int) -> bool:
    """Whether a cluster may end before ``text[position]``: the rules of UAX #29 that need no tables of our own."""
    if position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if _extends(after) or before == _ZWJ:
        return False
    if _is_regional(before) and _is_regional(after):
        return _regional_run(text, position) % 2 == 0
    if _is_hangul_vowel_or_tail(after) and _is_hangul(before):
        return False
    # A virama joins the consonant that follows it (Devanagari and its relatives).
    return not (unicodedata.combining(before) == 9 and unicodedata.category(after) == "Lo")


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or char in {_ZWJ, "\u200c", "\uff9e", "\uff9f", "\u0e33", "\u0eb3"}  # joiners; Kana, Thai and Lao signs
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regional_run(text: str, end: int) -> int:
    """Count the regional indicators directly before ``end``."""
    start = end
    while start > 0 and _is_regional(text[start - 1]):
        start -= 1
    return end - start


def _is_hangul_vowel_or_tail(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def _is_hangul(char: str) -> bool:
    return "\u1100" <= char <= "\u11ff" or "\ua960" <= char <= "\ua97c" or "\uac00" <= char <= "\ud7fb"
