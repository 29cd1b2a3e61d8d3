"""LlamaIndex retrievers and indices as a knowledge provider, and any knowledge provider as a LlamaIndex retriever."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qak_adapter_llamaindex.provider import LlamaIndexProvider, create
    from qak_adapter_llamaindex.retriever import KnowledgeRetriever, as_retriever
    from qak_adapter_llamaindex.settings import LlamaIndexSettings

__all__ = ["KnowledgeRetriever", "LlamaIndexProvider", "LlamaIndexSettings", "as_retriever", "create"]

_ROOMS = {"LlamaIndexProvider": "provider", "LlamaIndexSettings": "settings", "create": "provider"}


def __getattr__(name: str) -> Any:
    """Import a room when somebody enters it; only ``retriever`` imports LlamaIndex, which takes two seconds."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS.get(name, 'retriever')}"), name)
