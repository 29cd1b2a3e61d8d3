"""Vendors' errors as a table: by name, since LangChain passes on whatever its stores and embeddings raise."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from qak_adapter_langchain._filters import full_name
from qak_core import (
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)
from qak_core.authoring import ErrorTable

_MAX_CAUSES = 16

_log = logging.getLogger(__name__)

_MODEL_ERRORS: dict[type[Exception] | str, type[KnowledgeError]] = {
    f"langchain_core.exceptions.{name}": kind
    for name, kind in {
        "ModelAuthenticationError": KnowledgeUnauthorized,
        "ModelPermissionDeniedError": KnowledgeUnauthorized,
        "ModelRateLimitError": KnowledgeRateLimited,
        "ModelTimeoutError": KnowledgeTimeout,
        "ModelConnectionError": KnowledgeUnavailable,
        "ModelAPIError": KnowledgeUnavailable,
    }.items()
}

# Of clients that have classes of their own for the same thing; the module differs, the last name does not.
_BY_LAST_NAME: dict[str, type[KnowledgeError]] = {
    "AuthenticationError": KnowledgeUnauthorized,
    "AuthorizationError": KnowledgeUnauthorized,
    "ChromaAuthError": KnowledgeUnauthorized,
    "PermissionDeniedError": KnowledgeUnauthorized,
    "OAuthError": KnowledgeUnauthorized,
    "RateLimitError": KnowledgeRateLimited,
    "APITimeoutError": KnowledgeTimeout,
    "ReadTimeout": KnowledgeTimeout,
    "ConnectTimeout": KnowledgeTimeout,
    "WriteTimeout": KnowledgeTimeout,
    "PoolTimeout": KnowledgeTimeout,
    "DeadlineExceeded": KnowledgeTimeout,
    "Timeout": KnowledgeTimeout,
    "APIConnectionError": KnowledgeUnavailable,
    "TransportError": KnowledgeUnavailable,
    "ConnectionError": KnowledgeUnavailable,
    "ResponseHandlingException": KnowledgeUnavailable,
    "OSError": KnowledgeUnavailable,
}

_BY_STATUS: dict[int, type[KnowledgeError]] = {
    401: KnowledgeUnauthorized,
    403: KnowledgeUnauthorized,
    408: KnowledgeTimeout,
    429: KnowledgeRateLimited,
    504: KnowledgeTimeout,
}


class VendorErrors(ErrorTable):
    """The table, and beyond it what an HTTP client's error says by its name, its status or its cause."""

    def translate(self, error: BaseException) -> KnowledgeError:
        """Return a fresh error with a fixed text; the log gets the class of ``error`` and nothing that it says."""
        _log.warning("a LangChain call failed with %s", full_name(type(error)))
        for cause in _causes(error):
            found = super().translate(cause)
            if type(found) is not self._default:
                return found
            kind = _by_name(cause) or _by_status(cause)
            if kind is not None:
                return kind()
        return self._default()


ERRORS = VendorErrors(_MODEL_ERRORS)

FILTER_ERRORS = VendorErrors(
    {
        **_MODEL_ERRORS,
        ValueError: KnowledgeInvalidRequest,
        TypeError: KnowledgeInvalidRequest,
        LookupError: KnowledgeInvalidRequest,
        AttributeError: KnowledgeInvalidRequest,
    }
)
"""Where a caller's filter is passed on as it is, or is given to a host's translator: what stores say of a wrong one."""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk over an error, the members of a group, and what it was raised from."""
    waiting = [error]
    for _ in range(_MAX_CAUSES):
        if not waiting:
            return
        current = waiting.pop(0)
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
        if current.__cause__ is not None:
            waiting.append(current.__cause__)


def _by_name(error: BaseException) -> type[KnowledgeError] | None:
    return next((_BY_LAST_NAME[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _BY_LAST_NAME), None)


def _by_status(error: BaseException) -> type[KnowledgeError] | None:
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
    if type(status) is not int:
        return None
    return _BY_STATUS.get(status, KnowledgeUnavailable if status >= 500 else None)
