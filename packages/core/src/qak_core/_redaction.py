"""Taking credentials and private addresses out of text that people or models will read."""

from __future__ import annotations

import re

from qak_core._urls import public_url

REDACTED = "[redacted]"

# A look-behind lets each pattern start once a word, so that hostile text costs linear time.
_URL = re.compile(r"""(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://[^\s<>"'`]+""")
_CREDENTIAL_NAME = re.compile(
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|secret|token|passw(?:or)?d|authorization|credentials?|"
    r"cookie|session[_-]?id|signature|(?<![a-z])(?:auth|sig|pwd|jwt|pass))(?![a-z])"
)
_ASSIGNMENT = re.compile(
    r"""(?<![\w-])(?P<name>[\w-]+)(?P<sign>\\?["']?\s{0,4}[=:]\s{0,4})(?P<quote>\\?["']?)(?P<value>[^\s"',;&\\]+)"""
)
_KNOWN_SHAPE = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{12,}"  # OpenAI and those that copy its form
    r"|(?:AKIA|ASIA)[0-9A-Z]{12,}|LTAI\w{12,}|AIza[\w-]{20,}"  # cloud access keys
    r"|(?:gh[opsru]|hf|pypi|glpat|xox[abprs])[_-][\w-]{16,}"  # forges, hubs and chat
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|(?P<scheme>(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s{1,8})[\w.~+/=-]{6,})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\w\s+/=]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)


def redact_credentials(text: str) -> str:
    """Replace what looks like a key, token, password or an address that carries one by ``[redacted]``."""
    if "://" in text:
        text = _URL.sub(lambda found: REDACTED if _carries_credential(found[0]) else found[0], text)
    if "=" in text or ":" in text:
        text = _ASSIGNMENT.sub(_redact_assignment, text)
    return _KNOWN_SHAPE.sub(_redact_shape, text)


def redact(text: str) -> str:
    """Replace credentials, and every address that is not a public http(s) one, by ``[redacted]``."""
    if "://" in text:
        text = _URL.sub(lambda found: found[0] if public_url(found[0]) else REDACTED, text)
    return redact_credentials(text)


def names_credential(name: str) -> bool:
    """Whether a field of this name holds a credential, whatever its value looks like."""
    return bool(_CREDENTIAL_NAME.search(name.lower()))


def _carries_credential(url: str) -> bool:
    address, *parameters = re.split(r"[?#&;]", url.partition("://")[2])
    in_authority = "@" in address.partition("/")[0]
    return in_authority or any(names_credential(parameter.partition("=")[0]) for parameter in parameters)


def _redact_shape(found: re.Match[str]) -> str:
    return (found["scheme"] or "") + REDACTED


def _redact_assignment(found: re.Match[str]) -> str:
    name, sign, quote, value = found.group("name", "sign", "quote", "value")
    # "Password: rules" is a heading; "password: x7…", "password=…" and '"password": "…"' are not.
    is_label = sign.lstrip().startswith(":") and not (len(value) >= 4 and re.search(r"\d", value))
    if is_label or not names_credential(name[-64:]):
        return found[0]
    return f"{name}{sign}{quote}{REDACTED}"
