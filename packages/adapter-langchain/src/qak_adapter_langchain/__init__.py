"""LangChain retrievers and vector stores as a knowledge provider, and any provider as a LangChain retriever."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qak_adapter_langchain.provider import LangChainProvider, create
    from qak_adapter_langchain.retriever import LangChainRetriever, as_retriever
    from qak_adapter_langchain.settings import LangChainSettings

__all__ = ["LangChainProvider", "LangChainRetriever", "LangChainSettings", "as_retriever", "create"]

_ROOMS = {"LangChainProvider": "provider", "LangChainSettings": "settings", "create": "provider"}


def __getattr__(name: str) -> Any:
    """Import a room when somebody enters it; only ``retriever`` imports LangChain."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS.get(name, 'retriever')}"), name)
