"""From LlamaIndex's nodes to results of protocol 1, by attribute and without importing LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qak_core import KnowledgeInvalidResponse, RetrievalResult
from qak_core.authoring import Reading, plain_value, read_passages

REPEATED = ("window", "original_text")
"""Keys of text that a splitter repeats beside a passage."""


def results(
    nodes: object, reading: Reading, *, limit: int, base: str, admits: Callable[[Mapping[str, Any]], bool]
) -> list[RetrievalResult]:
    """Return the first passages among the nodes that a request may see, in order; what has no text is none.

    Args:
        nodes: what a retriever returned: nodes, bare or with their scores.
        reading: how to read them.
        limit: as many at most.
        base: the knowledge base to put before the ids.
        admits: whether a node with this metadata may be seen.

    Raises:
        KnowledgeInvalidResponse: it is no sequence.
    """
    if not isinstance(nodes, Sequence) or isinstance(nodes, str | bytes):
        raise KnowledgeInvalidResponse

    def read(found: Any) -> RetrievalResult | None:
        node = getattr(found, "node", found)
        metadata = getattr(node, "metadata", None)
        metadata = metadata if isinstance(metadata, Mapping) else {}
        content = _text(node)
        if not content.strip() or not admits(metadata):
            return None
        return reading.result(
            content,
            metadata,
            own_id=getattr(node, "node_id", None),
            score=getattr(found, "score", None),
            base=base,
            source_id=_document_id(node),
            characters=(getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)),
        )

    return read_passages(nodes, read, limit=limit)


def _text(node: Any) -> str:
    # Never .text, which some nodes refuse, nor get_content_blocks(), which fetches images.
    get_content = getattr(node, "get_content", None)
    content = get_content(metadata_mode="none") if callable(get_content) else getattr(node, "text", None)
    return plain if isinstance(plain := plain_value(content), str) else ""


def _document_id(node: Any) -> object:
    try:
        return node.ref_doc_id
    except Exception:  # noqa: BLE001 - a property, which raises where a node's relationships are broken
        return None
