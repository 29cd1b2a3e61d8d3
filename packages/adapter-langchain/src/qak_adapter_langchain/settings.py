"""What ``qak.toml`` may say about the adapter ``langchain``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ScoreKind = Literal["similarity", "distance", "none"]
CallerFilters = Literal["neutral", "native", "results", "none"]

_TARGET = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class LangChainSettings:
    """Settings of the adapter ``langchain``; ``retriever``, ``knowledge_bases`` or both are needed.

    Attributes:
        retriever: ``module:callable`` that returns a retriever or vector store.
        knowledge_bases: knowledge-base id to such a ``module:callable``.
        key: of the description.
        label: of the description.
        score: what the numbers of a vector store, or those under ``score_key``, are; only similarities leave.
        score_key: metadata key of a retriever's score.
        filters: the host's own filter, in the neutral grammar; every result meets it.
        caller_filters: how a request's filters are applied, see :class:`LangChainProvider`.
        id_key: metadata key of the id of documents that have none of their own.
        citation_keys: ``id``, ``title``, ``uri``, ``mime_type`` or ``locator`` to the metadata key that holds it.
        owner_key: metadata key of the owner.
        first_page: what ``page`` is on the first page, 0 or 1.
        disable_tracing: keep queries and documents from LangSmith and from the callbacks of an outer run.
        run_in_thread: call the blocking form; decided by the object where absent.
        max_workers: threads for blocking calls.
    """

    retriever: str | None = None
    knowledge_bases: Mapping[str, str] = field(default_factory=dict)
    key: str = "langchain"
    label: str = "LangChain"
    score: ScoreKind = "none"
    score_key: str = "relevance_score"
    filters: Any = None
    caller_filters: CallerFilters = "neutral"
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int = 0
    disable_tracing: bool = True
    run_in_thread: bool | None = None
    max_workers: int = 8

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = []
        if self.retriever is None and not self.knowledge_bases:
            problems.append("retriever or knowledge_bases is required: 'module:callable' that returns a retriever")
        for name, target in self.targets().items():
            if not _TARGET.fullmatch(target):
                problems.append(f"{name}: expected 'module:callable', got {target[:80]!r}")
        if problems:
            raise ValueError("\n".join(problems))

    def targets(self) -> dict[str, str]:
        """Return every ``module:callable`` by the name of its setting."""
        named = {} if self.retriever is None else {"retriever": self.retriever}
        return named | {f"knowledge_bases.{base}": target for base, target in self.knowledge_bases.items()}
