"""Reading an adapter's settings into its dataclass, with every problem at once (clause ``registry.factory``)."""

from __future__ import annotations

import difflib
import errno
import os
import stat
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from qak_core._redaction import redact
from qak_core.errors import SettingsError

_MAX_SECRET_BYTES = 64 * 1024

_T = TypeVar("_T")


class Secret:
    """A credential that shows itself only where it is asked for.

    Its ``repr`` and ``str`` hide the value; :meth:`reveal` gives it. Settings name it by reference, as ``env:NAME`` or
    ``file:PATH``, so that no configuration file holds it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the credential itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('[redacted]')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> Any:
        raise TypeError("a Secret cannot be pickled or copied into a file")


def read_settings(kind: type[_T], settings: Mapping[str, Any], *, subject: str = "the settings") -> _T:
    """Return ``kind(**settings)`` after checking names and types.

    ``kind`` is a dataclass whose fields are ``str``, ``bool``, ``int``, ``float``, :class:`~pathlib.Path`,
    :class:`Secret`, ``Literal`` texts, sequences of those or mappings from text to those, or a union of some with
    ``None``. A field typed ``Any`` or ``object`` takes what it gets. Numbers are not read from text, and booleans are
    not numbers. What the class itself finds wrong it raises as ``ValueError`` from ``__post_init__``, one problem a
    line.

    Args:
        kind: the settings' dataclass.
        settings: as read from ``qak.toml`` or given in code.
        subject: what to call them in the message.

    Raises:
        SettingsError: with every problem found: unknown keys with the nearest known one, missing keys, wrong types,
            secrets that are given inline or cannot be read.
    """
    hints = get_type_hints(kind)
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    problems = [_unknown(key, known) for key in settings if key not in known]
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in settings:
            try:
                values[name] = _read(hints[name], settings[name])
            except ValueError as error:
                problems.append(f"{name}: {error}")
        elif field.default is MISSING and field.default_factory is MISSING:
            problems.append(f"{name} is required: {_expected(hints[name])}")
    if not problems:
        try:
            return kind(**values)
        except ValueError as error:
            problems = str(error).splitlines()
    raise SettingsError(problems, subject=subject)


def _unknown(key: object, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(str(key), known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"
    return f"unknown key {redact(str(key)[:80])!r}; {hint}"


def _read(hint: Any, value: Any) -> Any:
    """Return the value as the type asks for it, or raise ``ValueError`` saying what was expected."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value
    if origin in (Union, types.UnionType):
        return _read_union(hint, arguments, value)
    if origin is Literal:
        if value in arguments and type(value) is not bool:
            return value
        if isinstance(value, str):
            raise ValueError(f"expected {_expected(hint)}, got another text")
    elif hint is Secret:
        return _read_secret(value)
    elif hint is Path:
        if isinstance(value, str | Path) and str(value):
            return _path(value)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {key: _read(arguments[1], item) for key, item in value.items()}
    elif isinstance(origin, type) and issubclass(origin, Sequence):
        if isinstance(value, list | tuple):
            return tuple(_read(arguments[0], item) for item in value)
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise ValueError(f"expected {_expected(hint)}, got {type(value).__name__}")


def _read_union(hint: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in arguments:
        return None
    choices = [argument for argument in arguments if argument is not type(None)]
    if len(choices) == 1:
        return _read(choices[0], value)
    for choice in choices:
        try:
            return _read(choice, value)
        except ValueError:
            continue
    raise ValueError(f"expected {_expected(hint)}, got {type(value).__name__}")


def _read_secret(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    scheme, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if scheme == "env" and name:
        if text := os.environ.get(name, "").strip():
            return Secret(text)
        raise ValueError(f"environment variable {redact(name)} is not set")
    if scheme == "file" and name:
        try:
            text = _secret_file(_path(name)).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"file {redact(name)} cannot be read: {type(error).__name__}") from None
        if text:
            return Secret(text)
        raise ValueError(f"file {redact(name)} is empty")
    raise ValueError("a secret is given by reference, as 'env:NAME' or 'file:PATH', never inline")


def _path(value: str | Path) -> Path:
    if "\0" in str(value):
        raise ValueError("a path holds no NUL")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError("the home directory that ~ stands for is not known; give the path in full") from None


def _secret_file(path: Path) -> bytes:
    """Return what a regular file holds; a device would have no end, and a pipe without a writer no beginning."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SECRET_BYTES:
            raise OSError(errno.EINVAL, "not a file that holds a secret")
        return stream.read(_MAX_SECRET_BYTES)


def _expected(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(argument) for argument in arguments if argument is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(repr(argument) for argument in arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a table of {_expected(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list of {_expected(arguments[0])}"
    names = {str: "text", bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}
    return names.get(hint, "'env:NAME' or 'file:PATH'" if hint is Secret else getattr(hint, "__name__", "a value"))
