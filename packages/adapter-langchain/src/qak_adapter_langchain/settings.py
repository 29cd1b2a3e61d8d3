"""What ``qak.toml`` may say about the adapter ``langchain``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from qak_core.authoring import Reading, ScoreKind, option_problems, target_problems

CallerFilters = Literal["neutral", "native", "results", "none"]

MADE = ("retriever", "knowledge_bases")
"""Settings whose callables make what they stand for."""

problems_of = partial(option_problems, forms=get_args(CallerFilters))


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
        id_key: metadata key of a document's id, before its own.
        citation_keys: ``id``, ``title``, ``uri``, ``mime_type`` or ``locator`` to the metadata key that holds it.
        owner_key: metadata key of the owner.
        first_page: what ``page`` is on the first page, 0 or 1.
        disable_tracing: keep queries and documents from LangSmith and from the callbacks of an outer run.
        run_in_thread: call the blocking form; decided by the object where absent.
        max_workers: threads for blocking calls, 1 to 64.
        health: ``module:callable`` that is asked for the provider's health.
        aclose: ``module:callable`` that is called once when the provider closes.
    """

    retriever: str | None = None
    knowledge_bases: Mapping[str, str] = field(default_factory=dict)
    key: str = "langchain"
    label: str = "LangChain"
    score: ScoreKind = "none"
    score_key: str = "relevance_score"
    filters: Mapping[str, Any] | None = None
    caller_filters: CallerFilters = "neutral"
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int | None = 0
    disable_tracing: bool = True
    run_in_thread: bool | None = None
    max_workers: int = 8
    health: str | None = None
    aclose: str | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = target_problems(self, *MADE, "health", "aclose")
        if self.retriever is None and not self.knowledge_bases:
            problems.append("retriever or knowledge_bases is required: 'module:callable' that returns a retriever")
        reading = Reading(
            score=self.score,
            id_key=self.id_key,
            citation_keys=self.citation_keys,
            owner_key=self.owner_key,
            first_page=self.first_page,
        )
        problems += problems_of(
            reading,
            caller_filters=self.caller_filters,
            filters=self.filters,
            max_workers=self.max_workers,
            base_ids=self.knowledge_bases,
        )
        if problems:
            raise ValueError("\n".join(problems))
