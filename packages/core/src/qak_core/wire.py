"""The JSON form of the protocol's values: the boundary's camelCase names (protocol sections 2 and 4).

:class:`~qak_core.RetrievalContext` has no wire form: what only a host may say never travels beside what a model says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from qak_core.errors import KnowledgeInvalidRequest, KnowledgeInvalidResponse
from qak_core.protocol import (
    KnowledgeBase,
    ProviderDescription,
    ProviderHealth,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
    Source,
)

WireValue = (
    KnowledgeBase
    | ProviderDescription
    | ProviderHealth
    | RetrievalRequest
    | RetrievalResponse
    | RetrievalResult
    | Source
)
_W = TypeVar("_W", bound=WireValue)

_WIRE_TYPES = WireValue.__args__
_NESTED: dict[tuple[type, str], type] = {
    (RetrievalResult, "source"): Source,
    (RetrievalResponse, "results"): RetrievalResult,
    (ProviderDescription, "knowledge_bases"): KnowledgeBase,
}
# Names that older gateways wrote, understood on input (clause ``response.fields``).
_OLDER_NAMES: dict[tuple[type, str], tuple[str, ...]] = {
    (RetrievalResult, "id"): ("chunkId", "chunk_id"),
    (RetrievalResult, "content"): ("text",),
    (Source, "uri"): ("url",),
}
_OLDER_SOURCE_FIELDS = {"documentId": "id", "document_id": "id", "title": "title", "url": "uri", "mimeType": "mimeType"}


def to_wire(value: WireValue) -> dict[str, Any]:
    """Return the JSON form of a protocol value: camelCase names, absent fields left out.

    Raises:
        TypeError: ``value`` has no wire form.
    """
    if not isinstance(value, _WIRE_TYPES):
        raise TypeError(f"{type(value).__name__} has no wire form")
    encoded = {_camel(field.name): _encode(getattr(value, field.name)) for field in fields(value)}
    return {name: item for name, item in encoded.items() if item is not None}


def from_wire(kind: type[_W], value: object) -> _W:
    """Read a protocol value from its JSON form; snake_case and older names are understood, unknown ones ignored.

    Shapes are checked here; bounds are checked where the value is used: a request by its class, a description by
    :func:`~qak_core.assert_provider`, results by :func:`~qak_core.normalize_response`.

    Raises:
        KnowledgeInvalidRequest: no :class:`~qak_core.RetrievalRequest` can be read from ``value``.
        KnowledgeInvalidResponse: nothing of another ``kind`` can be read from it.
    """
    invalid = KnowledgeInvalidRequest if kind is RetrievalRequest else KnowledgeInvalidResponse
    if kind is RetrievalResponse and isinstance(value, list):
        value = {"results": value}
    if not isinstance(value, Mapping):
        raise invalid(f"{kind.__name__} must be a JSON object, got {type(value).__name__}")
    if kind is RetrievalResult and value.get("source") is None:
        lifted = {name: value[older] for older, name in _OLDER_SOURCE_FIELDS.items() if value.get(older) is not None}
        value = {**value, "source": lifted or None}
    arguments = {}
    for field in fields(kind):
        names = (_camel(field.name), field.name, *_OLDER_NAMES.get((kind, field.name), ()))
        given = next((value[name] for name in names if value.get(name) is not None), None)
        if given is not None:
            arguments[field.name] = _decode(kind, field.name, given)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise invalid(f"{kind.__name__} needs {_camel(field.name)!r}")
    return kind(**arguments)


def _encode(value: object) -> Any:
    if isinstance(value, _WIRE_TYPES):
        return to_wire(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value


def _decode(kind: type, name: str, given: object) -> Any:
    inner = _NESTED.get((kind, name))
    if inner is None:
        return _checked(kind, name, given)
    if name == "source":
        return from_wire(inner, given)
    if not isinstance(given, list | tuple):
        raise KnowledgeInvalidResponse(f"{kind.__name__}.{name} must be a list, got {type(given).__name__}")
    return [from_wire(inner, {"id": item} if isinstance(item, str) else item) for item in given]


def _checked(kind: type, name: str, given: object) -> Any:
    """Check a plain field of what comes from a provider; a request checks itself."""
    if kind is RetrievalRequest:
        return given
    if kind is RetrievalResult and name == "id" and isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    expected: Any = {
        "score": (int, float),
        "metadata": Mapping,
        "capabilities": Mapping,
        "protocol_version": int,
        "degraded": list,
    }.get(name, str)
    if not isinstance(given, expected) or (name == "score" and isinstance(given, bool)):
        raise KnowledgeInvalidResponse(f"{kind.__name__}.{name} has the wrong type: {type(given).__name__}")
    return given


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
