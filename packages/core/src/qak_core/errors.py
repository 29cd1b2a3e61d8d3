"""Every way a retrieval or a composition can fail, as one tree of exceptions.

Retrieval errors carry a code from a closed list and a text written here, never a vendor's (protocol clauses
``runtime.errors`` and section 8). Composition errors are for the operator who assembles a gateway.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class QakError(Exception):
    """Root of everything this project raises on purpose."""


class KnowledgeError(QakError):
    """A retrieval that failed.

    Raise one of the subclasses; the base itself stands for ``knowledge_failed``.

    Attributes:
        code: one of the fifteen codes of protocol section 8.
        message: a fixed text, safe to show to a model.
        retryable: whether the same call may succeed later without a change.
    """

    code: ClassVar[str] = "knowledge_failed"
    text: ClassVar[str] = "The knowledge source could not answer."
    retryable: ClassVar[bool] = True

    def __init__(self, message: str | None = None) -> None:
        """Create the error.

        Args:
            message: a text of the caller's own instead of the fixed one. It must hold nothing that came from a vendor;
                the runtime replaces it by the fixed text before anything reaches a model.
        """
        self.message = message or self.text
        super().__init__(self.message)

    def to_dict(self) -> dict[str, object]:
        """Return the error envelope of protocol section 7, with the fixed text only."""
        return {"status": "error", "code": self.code, "message": self.text, "retryable": self.retryable}


class KnowledgeFailed(KnowledgeError):
    """The provider failed in a way that no other code names."""


class KnowledgeQueryRequired(KnowledgeError):
    """The query is empty once trimmed."""

    code = "knowledge_query_required"
    text = "A non-empty query is required."
    retryable = False


class KnowledgeOwnerRequired(KnowledgeError):
    """The host gave no owner, so nothing may be retrieved."""

    code = "knowledge_owner_required"
    text = "The host did not say on whose behalf to search."
    retryable = False


class KnowledgeBaseUnknown(KnowledgeError):
    """A knowledge-base id was asked for that the system has not published."""

    code = "knowledge_base_unknown"
    text = "One of the knowledge_base_ids does not exist. Use only ids that the tool lists."
    retryable = False


class KnowledgeFiltersUnsupported(KnowledgeError):
    """Filters were given to a provider that cannot apply them."""

    code = "knowledge_filters_unsupported"
    text = "This knowledge source cannot apply these filters."
    retryable = False


class KnowledgeInvalidRequest(KnowledgeError):
    """An argument has the wrong type or shape."""

    code = "knowledge_invalid_request"
    text = "The arguments are not valid: query is text, knowledge_base_ids a list of ids, top_k a number from 1 to 8."
    retryable = False


class KnowledgeUnconfigured(KnowledgeError):
    """No provider is composed, or the provider lacks its configuration."""

    code = "knowledge_unconfigured"
    text = "No knowledge source is configured."
    retryable = False


class KnowledgeUnavailable(KnowledgeError):
    """The knowledge system cannot be reached now."""

    code = "knowledge_unavailable"
    text = "The knowledge source is not available now."


class KnowledgeUnauthorized(KnowledgeError):
    """The knowledge system refused the provider's credentials."""

    code = "knowledge_unauthorized"
    text = "The knowledge source refused access."
    retryable = False


class KnowledgeRateLimited(KnowledgeError):
    """The knowledge system asked for fewer requests."""

    code = "knowledge_rate_limited"
    text = "The knowledge source is receiving too many requests."


class KnowledgeTimeout(KnowledgeError):
    """The deadline passed before an answer came."""

    code = "knowledge_timeout"
    text = "The knowledge source did not answer in time."


class KnowledgeCancelled(KnowledgeError):
    """The caller gave up waiting."""

    code = "knowledge_cancelled"
    text = "The search was cancelled."
    retryable = False


class KnowledgeBusy(KnowledgeError):
    """Too many retrievals are in flight."""

    code = "knowledge_busy"
    text = "Too many searches are running at once."


class KnowledgeClosed(KnowledgeError):
    """The runtime or provider was closed before the retrieval."""

    code = "knowledge_closed"
    text = "The knowledge source has been closed."
    retryable = False


class KnowledgeInvalidResponse(KnowledgeError):
    """The provider's answer does not have the shape of the protocol."""

    code = "knowledge_invalid_response"
    text = "The knowledge source gave an answer that cannot be read."
    retryable = False


ERRORS_BY_CODE: dict[str, type[KnowledgeError]] = {error.code: error for error in KnowledgeError.__subclasses__()}
"""Code to class, the closed list of protocol section 8."""


class CompositionError(QakError):
    """Something is wrong with how a gateway is put together; for its operator, never for a model."""


class ProviderContractError(CompositionError):
    """A provider does not have the shape of the protocol.

    Attributes:
        problems: every problem found, one sentence each.
    """

    def __init__(self, problems: Iterable[str], *, subject: str = "the provider") -> None:
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{subject} does not follow protocol 1:{lines}")


class SettingsError(CompositionError):
    """The settings of an adapter cannot be used.

    Attributes:
        problems: every problem found, one sentence each; secrets are never among them.
    """

    def __init__(self, problems: Iterable[str], *, subject: str = "the settings") -> None:
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{subject} cannot be used:{lines}")


class AdapterNotFound(CompositionError):
    """No installed distribution provides the adapter that was named."""


class AdapterConflict(CompositionError):
    """Two distributions claim the same adapter name."""


class AdapterLoadError(CompositionError):
    """An adapter is installed but cannot be loaded or created."""
