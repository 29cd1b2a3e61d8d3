"""Reading what a provider returned, which may raise when it is read, or lie about its value, length or order.

The ``exact_*`` functions return plain built-in values and call none of a subclass's methods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_log = logging.getLogger("qak_core")


def attempt(read: Callable[[], _T], *, default: _T, what: str) -> _T:
    """Read a foreign object; whatever it raises, ``default`` stands for it."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - even what is no Exception, as panics of other languages are not
        _log.debug("reading %s raised %s", what, type(error).__name__)
        return default


def exact_str(value: str) -> str:
    """Return the plain text of a string."""
    return str.__str__(value)


def exact_int(value: int) -> int:
    """Return the plain number of an integer."""
    return int.__int__(value)


def exact_float(value: float) -> float:
    """Return the plain number of a float."""
    return float.__float__(value)
