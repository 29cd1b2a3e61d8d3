"""What ``qak.toml`` may say about the Haystack adapter, and the checks that code and configuration share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from qak_adapter_haystack._filters import is_native, read_native, to_haystack
from qak_core.authoring import Reading, ScoreKind, option_problems, parse_filter, target_problems

CallerFilters = Literal["neutral", "native", "none"]

MADE = ("retriever", "text_embedder", "knowledge_bases")
"""Settings whose callables make what they stand for."""


def read_filter(given: object) -> None:
    """Read the host's own filter, in either grammar.

    Raises:
        KnowledgeError: Haystack can't say it, or it is none.
    """
    if is_native(given):
        read_native(given)
    else:
        to_haystack(parse_filter(given))


problems_of = partial(option_problems, forms=get_args(CallerFilters), read_filter=read_filter)


@dataclass(frozen=True, kw_only=True, slots=True)
class HaystackSettings:
    """Settings of the adapter ``haystack``; ``retriever`` or ``knowledge_bases`` is needed.

    The others mean what they do for :class:`~qak_adapter_haystack.HaystackProvider`.

    Attributes:
        retriever: ``module:callable`` that returns a component or pipeline, or an embedding retriever with its text
            embedder; called once, when the provider is created.
        text_embedder: ``module:callable`` that returns the text embedder of an embedding retriever.
        knowledge_bases: id to such a ``module:callable``.
        health: ``module:callable`` that is asked for the provider's health.
        aclose: ``module:callable`` that is called once when the provider closes.
    """

    retriever: str | None = None
    text_embedder: str | None = None
    knowledge_bases: Mapping[str, str] = field(default_factory=dict)
    key: str = "haystack"
    label: str = "Haystack"
    score: ScoreKind = "none"
    filters: Mapping[str, Any] | None = None
    caller_filters: CallerFilters = "neutral"
    id_key: str | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    owner_key: str | None = None
    first_page: int | None = None
    query_inputs: Sequence[str] | None = None
    top_k_inputs: Sequence[str] | None = None
    filters_inputs: Sequence[str] | None = None
    output: str | None = None
    run_in_thread: bool | None = None
    disable_tracing: bool = True
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
        """Return how to read documents."""
        return Reading(
            score=self.score,
            id_key=self.id_key,
            citation_keys=self.citation_keys,
            owner_key=self.owner_key,
            first_page=self.first_page,
        )
