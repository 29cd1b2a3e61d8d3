"""What ``qak.toml`` may say about a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from qak_adapter_llamaindex._convert import REPEATED
from qak_core.authoring import Reading, ScoreKind, option_problems, target_problems

CallerFilters = Literal["neutral", "native", "none"]

MADE = ("retriever", "knowledge_bases")
"""Settings whose callables make what they stand for."""

problems_of = partial(option_problems, forms=get_args(CallerFilters))


@dataclass(frozen=True, kw_only=True, slots=True)
class LlamaIndexSettings:
    """Settings of the adapter ``llamaindex``; ``retriever`` or ``knowledge_bases`` is needed.

    Attributes:
        retriever: ``module:callable`` that returns a retriever or an index.
        knowledge_bases: id to such a callable, each.
        key: of the provider's description.
        label: of the provider's description.
        score: what the nodes' scores are; only similarities are passed on.
        filters: the host's own filter, in the neutral grammar; every result meets it.
        caller_filters: in which form a caller may send filters; ``none`` refuses them.
        nested_filters: whether the vector store takes ``MetadataFilters`` inside ``MetadataFilters``.
        id_key: the metadata key that holds a passage's id.
        citation_keys: field of the source to the metadata key that holds it.
        owner_key: the metadata key that holds a node's owner; without one, all owners see everything.
        first_page: what ``page`` is on the first page, 0 or 1; not read without.
        disable_tracing: report nothing of a retrieval to LlamaIndex's callbacks and instrumentation.
        native_async: call ``aretrieve`` on the event loop; only where everything under it is truly async.
        max_workers: threads for blocking calls, 1 to 64.
        health: ``module:callable`` that is asked for the provider's health.
        aclose: ``module:callable`` that is called once when the provider closes.
    """

    retriever: str | None = None
    knowledge_bases: Mapping[str, str] = field(default_factory=dict)
    key: str = "llamaindex"
    label: str = "LlamaIndex"
    score: ScoreKind = "none"
    filters: Mapping[str, Any] | None = None
    caller_filters: CallerFilters = "neutral"
    nested_filters: bool = False
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int | None = None
    disable_tracing: bool = True
    native_async: bool = False
    max_workers: int = 8
    health: str | None = None
    aclose: str | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = target_problems(self, *MADE, "health", "aclose")
        if self.retriever is None and not self.knowledge_bases:
            problems.append("retriever or knowledge_bases is required: 'module:callable' that returns a retriever")
        problems += problems_of(
            self.reading(),
            caller_filters=self.caller_filters,
            filters=self.filters,
            max_workers=self.max_workers,
            base_ids=self.knowledge_bases,
        )
        if problems:
            raise ValueError("\n".join(problems))

    def reading(self) -> Reading:
        """Return how to read nodes."""
        return Reading(
            score=self.score,
            id_key=self.id_key,
            citation_keys=self.citation_keys,
            owner_key=self.owner_key,
            first_page=self.first_page,
            drop=REPEATED,
        )
