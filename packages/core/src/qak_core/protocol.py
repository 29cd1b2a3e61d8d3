"""The values that pass between a gateway and a provider (protocol sections 1, 2 and 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from qak_core._exact import exact_float, exact_int, exact_str
from qak_core._text import clean, cut
from qak_core.errors import (
    KnowledgeInvalidRequest,
    KnowledgeOwnerRequired,
    KnowledgeQueryRequired,
)
from qak_core.signals import CancelSignal

PROTOCOL_VERSION = 1

MAX_TOP_K = 8
DEFAULT_TOP_K = 5
MAX_QUERY_CHARS = 500
MAX_KNOWLEDGE_BASE_IDS = 8
MAX_KNOWLEDGE_BASE_ID_CHARS = 120
MAX_FILTERS_BYTES = 16 * 1024
MAX_FILTERS_DEPTH = 8

HealthState = Literal["ready", "unconfigured", "degraded", "unavailable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeBase:
    """A knowledge base that the system may publish to the model."""

    id: str
    label: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderDescription:
    """What a provider says of itself (clauses ``describe.*``); checked by :func:`qak_core.assert_provider`.

    Attributes:
        key: 1 to 64 lower-case letters, digits and inner hyphens.
        label: a name for people, at most 120 code points.
        protocol_version: the integer 1.
        capabilities: at most 16 booleans, descriptive only. Names in use: ``filters``, ``scores``, ``citations``,
            ``knowledge_bases``, ``management``.
        knowledge_bases: the knowledge bases that may be published to the model; empty for none.
    """

    key: str
    label: str
    protocol_version: int = PROTOCOL_VERSION
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    knowledge_bases: Sequence[KnowledgeBase] = ()

    def can(self, capability: str) -> bool:
        """Whether the capability is declared."""
        return self.capabilities.get(capability, False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderHealth:
    """How a provider is (clause ``health.states``).

    Attributes:
        status: one of the four states.
        message: for the operator, at most 500 code points; the runtime redacts addresses and keys in it.
    """

    status: HealthState
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether retrieval is worth trying: ready or degraded."""
        return self.status in {"ready", "degraded"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalRequest:
    """What a model may ask for (clauses ``request.*``); always valid once made.

    Args:
        query: 1 to 500 code points once cleaned and trimmed; longer text is cut.
        top_k: 1 to 8; an integer or an integral numeric string, clamped.
        knowledge_base_ids: at most 8 ids of at most 120 code points; blanks and duplicates are dropped.
        filters: JSON values only, depth at most 8, at most 16 KiB; copied. From the host program, never from a model.

    Raises:
        KnowledgeQueryRequired: the query is empty.
        KnowledgeInvalidRequest: an argument has the wrong type or is out of bounds.
    """

    query: str
    top_k: int = DEFAULT_TOP_K
    knowledge_base_ids: Sequence[str] = ()
    filters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", _valid_query(self.query))
        object.__setattr__(self, "top_k", valid_top_k(self.top_k))
        object.__setattr__(self, "knowledge_base_ids", _valid_ids(self.knowledge_base_ids))
        object.__setattr__(self, "filters", _valid_filters(self.filters))


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalContext:
    """On whose behalf, and how long; from the host only (clause ``context.trusted``).

    Raises:
        KnowledgeOwnerRequired: ``owner_id`` is blank or not text.
        KnowledgeInvalidRequest: another field is not of its type.
    """

    owner_id: str
    session_id: str = ""
    turn_id: str = ""
    trace_id: str = ""
    signal: CancelSignal = field(default_factory=CancelSignal)

    def __post_init__(self) -> None:
        if not isinstance(self.owner_id, str) or not self.owner_id.strip():
            raise KnowledgeOwnerRequired
        for name in ("session_id", "turn_id", "trace_id"):
            if not isinstance(getattr(self, name), str):
                raise KnowledgeInvalidRequest(f"{name} must be text, got {type(getattr(self, name)).__name__}")
        if not isinstance(self.signal, CancelSignal):
            raise KnowledgeInvalidRequest(f"signal must be a CancelSignal, got {type(self.signal).__name__}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where a result comes from; every field may be absent.

    Attributes:
        id: the vendor's or host's name of the document, at most 120 code points kept.
        title: for people, at most 300 code points kept.
        uri: published only if it is a public http(s) address.
        mime_type: at most 120 code points kept.
        locator: the place inside the document, such as ``page=3`` or a local path; at most 300 code points kept.
    """

    id: str | None = None
    title: str | None = None
    uri: str | None = None
    mime_type: str | None = None
    locator: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalResult:
    """One passage found by a provider.

    Attributes:
        id: unique in a response and stable over calls.
        content: the passage.
        score: higher is better; absent when the vendor gives none or a distance.
        source: where it comes from.
        metadata: flat; text, booleans and finite numbers.
    """

    id: str
    content: str
    score: float | None = None
    source: Source | None = None
    metadata: Mapping[str, str | bool | int | float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalResponse:
    """A provider's whole answer; a bare sequence of results says the same with nothing degraded.

    Attributes:
        results: in the provider's order of relevance.
        degraded: names of the parts (knowledge bases, composite sides) that failed, for the operator only.
    """

    results: Sequence[RetrievalResult]
    degraded: Sequence[str] = ()


def valid_top_k(value: object) -> int:
    """Read a ``top_k`` (clause ``request.top_k``): clamp to 1..8, refuse booleans and what is not integral.

    Raises:
        KnowledgeInvalidRequest: not an integer or an integral numeric string.
    """
    if isinstance(value, str):
        text = exact_str(value).strip()
        digits = text.removeprefix("-").removeprefix("+")
        if digits.isascii() and digits.isdigit() and len(text) - len(digits) <= 1:
            value = (-1 if text.startswith("-") else 1) * int(digits.lstrip("0")[:20] or "0")
    if isinstance(value, bool) or not isinstance(value, int):
        raise KnowledgeInvalidRequest(f"top_k must be an integer from 1 to {MAX_TOP_K}, got {type(value).__name__}")
    return max(1, min(exact_int(value), MAX_TOP_K))


def _valid_query(value: object) -> str:
    if not isinstance(value, str):
        raise KnowledgeInvalidRequest(f"query must be text, got {type(value).__name__}")
    query = cut(clean(value).strip(), MAX_QUERY_CHARS)
    if not query:
        raise KnowledgeQueryRequired
    return query


def _valid_ids(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise KnowledgeInvalidRequest(f"knowledge_base_ids must be a list of text, got {type(value).__name__}")
    if not all(isinstance(item, str) for item in value):
        raise KnowledgeInvalidRequest("knowledge_base_ids must hold text only")
    ids = tuple(dict.fromkeys(text for item in value if (text := clean(item).strip())))
    if len(ids) > MAX_KNOWLEDGE_BASE_IDS:
        raise KnowledgeInvalidRequest(f"knowledge_base_ids may hold {MAX_KNOWLEDGE_BASE_IDS} ids, got {len(ids)}")
    if any(len(text) > MAX_KNOWLEDGE_BASE_ID_CHARS for text in ids):
        raise KnowledgeInvalidRequest(f"a knowledge-base id may have {MAX_KNOWLEDGE_BASE_ID_CHARS} characters")
    return ids


def _valid_filters(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise KnowledgeInvalidRequest(f"filters must be a mapping, got {type(value).__name__}")
    try:
        copy = _copy_json(value, MAX_FILTERS_DEPTH)
        size = len(json.dumps(copy, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):  # NaN, an endless number, a lone surrogate, an object that lies about its class
        raise KnowledgeInvalidRequest("filters must hold JSON values only") from None
    if size > MAX_FILTERS_BYTES:
        raise KnowledgeInvalidRequest(f"filters may take {MAX_FILTERS_BYTES} bytes as JSON, got {size}")
    return copy or None


def _copy_json(value: object, depth: int) -> Any:
    """Copy a JSON value into plain types, so that neither side can change what the other holds."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return exact_str(value)
    if isinstance(value, int):
        return exact_int(value)
    if isinstance(value, float):
        return exact_float(value)
    if depth == 0:
        raise KnowledgeInvalidRequest(f"filters may be nested {MAX_FILTERS_DEPTH} deep")
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {exact_str(key): _copy_json(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy_json(item, depth - 1) for item in value]
    raise KnowledgeInvalidRequest(f"filters must hold JSON values only, got {type(value).__name__}")
