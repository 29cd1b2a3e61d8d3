"""What Haystack, its integrations and their clients raise, as a table; none of them is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qak_core import (
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidResponse,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)
from qak_core.authoring import ErrorTable

_MAX_DEPTH = 5

# By class name, whichever client it comes from: Haystack's integrations pass the errors of dozens of SDKs on.
_NAMES: dict[type[KnowledgeError], str] = {
    KnowledgeTimeout: "APITimeoutError ReadTimeout ConnectTimeout WriteTimeout PoolTimeout ConnectionTimeout "
    "ReadTimeoutError DeadlineExceeded",
    KnowledgeUnauthorized: "AuthenticationError PermissionDeniedError AuthenticationException AuthorizationException",
    KnowledgeRateLimited: "RateLimitError TooManyRequests ResourceExhausted",
    KnowledgeUnavailable: "APIConnectionError ConnectError ConnectionError NetworkError RemoteProtocolError "
    "ResponseHandlingException ServiceUnavailable",
}
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}


class HaystackErrors(ErrorTable):
    """An error table that looks through Haystack's wrapping and reads HTTP states."""

    def translate(self, error: BaseException) -> KnowledgeError:
        """Return a fresh error with a fixed text, holding nothing of ``error``.

        Pipelines and composed retrievers wrap what a component raised; the first cause that is known decides.
        """
        for reason in _reasons(error):
            if isinstance(reason, KnowledgeError):  # of a provider of ours that is a component of the pipeline
                return type(reason)()
            known = _by_status(reason) or _by_name(reason) or type(super().translate(reason))
            if known is not KnowledgeFailed:
                return known()
        return KnowledgeFailed()


def _reasons(error: BaseException) -> Iterator[BaseException]:
    """Walk from an error to its causes, but not over a wrapper whose cause is there to be asked."""
    reason: BaseException | None = error
    for _ in range(_MAX_DEPTH):
        if reason is None:
            return
        inner = reason.exceptions[0] if isinstance(reason, BaseExceptionGroup) else reason.__cause__
        if inner is None or type(reason).__name__ != "PipelineRuntimeError":
            yield reason
        reason = inner


def _by_name(error: BaseException) -> type[KnowledgeError] | None:
    return next((found for kind in type(error).__mro__ if (found := _BY_NAME.get(kind.__name__)) is not None), None)


def _by_status(error: BaseException) -> type[KnowledgeError] | None:
    """Read the HTTP status that clients keep in ``status_code``, or in that of their ``response``."""
    status: Any = getattr(error, "status_code", None)
    if type(status) is not int:
        status = getattr(getattr(error, "response", None), "status_code", None)
    if type(status) is not int:
        return None
    if status in {401, 403}:
        return KnowledgeUnauthorized
    if status in {408, 504}:
        return KnowledgeTimeout
    if status == 429:
        return KnowledgeRateLimited
    return KnowledgeUnavailable if status >= 500 else None


ERRORS = HaystackErrors(
    {
        "haystack.errors.FilterError": KnowledgeFiltersUnsupported,
        "haystack.document_stores.errors.errors.DocumentStoreError": KnowledgeUnavailable,
        "haystack.core.errors.PipelineRuntimeError": KnowledgeInvalidResponse,  # without a cause: no dict came back
    }
)
