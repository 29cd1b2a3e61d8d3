"""Which URLs may leave as a citation (protocol section 5)."""

from __future__ import annotations

from qak_core._exact import exact_str

MAX_URL_CHARS = 2048


def public_url(value: object) -> str | None:
    """Return the canonical form of a public http(s) URL, or ``None`` when it may not be published.

    The address is parsed as browsers do (WHATWG), never resolved: whoever fetches it must check again when connecting.

    Args:
        value: anything; only a string of at most 2,048 characters can pass.

    Returns:
        The URL with its host as A-labels and without fragment and trailing dot, at most 2,048 characters.
    """
    if not isinstance(value, str):
        return None
    text = exact_str(value)
    if len(text) > MAX_URL_CHARS or text.lstrip(" \t\r\n")[:4].lower() != "http":
        return None
    # Imported here: the parser and the address tables cost more to load than all the rest of this package.
    from qak_core._addresses import canonical_public_url

    return canonical_public_url(text.strip(" \t\r\n"))
