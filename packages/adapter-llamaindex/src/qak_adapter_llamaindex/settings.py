"""What ``qak.toml`` may say about a LlamaIndex retriever."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from qak_adapter_llamaindex._convert import Reading, ScoreKind
from qak_core import KnowledgeInvalidRequest
from qak_core.authoring import parse_filter

CallerFilters = Literal["neutral", "native", "none"]

MAX_WORKERS = 64

_DOTTED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


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
        disable_tracing: report nothing of a retrieval to LlamaIndex's callbacks and instrumentation.
        native_async: call ``aretrieve`` on the event loop; only where everything under it is truly async.
        max_workers: threads for blocking calls, 1 to 64.
        health: ``module:callable`` that is asked for the provider's health.
        aclose: ``module:callable`` that is called once when the provider closes.
    """

    CALLABLES: ClassVar = ("retriever", "knowledge_bases", "health", "aclose")

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
    disable_tracing: bool = True
    native_async: bool = False
    max_workers: int = 8
    health: str | None = None
    aclose: str | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` with one line a problem."""
        problems = []
        if self.retriever is None and not self.knowledge_bases:
            problems.append("retriever or knowledge_bases is required: 'module:callable' that returns a retriever")
        problems += [
            f"{name}: expected 'module:callable', got {target[:80]!r}"
            for name, target in self.callables().items()
            if not _DOTTED.fullmatch(target)
        ]
        if not 1 <= self.max_workers <= MAX_WORKERS:
            problems.append(f"max_workers: expected 1 to {MAX_WORKERS}, got {self.max_workers}")
        problems += [
            f"{name}: expected a metadata key, got empty text"
            for name in ("id_key", "owner_key")
            if getattr(self, name) == ""
        ]
        for check in (self.reading, self._check_filters):
            try:
                check()
            except ValueError as error:
                problems += str(error).splitlines()
        if problems:
            raise ValueError("\n".join(problems))

    def reading(self) -> Reading:
        """Return how to read nodes."""
        return Reading(score=self.score, id_key=self.id_key, citation_keys=self.citation_keys)

    def callables(self) -> dict[str, str]:
        """Return every callable that is named, by the setting that names it."""
        named = {name: getattr(self, name) for name in ("retriever", "health", "aclose")}
        named |= {f"knowledge_bases.{base_id}": target for base_id, target in self.knowledge_bases.items()}
        return {name: target for name, target in named.items() if target is not None}

    def _check_filters(self) -> None:
        try:
            if self.filters is not None:
                parse_filter(self.filters)
        except KnowledgeInvalidRequest as error:
            raise ValueError(f"filters: {error.message}") from None
