"""LlamaIndex retrievers and indices as providers of protocol 1, and any provider as a LlamaIndex retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qak_adapter_llamaindex.provider import LlamaIndexProvider, create
from qak_adapter_llamaindex.settings import LlamaIndexSettings

if TYPE_CHECKING:
    from qak_adapter_llamaindex.retriever import KnowledgeRetriever, as_retriever

__all__ = ["KnowledgeRetriever", "LlamaIndexProvider", "LlamaIndexSettings", "as_retriever", "create"]


def __getattr__(name: str) -> Any:
    # These need LlamaIndex itself, whose import takes two seconds; the provider does not.
    if name in {"KnowledgeRetriever", "as_retriever"}:
        from qak_adapter_llamaindex import retriever

        return getattr(retriever, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
