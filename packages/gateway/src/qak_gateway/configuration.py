"""``qak.toml``: where it is found, what it may say, and the runtime that it describes."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

from qak_core import (
    CompositionError,
    KnowledgeRuntime,
    SettingsError,
    choose_provider,
    create_provider,
)
from qak_core.authoring import read_settings
from qak_core.normalization import MAX_CONTENT_CHARS

FILE_NAME = "qak.toml"
FILE_VARIABLE = "QAK_CONFIG"

NOT_CONFIGURED = """no provider is configured; one of these gives you one:
  - search a folder: qak search QUERY --library FOLDER
  - switch the local library on: set QWEN_AUDIO_DOMAIN_LIBRARY=on, then qak library add FILE
  - write a qak.toml with a table [provider] that names an adapter; qak adapters lists them"""

_TABLES = ("provider", "runtime")
_MAX_BYTES = 1024 * 1024  # of the file


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeSettings:
    """The table ``[runtime]``, named as the arguments of :class:`qak_core.KnowledgeRuntime`.

    Raises:
        ValueError: a number is out of its bounds.
    """

    timeout_s: float = 10.0
    health_timeout_s: float = 2.0
    close_timeout_s: float = 5.0
    max_in_flight: int = 64
    max_in_flight_per_owner: int = 16
    breaker_failures: int = 5  # on in the gateway, off in the core (clause runtime.breaker)
    breaker_cooldown_s: float = 30.0
    max_content_chars: int = MAX_CONTENT_CHARS
    language: Literal["en", "zh"] = "en"

    def __post_init__(self) -> None:
        problems = [
            f"{item.name} must be above 0, got {value!r}"
            for item in fields(self)
            if isinstance(value := getattr(self, item.name), int | float)
            and not (value > 0 or (item.name == "breaker_failures" and value == 0))
        ]
        if self.max_content_chars > MAX_CONTENT_CHARS:
            problems.append(f"max_content_chars may be {MAX_CONTENT_CHARS} at most, got {self.max_content_chars}")
        if problems:
            raise ValueError("\n".join(problems))


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """What a ``qak.toml`` says, or the defaults without one.

    Attributes:
        path: the file, as it was named; ``None`` without one.
        adapter: the table ``[provider]``'s ``adapter``; empty if no provider is configured.
        settings: the rest of that table, for the adapter.
        runtime: the table ``[runtime]``.
        problems: everything that is wrong, one sentence each.
    """

    path: Path | None = None
    adapter: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    problems: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """What a message about the problems is about: the file, unless it has nothing for this adapter."""
        if self.path and (self.problems or self.settings):
            return str(self.path)
        return f"adapter {self.adapter or 'local'!r} {'with these' if self.settings else 'without'} settings"

    def make_provider(self) -> Any:
        """Create the provider that is due (protocol section 11).

        Raises:
            CompositionError: it cannot be created, or none is configured.
        """
        configured = partial(create_provider, self.adapter, self.settings) if self.adapter else None
        provider = choose_provider(configured=configured)
        if provider is None:
            raise CompositionError(NOT_CONFIGURED)
        return provider

    @contextlib.contextmanager
    def directory(self) -> Iterator[None]:
        """Work in the directory of the file: its relative paths start there, and its modules are found there."""
        if self.path is None:
            yield
            return
        folder = self.path.absolute().parent
        importable_from(folder)
        with contextlib.chdir(folder) if folder.is_dir() else contextlib.nullcontext():
            yield


def find_configuration(given: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file to read: the one that was given, else ``$QAK_CONFIG``, else ``./qak.toml`` if there is one."""
    if given is not None:
        return given
    if named := environ.get(FILE_VARIABLE, "").strip():
        return Path(os.path.expanduser(named))
    path = Path(FILE_NAME)
    return path if path.is_file() else None


def read_configuration(path: Path | None) -> Configuration:
    """Read a file and collect its problems; an adapter's own settings are checked when its provider is made."""
    if path is None:
        return Configuration()
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            return Configuration(path=path, problems=(f"it has more than {_MAX_BYTES:,} bytes, the limit",))
        tables = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        return Configuration(path=path, problems=(f"it cannot be read: {error.strerror or type(error).__name__}",))
    except UnicodeDecodeError as error:
        return Configuration(path=path, problems=(f"it must be UTF-8 text, byte {error.start} is not",))
    except RecursionError:
        return Configuration(path=path, problems=("it is nested too deeply",))
    except ValueError as error:  # also of a number with thousands of digits, which is no TOMLDecodeError
        return Configuration(path=path, problems=(f"it is not TOML: {error}",))
    problems = [_unknown_table(name) for name in tables if name not in _TABLES]
    provider = _table(tables, "provider", problems)
    adapter = provider.pop("adapter", "")
    if "provider" in tables and (not isinstance(adapter, str) or not adapter.strip()):
        problems.append(
            "[provider] adapter is required: the name of an installed adapter (qak adapters lists them), "
            "or 'package.module:factory'"
        )
        adapter = ""
    return Configuration(
        path=path,
        adapter=adapter.strip(),
        settings=provider,
        runtime=_runtime(_table(tables, "runtime", problems), problems),
        problems=tuple(problems),
    )


async def make_provider(configuration: Configuration) -> Any:
    """Create the provider of a configuration that is right in every part.

    Raises:
        SettingsError: with every problem of the file and of the adapter's settings.
        CompositionError: there is no file, and the provider that is due without one cannot be created.
    """
    problems = list(configuration.problems)
    provider = None
    try:
        provider = configuration.make_provider()
    except SettingsError as error:
        problems += [f"[provider] {problem}" for problem in error.problems]
    except CompositionError as error:
        if not problems:
            raise
        if configuration.adapter:  # without one, that there is no provider follows from the other problems
            problems.append(str(error))
    if problems:
        await KnowledgeRuntime(provider).close()
        raise SettingsError(problems, subject=configuration.subject)
    return provider


@contextlib.asynccontextmanager
async def open_runtime(configuration: Configuration) -> AsyncIterator[KnowledgeRuntime]:
    """Compose the runtime that a configuration describes, and close it at the end.

    Inside, the configuration's directory is the working directory, and what a vendor prints goes to standard error.

    Raises:
        CompositionError: as :func:`make_provider` does.
    """
    with configuration.directory(), contextlib.redirect_stdout(sys.stderr):
        provider = await make_provider(configuration)
        async with KnowledgeRuntime(provider, **asdict(configuration.runtime)) as runtime:
            yield runtime


def importable_from(folder: Path) -> None:
    """Let modules of a folder be imported; behind all others, so that a file there can't stand in for a library."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _table(tables: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    table = tables.get(name, {})
    if isinstance(table, dict):
        return dict(table)
    problems.append(f"{name} must be one table, [{name}], got {type(table).__name__}")
    return {}


def _runtime(table: Mapping[str, Any], problems: list[str]) -> RuntimeSettings:
    found = []
    for key, value in table.items():  # each alone, so that a wrong type does not hide a number out of bounds
        try:
            read_settings(RuntimeSettings, {key: value})
        except SettingsError as error:
            found += [f"[runtime] {problem}" for problem in error.problems]
    problems += found
    return RuntimeSettings() if found else read_settings(RuntimeSettings, table)


def _unknown_table(name: str) -> str:
    close = difflib.get_close_matches(name, _TABLES, n=1)
    hint = f"did you mean [{close[0]}]?" if close else "known are [provider] and [runtime]"
    return f"unknown table or key {name[:80]!r}; {hint}"
