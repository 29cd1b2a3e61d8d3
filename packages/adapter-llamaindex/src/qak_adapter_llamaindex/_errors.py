"""What goes wrong under a LlamaIndex retriever, as errors of the protocol.

LlamaIndex has hardly any errors of its own: a failure comes from Python, or from the client of the embedding model or
vector store. Those are known by name, so that none has to be installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from qak_core import (
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)
from qak_core.authoring import ErrorTable

_MAX_CAUSES = 5

_BY_STATUS: dict[int, type[KnowledgeError]] = {
    **dict.fromkeys((401, 403), KnowledgeUnauthorized),
    **dict.fromkeys((408, 504), KnowledgeTimeout),
    **dict.fromkeys((400, 404, 409, 413, 422), KnowledgeInvalidRequest),
    429: KnowledgeRateLimited,
}

_BY_NAME: dict[str, type[KnowledgeError]] = {
    **dict.fromkeys(
        (
            *("APITimeoutError", "DeadlineExceeded", "ServerTimeoutError", "Timeout", "TimeoutException"),
            *("ConnectTimeout", "PoolTimeout", "ReadTimeout", "WriteTimeout"),
        ),
        KnowledgeTimeout,
    ),
    **dict.fromkeys(
        (
            "AuthenticationError",
            "AuthenticationException",
            "PermissionDenied",
            "PermissionDeniedError",
            "Unauthenticated",
        ),
        KnowledgeUnauthorized,
    ),
    **dict.fromkeys(("RateLimitError", "ResourceExhausted", "TooManyRequests"), KnowledgeRateLimited),
}
"""The last part of a class's name; clients differ in the module, not in that."""


class _LlamaIndexErrors(ErrorTable):
    """Looks at names and HTTP statuses, through wrappers such as a retry's; what nothing knows is ``unavailable``."""

    def translate(self, error: BaseException) -> KnowledgeError:
        """Return a fresh error with a fixed text, holding nothing of ``error``."""
        for link in _causes(error):
            names = (kind.__name__ for kind in type(link).__mro__)
            named = next((_BY_NAME[name] for name in names if name in _BY_NAME), None)
            if (known := named or _BY_STATUS.get(_status(link))) is not None:
                return known()
            failure = super().translate(link)
            if type(failure) is not self._default:
                return failure
        return KnowledgeUnavailable()


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if link is None:
            return
        if isinstance(link, BaseExceptionGroup):
            link = link.exceptions[0]
        yield link
        link = link.__cause__


def _status(error: BaseException) -> int:
    for holder in (error, getattr(error, "response", None)):
        if type(status := getattr(holder, "status_code", None)) is int:
            return status
    return 0


ERRORS = _LlamaIndexErrors({}, default=KnowledgeError)
