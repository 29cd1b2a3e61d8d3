"""Composes a knowledge provider and makes it usable from the command line."""

__all__: list[str] = []
