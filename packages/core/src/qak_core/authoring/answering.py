"""The other direction: what a framework's own passage says of a result of the runtime."""

from __future__ import annotations

from typing import Any

from qak_core.answers import AnswerResult, KnowledgeAnswer


def passage_metadata(result: AnswerResult, answer: KnowledgeAnswer) -> dict[str, Any]:
    """Return the metadata of a passage for those who read it in a framework.

    The result's own, and where known ``title``, ``url``, ``mime_type``, ``locator``, ``source_id``, the ``citation_id``
    and the ``citation`` of a public source as a mapping, and always the ``notice`` that results are untrusted data.
    An adapter that reads such a passage again gets the same result.
    """
    source = result.source
    own: dict[str, Any] = {
        "title": source and source.title,
        "url": source and source.uri,
        "mime_type": source and source.mime_type,
        "locator": source and source.locator,
        "source_id": source and source.id,
        "citation_id": result.citation_id,
        "citation": next((one.to_dict() for one in answer.citations if one.id == result.citation_id), None),
        "notice": answer.notice,
    }
    return {**result.metadata, **{name: value for name, value in own.items() if value is not None}}
