"""Protocol 1 of the knowledge-provider boundary, and the runtime that keeps retrieval safe."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from qak_core._urls import public_url
    from qak_core.answers import AnswerResult, Citation, KnowledgeAnswer
    from qak_core.composition import choose_provider
    from qak_core.errors import (
        AdapterConflict,
        AdapterLoadError,
        AdapterNotFound,
        CompositionError,
        KnowledgeBaseUnknown,
        KnowledgeBusy,
        KnowledgeCancelled,
        KnowledgeClosed,
        KnowledgeError,
        KnowledgeFailed,
        KnowledgeFiltersUnsupported,
        KnowledgeInvalidRequest,
        KnowledgeInvalidResponse,
        KnowledgeOwnerRequired,
        KnowledgeQueryRequired,
        KnowledgeRateLimited,
        KnowledgeTimeout,
        KnowledgeUnauthorized,
        KnowledgeUnavailable,
        KnowledgeUnconfigured,
        ProviderContractError,
        QakError,
        SettingsError,
    )
    from qak_core.normalization import normalize_response
    from qak_core.protocol import (
        PROTOCOL_VERSION,
        KnowledgeBase,
        ProviderDescription,
        ProviderHealth,
        RetrievalContext,
        RetrievalRequest,
        RetrievalResponse,
        RetrievalResult,
        Source,
    )
    from qak_core.provider import KnowledgeManagementProvider, KnowledgeProvider, assert_provider
    from qak_core.registry import AdapterInfo, create_provider, list_adapters, load_adapter
    from qak_core.runtime import KnowledgeRuntime
    from qak_core.signals import CancelSignal
    from qak_core.tool import KnowledgeTool
    from qak_core.wire import from_wire, to_wire

_HOMES = {
    "_urls": "public_url",
    "answers": "AnswerResult Citation KnowledgeAnswer",
    "composition": "choose_provider",
    "errors": (
        "AdapterConflict AdapterLoadError AdapterNotFound CompositionError KnowledgeBaseUnknown "
        "KnowledgeBusy KnowledgeCancelled KnowledgeClosed KnowledgeError KnowledgeFailed "
        "KnowledgeFiltersUnsupported KnowledgeInvalidRequest KnowledgeInvalidResponse "
        "KnowledgeOwnerRequired KnowledgeQueryRequired KnowledgeRateLimited KnowledgeTimeout "
        "KnowledgeUnauthorized KnowledgeUnavailable KnowledgeUnconfigured ProviderContractError QakError "
        "SettingsError"
    ),
    "normalization": "normalize_response",
    "protocol": (
        "PROTOCOL_VERSION KnowledgeBase ProviderDescription ProviderHealth RetrievalContext "
        "RetrievalRequest RetrievalResponse RetrievalResult Source"
    ),
    "provider": "KnowledgeManagementProvider KnowledgeProvider assert_provider",
    "registry": "AdapterInfo create_provider list_adapters load_adapter",
    "runtime": "KnowledgeRuntime",
    "signals": "CancelSignal",
    "tool": "KnowledgeTool",
    "wire": "from_wire to_wire",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "PROTOCOL_VERSION",
    "AdapterConflict",
    "AdapterInfo",
    "AdapterLoadError",
    "AdapterNotFound",
    "AnswerResult",
    "CancelSignal",
    "Citation",
    "CompositionError",
    "KnowledgeAnswer",
    "KnowledgeBase",
    "KnowledgeBaseUnknown",
    "KnowledgeBusy",
    "KnowledgeCancelled",
    "KnowledgeClosed",
    "KnowledgeError",
    "KnowledgeFailed",
    "KnowledgeFiltersUnsupported",
    "KnowledgeInvalidRequest",
    "KnowledgeInvalidResponse",
    "KnowledgeManagementProvider",
    "KnowledgeOwnerRequired",
    "KnowledgeProvider",
    "KnowledgeQueryRequired",
    "KnowledgeRateLimited",
    "KnowledgeRuntime",
    "KnowledgeTimeout",
    "KnowledgeTool",
    "KnowledgeUnauthorized",
    "KnowledgeUnavailable",
    "KnowledgeUnconfigured",
    "ProviderContractError",
    "ProviderDescription",
    "ProviderHealth",
    "QakError",
    "RetrievalContext",
    "RetrievalRequest",
    "RetrievalResponse",
    "RetrievalResult",
    "SettingsError",
    "Source",
    "assert_provider",
    "choose_provider",
    "create_provider",
    "from_wire",
    "list_adapters",
    "load_adapter",
    "normalize_response",
    "public_url",
    "to_wire",
]


def __getattr__(name: str) -> typing.Any:
    """Load a name with its module when it is first asked for: listing adapters needs no normaliser."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
