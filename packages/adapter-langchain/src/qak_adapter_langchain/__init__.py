"""LangChain retrievers and vector stores as a knowledge provider, and any provider as a LangChain retriever.

Importing this package imports nothing of LangChain; :class:`LangChainRetriever` and :func:`as_retriever` do when they
are first used.
"""

from typing import TYPE_CHECKING, Any

from qak_adapter_langchain.provider import LangChainProvider, create
from qak_adapter_langchain.settings import LangChainSettings

if TYPE_CHECKING:
    from qak_adapter_langchain.retriever import LangChainRetriever, as_retriever

__all__ = ["LangChainProvider", "LangChainRetriever", "LangChainSettings", "as_retriever", "create"]


def __getattr__(name: str) -> Any:
    if name in {"LangChainRetriever", "as_retriever"}:
        from qak_adapter_langchain import retriever

        return getattr(retriever, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
