"""Finding adapters through entry points, and creating providers from them (protocol section 10)."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qak_core._redaction import safe_text
from qak_core.errors import AdapterConflict, AdapterLoadError, AdapterNotFound, CompositionError
from qak_core.provider import assert_provider

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
    installed = _installed()
    claims = Counter(info.name for info in installed if info.name)
    return [
        replace(info, problem=_conflict(installed, info.name)) if claims[info.name] > 1 else info for info in installed
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
    installed = _installed()
    found = [info for info in installed if info.name == name and name]
    if not found:
        raise AdapterNotFound(_how_to_get(name, installed))
    if len(found) > 1:
        raise AdapterConflict(_conflict(found, name))
    return _load(name, found[0].target)


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


def _installed() -> list[AdapterInfo]:
    """Read what distributions declare; one whose declaration is broken is an entry with a problem."""
    # Imported here: reading installed metadata pulls in email and zipfile, which a gateway may never need.
    from importlib_metadata import distributions

    found: dict[tuple[str, str], AdapterInfo] = {}
    for distribution in distributions():
        for info in _declared(distribution):
            # Seen twice, as an editable install beside a wheel: Python imports the first one.
            found.setdefault((info.distribution, info.name), info)
    return sorted(found.values(), key=lambda info: (info.name, info.distribution))


def _declared(distribution: Any) -> list[AdapterInfo]:
    name = "unknown"
    try:
        points = [point for point in distribution.entry_points if point.group == ENTRY_POINT_GROUP]
        if not points:  # most of them: their metadata need not be read
            return []
        name = re.sub(r"[-_.]+", "-", distribution.name or name).lower()
        return [_info(point.name, point.value, name, distribution.version) for point in points]
    except Exception as error:  # noqa: BLE001 - a broken distribution must stop nobody else
        problem = f"its metadata cannot be read: {type(error).__name__}"
        return [AdapterInfo(name="", distribution=name, version="", target="", problem=problem)]


def _info(name: str, target: str, distribution: str, version: str) -> AdapterInfo:
    return AdapterInfo(
        name=name, distribution=distribution, version=version, target=target, problem=_missing_module(target)
    )


def _conflict(installed: list[AdapterInfo], name: str) -> str:
    claimants = " and ".join(info.distribution for info in installed if info.name == name)
    return f"adapter {name!r} is claimed by {claimants}; uninstall one, or name the factory as 'module:factory'"


def _missing_module(target: str) -> str:
    package = target.partition(":")[0].partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    return "" if spec else f"module {package!r} cannot be found; reinstall the distribution"


def _how_to_get(name: str, installed: list[AdapterInfo]) -> str:
    if name in _KNOWN_DISTRIBUTIONS:
        return f"adapter {name!r} is not installed: pip install {_KNOWN_DISTRIBUTIONS[name]}"
    import difflib  # only a mistake needs it

    names = [info.name for info in installed if info.name]
    close = difflib.get_close_matches(name, [*names, *_KNOWN_DISTRIBUTIONS], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "a factory of your own is named 'package.module:factory'"
    known = ", ".join(names) or "none"
    return f"no installed distribution provides adapter {name[:200]!r} (installed: {known}); {hint}"


def _load(name: str, target: str) -> Factory:
    factory = _guarded(partial(_resolve, target), f"adapter {name!r} cannot be imported")
    if not callable(factory):
        raise AdapterLoadError(f"adapter {name!r} must name a callable create(settings), {target!r} is none")
    return factory  # type: ignore[no-any-return]


def _resolve(target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module_name.strip())
    for part in attribute.partition("[")[0].strip().split("."):
        found = getattr(found, part, None)
    return found


def _guarded(call: Callable[[], Any], what: str) -> Any:
    """Run foreign code at composition; its failure is reported redacted, and holds nothing of what it raised."""
    try:
        return call()
    except CompositionError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken adapter must stop nobody else
        reason = f"{type(error).__name__}: {safe_text(error)}"
    raise AdapterLoadError(f"{what}: {reason}")
