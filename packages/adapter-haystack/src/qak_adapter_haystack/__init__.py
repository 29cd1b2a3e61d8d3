"""Haystack components and pipelines as knowledge providers, and knowledge providers as a Haystack component."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qak_adapter_haystack.component import KnowledgeComponent, as_retriever
    from qak_adapter_haystack.provider import HaystackProvider, create
    from qak_adapter_haystack.settings import HaystackSettings

__all__ = ["HaystackProvider", "HaystackSettings", "KnowledgeComponent", "as_retriever", "create"]

_ROOMS = {"HaystackProvider": "provider", "HaystackSettings": "settings", "create": "provider"}


def __getattr__(name: str) -> Any:
    """Import a room when somebody enters it; only ``component`` imports Haystack."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS.get(name, 'component')}"), name)
