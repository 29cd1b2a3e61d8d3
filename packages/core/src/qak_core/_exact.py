"""Plain built-in values from instances of subclasses, calling none of the subclass's methods.

What a provider returns may be a subclass that lies about its value, its length or its order.
"""

from __future__ import annotations


def exact_str(value: str) -> str:
    """Return the plain text of a string."""
    return str.__str__(value)


def exact_int(value: int) -> int:
    """Return the plain number of an integer."""
    return int.__int__(value)


def exact_float(value: float) -> float:
    """Return the plain number of a float."""
    return float.__float__(value)
