"""What vendors' clients raise, told by name, HTTP status and cause, so that none has to be installed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from qak_core.authoring.error_table import ErrorTable
from qak_core.errors import (
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)

_MAX_CAUSES = 16

_BY_STATUS: dict[int, type[KnowledgeError]] = {
    **dict.fromkeys((401, 403), KnowledgeUnauthorized),
    **dict.fromkeys((408, 504), KnowledgeTimeout),
    **dict.fromkeys((400, 404, 409, 413, 422), KnowledgeInvalidRequest),
    429: KnowledgeRateLimited,
}

# Clients differ in the module, not in the last part of a class's name.
_NAMES: dict[type[KnowledgeError], str] = {
    KnowledgeTimeout: "APITimeoutError ConnectTimeout ConnectionTimeout DeadlineExceeded ModelTimeoutError PoolTimeout "
    "ReadTimeout ReadTimeoutError ServerTimeoutError Timeout TimeoutException WriteTimeout",
    KnowledgeUnauthorized: "AuthenticationError AuthenticationException AuthorizationError AuthorizationException "
    "ChromaAuthError ModelAuthenticationError ModelPermissionDeniedError OAuthError PermissionDenied "
    "PermissionDeniedError Unauthenticated",
    KnowledgeRateLimited: "ModelRateLimitError RateLimitError ResourceExhausted TooManyRequests",
    KnowledgeUnavailable: "APIConnectionError ConnectError ConnectionError ModelConnectionError NetworkError "
    "RemoteProtocolError ResponseHandlingException ServiceUnavailable TransportError",
}
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}


class VendorErrors(ErrorTable):
    """An error table that also knows what HTTP clients, stores and model providers commonly raise.

    The first known one of an error, the members of a group and their causes decides: by the table, else by its HTTP
    status (``status_code``, also that of its ``response``), else by the last part of its class's name. What nothing
    knows is ``knowledge_unavailable``.
    """

    def __init__(
        self,
        table: Mapping[type[Exception] | str, type[KnowledgeError]] | None = None,
        *,
        wrappers: Collection[str] = (),
    ) -> None:
        """Create the table.

        Args:
            table: see :class:`ErrorTable`.
            wrappers: class names of errors that are asked only where they have no cause.
        """
        super().__init__(table or {}, default=KnowledgeUnavailable)
        self._wrappers = frozenset(wrappers)

    def translate(self, error: BaseException) -> KnowledgeError:
        """Return a fresh error with a fixed text, holding nothing of ``error``."""
        for cause in self._causes(error):
            found = type(cause) if isinstance(cause, KnowledgeError) else self.find(cause)
            if (known := found or _by_status(cause) or _by_name(cause)) is not None:
                return known()
        return KnowledgeUnavailable()

    def _causes(self, error: BaseException) -> Iterator[BaseException]:
        waiting = [error]
        for _ in range(_MAX_CAUSES):
            if not waiting:
                return
            current = waiting.pop(0)
            if current.__cause__ is None or type(current).__name__ not in self._wrappers:
                yield current
            if isinstance(current, BaseExceptionGroup):
                waiting += current.exceptions
            if current.__cause__ is not None:
                waiting.append(current.__cause__)


def _by_status(error: BaseException) -> type[KnowledgeError] | None:
    for holder in (error, getattr(error, "response", None)):
        if type(status := getattr(holder, "status_code", None)) is int:
            return _BY_STATUS.get(status, KnowledgeUnavailable if status >= 500 else None)
    return None


def _by_name(error: BaseException) -> type[KnowledgeError] | None:
    return next((_BY_NAME[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _BY_NAME), None)
