"""From Haystack's documents to results of protocol 1; pure functions that keep nothing of a document's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qak_adapter_haystack._wanted import Wanted
from qak_core import RetrievalResult
from qak_core.authoring import Reading, plain_value, read_passages


def to_results(
    documents: Iterable[Any], reading: Reading, *, limit: int, base: str = "", wanted: Wanted | None = None
) -> list[RetrievalResult]:
    """Return a result for each document that has a text and may be seen, in the vendor's order.

    Args:
        documents: as Haystack gave them; what can't be read is left out.
        reading: what the host declares about them.
        limit: as many results at most.
        base: knowledge base to put before the ids.
        wanted: what the request may see, whatever the vendor did with it.
    """

    def read(document: Any) -> RetrievalResult | None:
        content, meta = plain_value(document.content), document.meta
        meta = meta if isinstance(meta, Mapping) else {}
        if not isinstance(content, str) or not content.strip():
            return None
        if wanted is not None and not wanted.admits(document, meta):
            return None
        own_id, score = getattr(document, "id", None), getattr(document, "score", None)
        return reading.result(content, meta, own_id=own_id, score=score, base=base)

    return read_passages(documents, read, limit=limit)
