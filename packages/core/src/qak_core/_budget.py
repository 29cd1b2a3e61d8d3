"""Keeping a whole answer within 64 KiB of UTF-8 JSON (clause ``response.budget``)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from qak_core._text import cut_to_json_bytes, json_bytes
from qak_core.answers import AnswerResult, KnowledgeAnswer

MAX_ANSWER_BYTES = 64 * 1024

_RESERVED_BYTES = 1200  # of content a result, before its metadata has to go: 400 Han characters


def fit_budget(answer: KnowledgeAnswer) -> KnowledgeAnswer:
    """Return the answer with its contents shortened evenly until the whole fits.

    Where even short contents do not fit, because the rest is as large as hostile metadata and titles can make it,
    metadata goes first and results after it, both from the end.
    """
    encoded = [result.content.encode() for result in answer.results]
    sizes = [json_bytes(result.content, data) for result, data in zip(answer.results, encoded, strict=True)]
    while (room := MAX_ANSWER_BYTES - _frame_bytes(answer)) < sum(min(size, _RESERVED_BYTES) for size in sizes):
        answer = _lighten(answer)
        del sizes[len(answer.results) :]
    if sum(sizes) <= room:
        return answer
    level = _even_level(sizes, room)
    return replace(
        answer,
        results=[
            _shorten(result, data, level) if size > level else result
            for result, data, size in zip(answer.results, encoded, sizes, strict=False)
        ],
    )


def _frame_bytes(answer: KnowledgeAnswer) -> int:
    """Return the size of the answer without its contents."""
    frame = answer.to_dict()
    for result in frame["results"]:
        del result["content"]
    # Each content comes back with its name; `truncated` may be added.
    extra = len('"content": , "truncated": true, ') * len(answer.results)
    return len(json.dumps(frame, ensure_ascii=False).encode()) + extra


def _lighten(answer: KnowledgeAnswer) -> KnowledgeAnswer:
    results = list(answer.results)
    heavy = next((i for i in reversed(range(len(results))) if results[i].metadata), None)
    if heavy is not None:
        results[heavy] = replace(results[heavy], metadata={})
        return replace(answer, results=results)
    results.pop()
    cited = {result.citation_id for result in results}
    citations = [citation for citation in answer.citations if citation.id in cited]
    dropped = Counter(answer.dropped) + Counter(over_budget=1)
    return replace(answer, results=results, citations=citations, dropped=dropped)


def _even_level(sizes: Sequence[int], room: int) -> int:
    """Return the largest size that all may have so that those above it, cut to it, fit into ``room`` together."""
    level = 0
    for left, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        level = room // left
        if size >= level:
            break
        room -= size
    return level


def _shorten(result: AnswerResult, encoded: bytes, level: int) -> AnswerResult:
    return AnswerResult(  # half the time of replace(), and this is the hot path of long answers
        id=result.id,
        content=cut_to_json_bytes(result.content, encoded, level).rstrip(),
        score=result.score,
        source=result.source,
        metadata=result.metadata,
        citation_id=result.citation_id,
        truncated=True,
    )
