"""The words of a question that are worth looking for."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_QUERY_TOKENS = 48
_MAX_QUERY_CHARS = 10_000  # of a text that was pasted for a question; the protocol lets 500 through

# What asks rather than names. Documents keep every word, and so does a query that holds nothing else. No single
# characters but the particles: 请 and 的 are parts of words (请假, 目的).
_QUESTION_WORDS = (
    "什么时候 什么时间 什么地方 什么样 什么 为什么 为何 怎么样 怎么办 怎么 怎样 如何 多少 多久 多长时间 "
    "几个 几位 几次 几天 哪些 哪里 哪儿 哪个 哪位 哪一个 哪年 谁 是不是 是否 有没有 能不能 可不可以 可以 "
    "请问 请告诉我 告诉我 帮我 我想知道 想知道 查一下 一下 关于 吗 呢 我们 你们 他们 这个 那个 这些 那些 需要 应该"
).split()
_QUESTION = re.compile(
    "|".join(sorted(_QUESTION_WORDS, key=len, reverse=True))  # a phrase before its parts
    + r"|\b(?:how|many|much|can|could|should|would|may|must|please|tell|me|about|any|some|there|if|so|our|we)\b",
    re.IGNORECASE,
)


def query_tokens(query: str, tokenize: Callable[[str], list[str]]) -> list[str]:
    """Return the distinct tokens of a question, without its question words unless it holds nothing else."""
    query = query[:_MAX_QUERY_CHARS]
    tokens = tokenize(_QUESTION.sub(" ", query))
    if all(len(token) == 1 for token in tokens):  # a lone character is in no index: Chinese is stored by pairs
        tokens = tokenize(query)
    return list(dict.fromkeys(tokens))[:MAX_QUERY_TOKENS]
