"""The public-address rule in full (protocol section 12); imported when the first URL is looked at."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

import ada_url

from qak_core._urls import MAX_URL_CHARS

_START = re.compile(r"https?://+", re.IGNORECASE)
# Controls, bidi and other format characters, surrogates: none of them belongs into an address.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

# Not ipaddress.is_global: its table differs between patch releases of Python.
_PRIVATE_V4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
        "192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 "
        "198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
    ).split()
]
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_PRIVATE_V6 = [
    ipaddress.IPv6Network(network)
    for network in "2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48".split()
]

_SPECIAL_LAST_LABELS = frozenset(
    "localhost local internal intranet lan home corp private localdomain domain test invalid onion alt arpa svc "
    "cluster consul docker kube".split()
)
_WILDCARD_SERVICES = frozenset("nip.io sslip.io xip.io localtest.me lvh.me vcap.me lacolhost.com traefik.me".split())
_EMBEDDED_QUAD = re.compile(r"(?=(?<!\d)(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?!\d))")

_CREDENTIAL_PARAMETERS = frozenset(
    "x-amz-signature x-amz-credential x-amz-security-token x-goog-signature x-goog-credential x-oss-signature "
    "ossaccesskeyid awsaccesskeyid signature sig access_token id_token refresh_token token auth api_key apikey secret "
    "password passwd pwd jwt session sessionid".split()
)


@lru_cache(maxsize=1024)
def canonical_public_url(text: str) -> str | None:
    """Return the canonical form of a public URL, or ``None``; see :func:`qak_core.public_url`."""
    if not _has_plain_form(text):
        return None
    try:
        url = ada_url.URL(text)
    except ValueError:
        return None
    if url.username or url.password or url.port == "0" or _has_credential(url.search):
        return None
    host = url.hostname.removesuffix(".")
    if not _is_public_host(host):
        return None
    url.hostname = host
    url.hash = ""
    return url.href if len(url.href) <= MAX_URL_CHARS else None


def _has_plain_form(text: str) -> bool:
    """Check what parsers disagree about, before any of them has repaired it."""
    start = _START.match(text)
    if start is None or not start[0].endswith("://") or _FORBIDDEN.search(text):
        return False
    authority = re.split(r"[/?#]", text[start.end() :], maxsplit=1)[0]
    before_query = text.partition("?")[0]
    return bool(authority) and "\\" not in before_query and not re.search(r"[@\s]", authority)


def _has_credential(search: str) -> bool:
    return any(name.lower() in _CREDENTIAL_PARAMETERS for name in ada_url.URLSearchParams(search).keys())  # noqa: SIM118 - not a mapping


def _is_public_host(host: str) -> bool:
    if host.startswith("["):
        v6 = ipaddress.IPv6Address(host[1:-1])
        return v6 in _GLOBAL_V6 and not any(v6 in network for network in _PRIVATE_V6)
    if re.fullmatch(r"[\d.]+", host):  # the parser has brought every IPv4 spelling into this form
        return _is_public_v4(host)
    return _is_public_name(host)


def _is_public_v4(host: str) -> bool:
    try:
        v4 = ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return not any(v4 in network for network in _PRIVATE_V4)


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(labels) >= 2
        and len(host) <= 253
        and all(0 < len(label) <= 63 for label in labels)
        and all(_decodes(label) for label in labels if label.startswith("xn--"))
        and labels[-1] not in _SPECIAL_LAST_LABELS
        and ".".join(labels[-2:]) not in _WILDCARD_SERVICES
        and all(_is_public_v4(quad) for quad in _embedded_quads(host))
    )


def _decodes(label: str) -> bool:
    encoded = label.removeprefix("xn--")
    try:
        decoded = encoded.encode("ascii").decode("punycode")
        return decoded.isprintable() and not decoded.isascii() and decoded.encode("punycode").decode() == encoded
    except UnicodeError:
        return False


def _embedded_quads(host: str) -> Iterator[str]:
    """Find what reads as an IPv4 address inside a name, overlapping ones too."""
    for match in _EMBEDDED_QUAD.finditer(host):
        numbers = [int(digits) for digits in match.groups()]
        if max(numbers) <= 255:
            yield ".".join(map(str, numbers))
