"""Finding adapters through entry points, and creating providers from them (protocol section 10)."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from qak_core._redaction import redact
from qak_core.errors import (
    AdapterConflict,
    AdapterLoadError,
    AdapterNotFound,
    CompositionError,
    KnowledgeError,
)
from qak_core.provider import assert_provider

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

ENTRY_POINT_GROUP = "qak.providers.v1"

_KNOWN_DISTRIBUTIONS = {
    name: f"qak-adapter-{name}"
    for name in ("langchain", "llamaindex", "haystack", "openai-filesearch", "mcp", "http", "local")
}
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

Factory = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterInfo:
    """An installed adapter, as its distribution declares it; nothing of it has been imported.

    Attributes:
        name: what settings call it.
        distribution: who provides it.
        version: of the distribution.
        target: ``module:attribute`` of its factory.
        problem: why it cannot be used, empty if nothing speaks against it.
    """

    name: str
    distribution: str
    version: str
    target: str
    problem: str = ""


def list_adapters() -> list[AdapterInfo]:
    """List the installed adapters by name, importing none of them (clause ``registry.lazy``).

    Two distributions that claim one name are both listed, each with the conflict as its problem.
    """
    found = sorted(_entry_points(), key=lambda entry: (entry.name, _distribution(entry)))
    names = [entry.name for entry in found]
    return [
        AdapterInfo(
            name=entry.name,
            distribution=_distribution(entry),
            version=entry.dist.version if entry.dist else "",
            target=entry.value,
            problem=_conflict(found, entry.name) if names.count(entry.name) > 1 else _missing_module(entry.value),
        )
        for entry in found
    ]


def load_adapter(name: str) -> Factory:
    """Import one adapter and return its factory ``create(settings) -> provider``.

    Args:
        name: an entry point's name, or ``"package.module:factory"`` (clause ``registry.direct``).

    Raises:
        AdapterNotFound: no distribution provides it; the message says which one to install.
        AdapterConflict: two distributions claim the name; the message names both.
        AdapterLoadError: importing it failed, or what it names is no callable.
    """
    if ":" in name:
        if not _TARGET.fullmatch(name):
            raise AdapterNotFound(f"a direct target reads 'package.module:factory', got {name[:200]!r}")
        return _load(name, name)
    found = [entry for entry in _entry_points() if entry.name == name]
    if not found:
        raise AdapterNotFound(_how_to_get(name))
    if len(found) > 1:
        raise AdapterConflict(_conflict(found, name))
    return _load(name, found[0].value)


def create_provider(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Load an adapter, create its provider and check it.

    Args:
        name: as for :func:`load_adapter`.
        settings: the adapter's own; it checks them and lists every problem.

    Raises:
        SettingsError: the adapter cannot use the settings.
        ProviderContractError: what it made is no provider.
        AdapterNotFound: see :func:`load_adapter`.
        AdapterConflict: see :func:`load_adapter`.
        AdapterLoadError: importing it or creating the provider failed.
    """
    factory = load_adapter(name)
    provider = _guarded(partial(factory, dict(settings or {})), f"adapter {name!r} could not create its provider")
    assert_provider(provider)
    return provider


def _entry_points() -> list[EntryPoint]:
    # Imported here: reading installed metadata pulls in email and zipfile, which a gateway may never need.
    from importlib_metadata import entry_points

    # One distribution may be seen twice on the path (an editable install beside a wheel): the first one counts.
    unique = {(_distribution(entry), entry.name): entry for entry in reversed(entry_points(group=ENTRY_POINT_GROUP))}
    return list(unique.values())


def _distribution(entry: EntryPoint) -> str:
    name: str = entry.dist.name if entry.dist else "unknown"
    return re.sub(r"[-_.]+", "-", name).lower()


def _conflict(found: list[EntryPoint], name: str) -> str:
    claimants = " and ".join(sorted({_distribution(entry) for entry in found if entry.name == name}))
    return f"adapter {name!r} is claimed by {claimants}; uninstall one, or name the factory as 'module:factory'"


def _missing_module(target: str) -> str:
    package = target.partition(":")[0].partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    return "" if spec else f"module {package!r} cannot be found; reinstall the distribution"


def _how_to_get(name: str) -> str:
    if name in _KNOWN_DISTRIBUTIONS:
        return f"adapter {name!r} is not installed: pip install {_KNOWN_DISTRIBUTIONS[name]}"
    import difflib  # only a mistake needs it

    installed = [info.name for info in list_adapters()]
    close = difflib.get_close_matches(name, [*installed, *_KNOWN_DISTRIBUTIONS], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return (
        f"no installed distribution provides adapter {name[:200]!r} (installed: {', '.join(installed) or 'none'}){hint}"
    )


def _load(name: str, target: str) -> Factory:
    module_name, _, attribute = target.partition(":")
    module = _guarded(partial(importlib.import_module, module_name.strip()), f"adapter {name!r} cannot be imported")
    factory: Any = module
    for part in attribute.partition("[")[0].strip().split("."):
        factory = getattr(factory, part, None)
    if not callable(factory):
        raise AdapterLoadError(f"adapter {name!r} must name a callable create(settings), {target!r} is none")
    return factory  # type: ignore[no-any-return]


def _guarded(call: Callable[[], Any], what: str) -> Any:
    """Run foreign code at composition; its failure is reported redacted, and holds nothing of what it raised."""
    try:
        return call()
    except CompositionError:
        raise
    except KnowledgeError as error:
        reason = error.message
    except Exception as error:  # noqa: BLE001 - a broken adapter must stop nobody else
        reason = f"{type(error).__name__}: {error}"
    raise AdapterLoadError(f"{what}: {redact(reason)[:500]}")
