"""Taking credentials and private addresses out of text that people or models will read."""

from __future__ import annotations

import re

from qak_core._text import collapse, cut
from qak_core._urls import public_url

REDACTED = "[redacted]"

# A look-behind lets each pattern start once a word, so that hostile text costs linear time.
_URL = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z0-9+.-]+://|(?:https?|wss?):[/\\]*|(?:file|ftp):[/\\]|(?:java|vb)script:|data:[a-z]+/)"
    r"""[^\s<>"'`]+""",
    re.ASCII | re.IGNORECASE,
)
_CREDENTIAL_NAME = re.compile(
    r"(?:(?:api|access|account|private|secret|signing)[_-]?key(?:[_-]?id)?|secret|token|passw(?:or)?d|passphrase|"
    r"authorization|credentials?|cookie|session[_-]?id|signature|(?<![a-z])(?:auth|sig|pwd|jwt|pass))(?![a-z])"
)
_ASSIGNMENT = re.compile(r"""(?<![\w-])(?P<name>[\w-]+)(?P<sign>\\?["']?\s{0,4}[=:]\s{0,4})""")
_VALUE = re.compile(r"""(?P<quote>\\?["'])(?:(?!(?P=quote)).){1,500}|[^\s"',;&\\]+""")
_KNOWN_SHAPE = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{12,}"  # OpenAI and those that copy its form
    r"|(?:AKIA|ASIA)[0-9A-Z]{12,}|LTAI\w{12,}|AIza[\w-]{20,}|ya29\.[\w-]{16,}"  # clouds
    r"|(?:gh[opsru]|github_pat|hf|pypi|glpat|xox[abprs])[_-][\w-]{16,}"  # forges, hubs and chat
    r"|[srp]k_(?:live|test)_\w{8,}"  # payment
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|(?P<scheme>(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s{1,8})[\w.~+/=-]{6,})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\w\s+/=]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)

_SHORTEST_SHAPE = len("Basic abcdef")


def redact_credentials(text: str) -> str:
    """Replace what looks like a key, token, password or an address that carries one by ``[redacted]``."""
    if ":" in text:
        text = _URL.sub(lambda found: REDACTED if _carries_credential(found[0]) else found[0], text)
    if "=" in text or ":" in text:
        text = _redact_assignments(text)
    return _KNOWN_SHAPE.sub(_redact_shape, text) if len(text) >= _SHORTEST_SHAPE else text


def redact(text: str) -> str:
    """Replace credentials, and every address that is not a public http(s) one, by ``[redacted]``."""
    if ":" in text:
        text = _URL.sub(lambda found: found[0] if public_url(found[0]) else REDACTED, text)
    return redact_credentials(text)


def names_credential(name: str) -> bool:
    """Whether a field of this name holds a credential, whatever its value looks like."""
    return bool(_CREDENTIAL_NAME.search(name.lower()))


def safe_text(error: BaseException | None) -> str:
    """Return what a foreign exception says, redacted and on one line of at most 500 characters, for the operator."""
    try:
        return cut(redact(collapse(str(error)[:2000])), 500) if error is not None else ""
    except Exception as failure:  # noqa: BLE001 - a foreign __str__ may raise anything
        return f"its text raised {type(failure).__name__}"


def _carries_credential(url: str) -> bool:
    address, *parameters = re.split(r"[?#&;]", url.partition(":")[2].lstrip("/\\"))
    in_authority = "@" in address.partition("/")[0]
    return in_authority or any(names_credential(parameter.partition("=")[0]) for parameter in parameters)


def _redact_shape(found: re.Match[str]) -> str:
    return (found["scheme"] or "") + REDACTED


def _redact_assignments(text: str) -> str:
    kept = []
    position = 0
    for assignment in _ASSIGNMENT.finditer(text):
        if assignment.start() < position or not names_credential(assignment["name"][-64:]):
            continue
        value = _VALUE.match(text, assignment.end())
        if value is not None and not _is_heading(assignment["sign"], value):
            kept += [text[position : assignment.end()], value["quote"] or "", REDACTED]
            position = value.end()
    return "".join([*kept, text[position:]])


def _is_heading(sign: str, value: re.Match[str]) -> bool:
    """Whether this is "Password: rules"; "password: x7…", "password=…" and '"password": "…"' are not."""
    plain_colon = sign.lstrip().startswith(":") and not value["quote"]
    return plain_colon and not (len(value[0]) >= 4 and re.search(r"\d", value[0]))
