"""What a provider must be, and the check that it is (protocol sections 1 and 9)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from qak_core._exact import attempt, exact_str
from qak_core._redaction import redact
from qak_core._text import clean, collapse, cut
from qak_core.errors import ProviderContractError
from qak_core.protocol import (
    MAX_KNOWLEDGE_BASE_ID_CHARS,
    PROTOCOL_VERSION,
    HealthState,
    KnowledgeBase,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
)

MAX_KEY_CHARS = 64
MAX_LABEL_CHARS = 120
MAX_CAPABILITIES = 16
MAX_HEALTH_MESSAGE_CHARS = 500

_KEY = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_HEALTH_STATES: tuple[HealthState, ...] = ("ready", "unconfigured", "degraded", "unavailable")
_UNREADABLE_HEALTH = ProviderHealth(status="unavailable", message="The health answer cannot be read.")


@runtime_checkable
class KnowledgeProvider(Protocol):
    """The two methods that every provider has (clause ``provider.shape``).

    ``async health() -> ProviderHealth`` and ``async close() -> None`` are optional. Nothing needs to be inherited: any
    object with these methods is a provider, and mappings in the wire shape do as well as the classes of this package.
    """

    def describe(self) -> ProviderDescription | Mapping[str, Any]:
        """Say who this is; called once, at composition."""
        ...

    async def retrieve(
        self, request: RetrievalRequest, context: RetrievalContext
    ) -> Sequence[RetrievalResult | Mapping[str, Any]] | RetrievalResponse | Mapping[str, Any]:
        """Find passages for ``request.query``, best first, for ``context.owner_id`` alone.

        Raises:
            KnowledgeError: one of its subclasses, raised ``from None`` and holding nothing of the vendor's.
        """
        ...


@runtime_checkable
class KnowledgeManagementProvider(Protocol):
    """The management extension: for clients with their own authorisation, never for a model (protocol section 9).

    ``read_document`` and ``update_document`` are further methods of those who can.
    """

    async def ingest(self, source: Any, context: RetrievalContext) -> Mapping[str, Any]:
        """Take in one document and describe it, with its ``id``."""
        ...

    async def list_documents(self, context: RetrievalContext) -> Sequence[Mapping[str, Any]]:
        """Describe the owner's documents."""
        ...

    async def remove_document(self, document_id: str, context: RetrievalContext) -> bool:
        """Remove one of the owner's documents; ``False`` when there is none with this id."""
        ...


def assert_provider(provider: object) -> ProviderDescription:
    """Check a provider at composition and return its description, frozen.

    Raises:
        ProviderContractError: with every problem found, not only the first.
    """
    problems: list[str] = []
    members = {name: _member(provider, name, problems) for name in ("describe", "retrieve", "health", "close")}
    for name, member in members.items():
        if name in {"health", "close"} and member is None:
            continue
        if not callable(member):
            optional = "is optional but " if name in {"health", "close"} else ""
            problems.append(f"{name} {optional}must be a method, got {_kind(member)}")
    if inspect.isasyncgenfunction(members["retrieve"]):
        problems.append("retrieve must return one answer, got an async generator")
    description = _describe(members["describe"], problems) if callable(members["describe"]) else None
    if problems or description is None:
        raise ProviderContractError(problems, subject=f"provider {type(provider).__name__}")
    return description


def read_health(answer: object) -> ProviderHealth:
    """Read what ``health()`` gave; anything unclear is ``unavailable``, never ``ready``."""
    return attempt(lambda: _health(answer), default=_UNREADABLE_HEALTH, what="a health answer")


def _health(answer: object) -> ProviderHealth:
    if isinstance(answer, ProviderHealth):
        status, message = answer.status, answer.message
    elif isinstance(answer, Mapping):
        status, message = answer.get("status"), answer.get("message")  # type: ignore[assignment]
    else:
        return _UNREADABLE_HEALTH
    state = next((state for state in _HEALTH_STATES if isinstance(status, str) and exact_str(status) == state), None)
    if state is None:
        return ProviderHealth(status="unavailable", message="The health answer names no known state.")
    text = cut(redact(collapse(message)), MAX_HEALTH_MESSAGE_CHARS) if isinstance(message, str) else ""
    return ProviderHealth(status=state, message=text)


def _member(provider: object, name: str, problems: list[str]) -> Any:
    try:
        return getattr(provider, name, None)
    except Exception as error:  # noqa: BLE001 - a foreign property; what it raised is the finding
        problems.append(f"{name} must be readable, reading it raised {type(error).__name__}")
        return None


def _describe(describe: Callable[[], object], problems: list[str]) -> ProviderDescription | None:
    try:
        described = describe()
        if not inspect.isawaitable(described):
            return _description(described, problems)
        if inspect.iscoroutine(described):
            described.close()
        problems.append("describe must be a plain method, got an async one")
    except Exception as error:  # noqa: BLE001 - foreign code; what it raised is the finding
        problems.append(f"describe() must return a description, it raised {type(error).__name__}")
    return None


def _description(described: object, problems: list[str]) -> ProviderDescription | None:
    if isinstance(described, ProviderDescription):
        fields: Mapping[str, Any] = {name: getattr(described, name) for name in ProviderDescription.__slots__}
    elif isinstance(described, Mapping):
        fields = described
    else:
        problems.append(f"describe() must return a description or a mapping, got {_kind(described)}")
        return None
    return ProviderDescription(
        protocol_version=_version(_either(fields, "protocol_version", "protocolVersion"), problems),
        key=_key(fields.get("key"), problems),
        label=_label(fields.get("label"), problems),
        capabilities=_capabilities(fields.get("capabilities"), problems),
        knowledge_bases=_knowledge_bases(_either(fields, "knowledge_bases", "knowledgeBases"), problems),
    )


def _either(fields: Mapping[str, Any], name: str, wire_name: str) -> Any:
    return fields[name] if name in fields else fields.get(wire_name)


def _version(value: object, problems: list[str]) -> int:
    if type(value) is not int or value != PROTOCOL_VERSION:
        problems.append(f"protocol_version must be the integer {PROTOCOL_VERSION}, got {_shown(value)}")
    return PROTOCOL_VERSION


def _key(value: object, problems: list[str]) -> str:
    if isinstance(value, str) and _KEY.fullmatch(value):
        return exact_str(value)
    problems.append(
        f"key must be 1 to {MAX_KEY_CHARS} lower-case letters, digits and inner hyphens, got {_shown(value)}"
    )
    return ""


def _label(value: object, problems: list[str]) -> str:
    label = collapse(value) if isinstance(value, str) else ""
    if not 0 < len(label) <= MAX_LABEL_CHARS:
        problems.append(f"label must be 1 to {MAX_LABEL_CHARS} characters of text, got {_shown(value)}")
    return label


def _capabilities(value: object, problems: list[str]) -> Mapping[str, bool]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"capabilities must be a mapping of names to booleans, got {_kind(value)}")
        return {}
    if len(value) > MAX_CAPABILITIES:
        problems.append(f"capabilities may hold {MAX_CAPABILITIES} entries, got {len(value)}")
    kept = {}
    for name, flag in value.items():
        # A capability is named as keys are; "knowledge_bases" shows that underscores count as hyphens.
        if not isinstance(name, str) or not _KEY.fullmatch(name.replace("_", "-")):
            problems.append(f"a capability's name must be lower-case letters, digits and hyphens, got {_shown(name)}")
        elif type(flag) is not bool:
            problems.append(f"capability {name!r} must be true or false, got {_shown(flag)}")
        else:
            kept[exact_str(name)] = flag
    return kept


def _knowledge_bases(value: object, problems: list[str]) -> tuple[KnowledgeBase, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        problems.append(f"knowledge_bases must be a list of ids, got {_kind(value)}")
        return ()
    pairs = value.items() if isinstance(value, Mapping) else map(_base_pair, value)
    bases: dict[str, KnowledgeBase] = {}
    for base_id, label in pairs:
        if not isinstance(base_id, str) or not 0 < len(clean(base_id).strip()) <= MAX_KNOWLEDGE_BASE_ID_CHARS:
            problems.append(
                f"a knowledge-base id must be 1 to {MAX_KNOWLEDGE_BASE_ID_CHARS} characters, got {_shown(base_id)}"
            )
            continue
        base_id = clean(base_id).strip()
        if base_id in bases:
            problems.append(f"knowledge-base ids must differ, got {_shown(base_id)} twice")
        text = cut(collapse(label), MAX_LABEL_CHARS) if isinstance(label, str) else ""
        bases[base_id] = KnowledgeBase(id=base_id, label=text)
    return tuple(bases.values())


def _base_pair(entry: object) -> tuple[object, object]:
    if isinstance(entry, KnowledgeBase):
        return entry.id, entry.label
    if isinstance(entry, Mapping):
        return entry.get("id"), entry.get("label")
    return entry, ""


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _shown(value: object) -> str:
    """Show a plain value; of anything else only the type, since a repr is foreign code and may hold a secret."""
    if isinstance(value, str):
        return repr(cut(redact(clean(value)), 80))
    if isinstance(value, bool | int | float) and type(value) in {bool, int, float} and abs(value) < 10**20:
        return f"{value!r} ({type(value).__name__})"
    return _kind(value)
