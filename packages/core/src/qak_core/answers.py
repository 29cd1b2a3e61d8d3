"""What a gateway hands to the model: the envelope of protocol section 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from qak_core.protocol import RetrievalResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A public source, numbered within one turn (clauses ``citation.*``).

    Attributes:
        id: ``source_1``, ``source_2`` …
        title: at most 300 code points.
        url: a canonical public http(s) address.
        snippet: the start of the passage, at most 300 code points on one line.
        source: the provider's id of the document.
        published_at: a date as the provider gave it.
    """

    id: str
    title: str
    url: str
    snippet: str
    source: str | None = None
    published_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the citation as JSON values; absent fields are left out."""
        return present(
            id=self.id,
            title=self.title,
            url=self.url,
            snippet=self.snippet,
            source=self.source,
            published_at=self.published_at,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerResult(RetrievalResult):
    """A normalised result.

    Attributes:
        citation_id: the citation of its source, if that is public.
        truncated: whether content was cut.
    """

    citation_id: str | None = None
    truncated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; absent fields are left out."""
        source = self.source
        return present(
            id=self.id,
            content=self.content,
            score=self.score,
            source=source
            and present(
                id=source.id,
                title=source.title,
                uri=source.uri,
                mime_type=source.mime_type,
                locator=source.locator,
            ),
            metadata=dict(self.metadata) or None,
            citation_id=self.citation_id,
            truncated=self.truncated or None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeAnswer:
    """A normalised answer (clause ``response.envelope``).

    Attributes:
        status: ``ok``, or ``not_found`` when no result is usable.
        query: what was searched for.
        results: at most ``top_k``, in the provider's order.
        citations: the public sources of these results, each once.
        notice: the untrusted-data notice.
        degraded: parts that failed; for the operator, not in :meth:`to_dict`.
        dropped: how many results were dropped, by reason; for the operator, not in :meth:`to_dict`.
    """

    status: Literal["ok", "not_found"]
    query: str
    results: Sequence[AnswerResult]
    citations: Sequence[Citation]
    notice: str
    degraded: Sequence[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope that the model gets: strict JSON values, at most 64 KiB as UTF-8 JSON."""
        return {
            "status": self.status,
            "query": self.query,
            "results": [result.to_dict() for result in self.results],
            "citations": [citation.to_dict() for citation in self.citations],
            "notice": self.notice,
        }


def present(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not ``None``."""
    return {name: value for name, value in fields.items() if value is not None}
