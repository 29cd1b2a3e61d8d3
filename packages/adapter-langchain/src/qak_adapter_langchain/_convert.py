"""From what LangChain returns to results of protocol 1: pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qak_core import KnowledgeInvalidResponse, RetrievalResult
from qak_core.authoring import Reading, plain_text, plain_value, read_passages

Hit = tuple[object, object]
"""A document, or the text of one, and the store's number for it, if any."""

NUMBER_KEYS = ("relevance_score", "score", "query_similarity_score", "distance")
"""What would be taken for a score among a result's metadata."""


def read_hits(answer: object) -> list[Hit]:
    """Return the documents in an answer, paired with the numbers beside them.

    Raises:
        KnowledgeInvalidResponse: it is neither a list nor a tuple; LangChain does not check what a retriever returns.
    """
    if not isinstance(answer, list | tuple):
        raise KnowledgeInvalidResponse
    return [item if isinstance(item, tuple) and len(item) == 2 else (item, None) for item in answer]


def convert(
    hits: Sequence[Hit],
    reading: Reading,
    *,
    limit: int,
    score_key: str = NUMBER_KEYS[0],
    base: str = "",
    accept: Callable[[Mapping[str, Any]], bool],
) -> list[RetrievalResult]:
    """Return the first results that can be used, in order.

    Args:
        hits: as from :func:`read_hits`.
        reading: what the host declares about the documents.
        limit: as many at most.
        score_key: metadata key of a score that a retriever gives, since it returns documents alone.
        base: knowledge base to put before the ids.
        accept: whether a document with this metadata may be seen.
    """

    def read(hit: Hit) -> RetrievalResult | None:
        document, number = hit
        content = plain_value(document if isinstance(document, str) else getattr(document, "page_content", None))
        given = getattr(document, "metadata", None)
        metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if not isinstance(content, str) or not content.strip() or not accept(metadata):
            return None
        score = metadata.get(score_key) if number is None else number
        own_id = plain_text(getattr(document, "id", None), numbers=True) or plain_text(
            metadata.get("_id"), numbers=True
        )
        # Numbers under these are ranks: rerankers put the candidate's index there.
        own_id = own_id or plain_text(metadata.get("id")) or plain_text(metadata.get("chunk_id"))
        return reading.result(content, metadata, own_id=own_id, score=score, base=base)

    return read_passages(hits, read, limit=limit)
