"""What a text costs a language model, estimated without one."""

import re
from collections.abc import Iterator

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Hundredths of a token, so that sums are exact.
_CJK_COST = 90
_WORD_COST = 108
_DIGITS_COST = 137
_NEWLINES_COST = 100
_SIGN_COST = 66
# Longer runs count more than once: what has no end must not cost nothing.
_CJK_RUN = re.compile(f"[{CJK}]+")
_COUNTED = (
    (r"[^\W\d_]{1,24}", _WORD_COST),
    (r"\d{1,3}", _DIGITS_COST),
    (r"\n{1,16}", _NEWLINES_COST),
    (r"[^\w\s\x1c-\x1f]|_|[^\S\n\x1c-\x1f]{16}", _SIGN_COST),
)
_UNICODE = tuple((re.compile(pattern), cost) for pattern, cost in _COUNTED)
_ASCII = tuple((re.compile(pattern, re.ASCII), cost) for pattern, cost in _COUNTED)  # twice as fast
_ATOM = re.compile(
    rf"([{CJK}])|([^\W\d_{CJK}]{{1,24}})|(\d{{1,3}})|(\n{{1,16}})|({_COUNTED[3][0]})|[^\S\n]{{1,15}}|.",
    re.DOTALL,
)
_ATOM_COSTS = (0, _CJK_COST, _WORD_COST, _DIGITS_COST, _NEWLINES_COST, _SIGN_COST)
_SOFT_ENDS = frozenset(" \t\n,;:，；：、")


def estimate_tokens(text: str) -> int:
    """Return about how many tokens ``text`` is to a current tokenizer, rounded up.

    0.9 a CJK character + 1.08 a word + 1.37 each three digits of a number + 1 a run of newlines + 0.66 any other sign.
    A word counts again after each 24 letters, a run of newlines or spaces after each 16.
    """
    return -(-token_cost(text) // 100)


def token_cost(text: str) -> int:
    """Return the estimate in hundredths of a token; that of a whole is never above the sum over its parts."""
    if text.isascii():
        return sum(cost * len(pattern.findall(text)) for pattern, cost in _ASCII)
    without_cjk, runs = _CJK_RUN.subn(" ", text)
    cjk = len(text) - len(without_cjk) + runs
    return _CJK_COST * cjk + sum(cost * len(pattern.findall(without_cjk)) for pattern, cost in _UNICODE)


def cut_by_cost(text: str, start: int, end: int, max_cost: int) -> Iterator[tuple[int, int]]:
    """Cut ``text[start:end]`` into spans of at most ``max_cost`` each, after a comma or space where one is near."""
    cost = cost_at_soft = 0
    soft = start
    for atom in _ATOM.finditer(text, start, end):
        atom_cost = _ATOM_COSTS[atom.lastindex or 0]
        if cost + atom_cost > max_cost:
            cut, spent = (soft, cost_at_soft) if cost_at_soft * 2 >= max_cost else (atom.start(), cost)
            yield start, cut
            start, cost, cost_at_soft = cut, cost - spent, 0
        cost += atom_cost
        if atom[0][-1] in _SOFT_ENDS:
            soft, cost_at_soft = atom.end(), cost
    yield start, end
