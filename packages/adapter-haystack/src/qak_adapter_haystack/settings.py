"""What ``qak.toml`` may say about the Haystack adapter, and the checks that code and configuration share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from qak_adapter_haystack._convert import SOURCE_FIELDS
from qak_adapter_haystack._filters import is_native, read_native, to_haystack
from qak_core import KnowledgeError
from qak_core.authoring import parse_filter

ScoreKind = Literal["similarity", "distance", "none"]
CallerFilters = Literal["neutral", "native", "none"]

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class HaystackSettings:
    """Settings of the adapter ``haystack``; ``retriever`` or ``knowledge_bases`` is needed.

    The others mean what they do for :class:`~qak_adapter_haystack.HaystackProvider`.

    Attributes:
        retriever: ``module:callable`` that returns a component or pipeline, or an embedding retriever with its text
            embedder; called once, when the provider is created.
        text_embedder: ``module:callable`` that returns the text embedder of an embedding retriever.
        knowledge_bases: id to such a ``module:callable``.
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
    query_inputs: Sequence[str] | None = None
    top_k_inputs: Sequence[str] | None = None
    filters_inputs: Sequence[str] | None = None
    output: str | None = None
    run_in_thread: bool | None = None
    max_workers: int = 8
    disable_tracing: bool = True

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = [
            f"{name}: expected 'module:callable', got {target[:80]!r}"
            for name, target in self.targets().items()
            if not _TARGET.fullmatch(target)
        ]
        if self.retriever is None and not self.knowledge_bases:
            problems.append("retriever or knowledge_bases is required: 'module:callable' that returns a retriever")
        problems += option_problems(
            score=self.score,
            caller_filters=self.caller_filters,
            filters=self.filters,
            citation_keys=self.citation_keys,
            max_workers=self.max_workers,
        )
        if problems:
            raise ValueError("\n".join(problems))

    def targets(self) -> dict[str, str]:
        """Return every ``module:callable`` by the name of its setting."""
        named = {"retriever": self.retriever, "text_embedder": self.text_embedder}
        named |= {f"knowledge_bases.{base_id}": target for base_id, target in self.knowledge_bases.items()}
        return {name: target for name, target in named.items() if target is not None}


def option_problems(
    *, score: object, caller_filters: object, filters: object, citation_keys: Mapping[str, str], max_workers: int
) -> list[str]:
    """Return what speaks against options that need no vendor to be judged."""
    problems = [
        f"{name}: expected one of {', '.join(get_args(kind))}, got {str(given)[:80]!r}"
        for name, given, kind in (
            ("score", score, ScoreKind),
            ("caller_filters", caller_filters, CallerFilters),
        )
        if given not in get_args(kind)
    ]
    if unknown := [name for name in citation_keys if name not in SOURCE_FIELDS]:
        problems.append(f"citation_keys: expected fields of {', '.join(SOURCE_FIELDS)}, got {', '.join(unknown)}")
    if max_workers < 1:
        problems.append(f"max_workers: expected at least 1, got {max_workers}")
    if filters is not None:
        try:
            if is_native(filters):
                read_native(filters)
            else:
                to_haystack(parse_filter(filters))
        except KnowledgeError as error:
            problems.append(f"filters: {error.message}")
    return problems
