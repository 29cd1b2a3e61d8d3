"""From the knowledge bases that a request names to one answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from qak_core.authoring.fan_out import FanOut, fan_out
from qak_core.authoring.identity import unique_ids
from qak_core.errors import KnowledgeBaseUnknown
from qak_core.protocol import RetrievalResponse, RetrievalResult
from qak_core.signals import CancelSignal

_T = TypeVar("_T")

_log = logging.getLogger("qak_core")


def route(bases: Mapping[str, _T], ids: Sequence[str]) -> Mapping[str, _T]:
    """Return the knowledge bases to ask.

    Args:
        bases: by id. The one under ``""``, if any, has no id and answers what names none; without it, all do.
        ids: as requested.

    Raises:
        KnowledgeBaseUnknown: one of the ids is none of theirs.
    """
    if not ids:
        return {"": bases[""]} if "" in bases else bases
    if not all(base_id and base_id in bases for base_id in ids):
        raise KnowledgeBaseUnknown
    return {base_id: bases[base_id] for base_id in ids}


async def answer(
    calls: Mapping[str, Callable[[], Awaitable[Sequence[RetrievalResult]]]], signal: CancelSignal, *, top_k: int
) -> RetrievalResponse:
    """Ask one knowledge base, or several at once, and merge what they find.

    Ids become unique, and there are ``top_k`` results at most. Scores are left out where several bases were asked,
    since theirs do not compare, and where they rise along the answer of one: then they are distances after all.

    Args:
        calls: knowledge base to the function that starts its retrieval.
        signal: ends all of them.
        top_k: results wanted.

    Raises:
        KnowledgeError: see :func:`~qak_core.authoring.fan_out`; the call's where there is only one.
    """
    if len(calls) == 1:
        (call,) = calls.values()  # the only one has all the time there is
        found: FanOut[RetrievalResult] = FanOut(items=await call(), degraded=())
    else:
        found = await fan_out(calls, signal)
    best = found.items[:top_k]
    scored = len(calls) == 1 and not _rise(best)
    results = [
        one if one.id == own_id and (scored or one.score is None) else _changed(one, own_id, scored=scored)
        for one, own_id in zip(best, unique_ids(one.id for one in best), strict=True)
    ]
    return RetrievalResponse(results=results, degraded=found.degraded)


def _changed(result: RetrievalResult, own_id: str, *, scored: bool) -> RetrievalResult:
    return replace(result, id=own_id, score=result.score if scored else None)


def _rise(results: Sequence[RetrievalResult]) -> bool:
    scores = [result.score for result in results if result.score is not None]
    if all(better >= worse for better, worse in pairwise(scores)):
        return False
    _log.warning("scores rise along an answer, so they are no similarities and were left out")
    return True
