import ipaddress
import json
from pathlib import Path

import ada_url
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qak_core import public_url

pytestmark = pytest.mark.clause("uri.public_only")

TABLE = [
    line.split("\t")
    for line in (Path(__file__).parent / "data" / "urls.tsv").read_text(encoding="utf-8").splitlines()[1:]
]

# Written again from the protocol, not imported: the core's own table is what is being tested.
PRIVATE_V4 = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32"
).split()
PRIVATE_V6 = (
    "::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48 ::ffff:0:0/96 64:ff9b::/96 "
    "fc00::/7 fe80::/10 fec0::/10 ff00::/8"
).split()
SPECIAL_NAMES = (
    "localhost local internal intranet lan home corp private localdomain domain test invalid onion alt arpa svc "
    "cluster consul docker kube"
).split()
WILDCARD_SERVICES = "nip.io sslip.io xip.io localtest.me lvh.me vcap.me lacolhost.com traefik.me".split()
CREDENTIALS = (
    "X-Amz-Signature X-Amz-Credential X-Amz-Security-Token X-Goog-Signature X-Goog-Credential X-Oss-Signature "
    "OSSAccessKeyId AWSAccessKeyId Signature sig access_token id_token refresh_token token auth api_key apikey secret "
    "password passwd pwd jwt session sessionid"
).split()

bounded = settings(
    max_examples=600,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize(("given_json", "verdict", "canonical", "reason"), TABLE, ids=[row[0][:60] for row in TABLE])
def test_a_worked_case_has_the_verdict_and_the_form_of_the_table(given_json, verdict, canonical, reason):
    expected = canonical if verdict == "public" else None
    assert public_url(json.loads(given_json)) == expected, reason


def test_the_table_of_worked_cases_is_all_there():
    assert len(TABLE) == 127
    assert {row[1] for row in TABLE} == {"public", "dropped"}


@pytest.mark.parametrize("network", PRIVATE_V4)
def test_an_ipv4_network_is_private_from_its_first_address_to_its_last(network):
    first, last = ipaddress.IPv4Network(network)[0], ipaddress.IPv4Network(network)[-1]
    assert [public_url(f"http://{address}/") for address in (first, last)] == [None, None]


@pytest.mark.parametrize("network", PRIVATE_V6)
def test_an_ipv6_network_is_private_from_its_first_address_to_its_last(network):
    first, last = ipaddress.IPv6Network(network)[0], ipaddress.IPv6Network(network)[-1]
    assert [public_url(f"http://[{address}]/") for address in (first, last)] == [None, None]


@pytest.mark.parametrize(
    "host",
    [
        *"1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255".split(),
        *"169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255".split(),
        *"198.20.0.0 223.255.255.255 168.63.129.15 168.63.129.17".split(),
        *"[2000::] [2001:200::] [2001:db7::1] [2001:db9::] [2003::] [3ffe::1] [3fff:1000::] [2620:4f:8001::]".split(),
    ],
)
def test_an_address_beside_a_private_network_is_public(host):
    assert public_url(f"http://{host}/") == f"http://{host}/"


@pytest.mark.parametrize("name", SPECIAL_NAMES)
@pytest.mark.parametrize("form", ["a.{}", "A.B.{}.", "a.{}:8080/x"])
def test_a_special_last_label_is_dropped(name, form):
    assert public_url("https://" + form.format(name.upper())) is None
    assert public_url(f"https://{name}.example.com/") is not None


@pytest.mark.parametrize("service", WILDCARD_SERVICES)
@pytest.mark.parametrize("prefix", ["", "app.", "8.8.8.8.", "a.b."])
def test_a_wildcard_name_service_is_dropped(service, prefix):
    assert public_url(f"https://{prefix}{service}/") is None
    assert public_url(f"https://not{service}/") is not None


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("query", ["{}=x", "a=1&{}=x", "{}", "a&{}=", "%{:02x}{}=x"])
def test_a_query_that_carries_a_credential_is_dropped(name, query):
    for spelling in (name, name.lower(), name.upper()):
        written = query.format(ord(spelling[0]), spelling[1:]) if query.startswith("%") else query.format(spelling)
        assert public_url(f"https://example.com/x?{written}") is None
    assert public_url(f"https://example.com/x?not{name}=x&a={name}#{name}=x") is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://foo.10-0-0-1.example.com",
        "http://010.0.0.1.example.com",
        "http://8.8.8.8.10.0.0.1.example.com",
        "http://1-10-0-0-1.example.com",
        "http://192.168.1.1．",
        "http://10。0。0。1",
        "http://①②⑦.0.0.1",
        "https://example.local。",
        "https://example。local",
        "https://xn--.com",
        "https://xn--a.com",
        "https://xn--zzzzzzzzz.com",
        "https://a..com",
        "https://.com",
        "https://example.com..",
        "https://example.com\u3000/",
        "https://exam ple.com",
        "https://example.com/\u200e",
        "https://example.com/\u061c",
        "https://example.com/\u2028",
        "https://example.com/\xad",
        "https://example.com/\ufff9",
        "https://example.com/\U000e0041",
        "\u200bhttps://example.com/",
        "\x00https://example.com/",
        "https://example.com:65536/",
        "https://" + "a." * 126 + "com",
        "https://example.com/" + "a" * 2029,
        "https://example.com/" + "é" * 400,
        "https://user%40example.com",
        "https://example.com\\x?y",
    ],
)
def test_an_address_that_parsers_read_differently_or_that_hides_one_is_dropped(url):
    assert public_url(url) is None


@pytest.mark.parametrize("value", [None, True, 1, 1.5, b"https://example.com/", ["https://example.com/"], {}, object()])
def test_only_text_is_an_address(value):
    assert public_url(value) is None


class Raising(str):
    """A string whose every method raises."""

    __slots__ = ()

    def _raise(self, *_):
        raise RuntimeError("foreign code ran")

    __len__ = __getitem__ = __eq__ = __hash__ = __str__ = __iter__ = __contains__ = _raise
    strip = lower = encode = startswith = partition = split = _raise


def test_a_subclass_of_str_is_read_without_its_methods():
    found = public_url(Raising("https://example.com/x#y"))
    assert found == "https://example.com/x"
    assert type(found) is str


def spellings(address: int) -> list[str]:
    """Return ways to write an IPv4 address that WHATWG parsers understand."""
    a, b, c, d = address.to_bytes(4)
    dotted = f"{a}.{b}.{c}.{d}"
    hexed = f"{address:08x}"
    return [
        dotted,
        f"{dotted}.",
        f"{address}",
        f"0x{address:x}",
        f"0X{address:X}",
        f"0{address:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}",
        f"0x{a:x}.0{b:o}.{c}.0x{d:x}",
        f"{a:04o}.{b:04o}.{c:04o}.{d:04o}",
        dotted.translate({ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789"}),
        dotted.replace(".", "。"),
        dotted.replace(".", "%2e"),
        "".join(f"%{ord(char):02x}" for char in dotted),
        f"[::ffff:{dotted}]",
        f"[::ffff:{hexed[:4]}:{hexed[4:]}]",
        f"[::{dotted}]",
        f"[64:ff9b::{dotted}]",
        f"[2002:{hexed[:4]}:{hexed[4:]}::1]",
        f"[2001::{hexed[:4]}:{hexed[4:]}]",
        f"x.{dotted}.example.com",
        f"{dotted.replace('.', '-')}.example.com",
        f"{hexed}.nip.io",
        f"user@{dotted}",
        f"{dotted}:80@example.com",
        f"example.com\\@{dotted}",
    ]


private_addresses = st.sampled_from([ipaddress.IPv4Network(network) for network in PRIVATE_V4]).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1]))
)


@given(
    address=private_addresses,
    scheme=st.sampled_from(["http", "https", "HTTP", "hTTps"]),
    port=st.sampled_from(["", ":8080"]),
)
@bounded
def test_no_spelling_of_a_private_address_is_public(address, scheme, port):
    for host in spellings(address):
        assert public_url(f"{scheme}://{host}{port}/x?y#z") is None


hosts = st.sampled_from(
    "example.com EXAMPLE.com. münchen.example ｅｘ.com 8.8.8.8 127.1 0x7f.1 [::1] [2606:4700::1] a.local xn--a "
    "xn--mnchen-3ya.de xn--zz%20 ex%61mple.com a..b 1.2.3.4.5 10-0-0-1.x.com".split()
)
pieces = st.one_of(
    st.sampled_from(
        [
            *"/?#@:\\&=%.;[] \t\n",
            "//",
            "..",
            "%2e",
            "%00",
            "\u202e",
            "\u200d",
            "\ud800",
            "。",
            "token=",
            "u:p@",
            ":0",
            ":80",
            "é",
        ]
    ),
    hosts,
    st.text(max_size=4),
)
addresses = st.one_of(
    st.text(max_size=30),
    st.builds(
        lambda scheme, host, rest: scheme + host + "".join(rest),
        st.sampled_from(["http://", "https://", " HTTPS://", "http:/", "http:\\\\", "ht\ntp://", "ftp://", "//", ""]),
        hosts,
        st.lists(pieces, max_size=6),
    ),
    st.builds(lambda parts: "https://" + "".join(parts), st.lists(pieces, max_size=8)),
)


@given(value=addresses)
@settings(bounded, max_examples=2000)
def test_a_published_address_is_canonical_and_harmless(value):
    found = public_url(value)
    if found is None:
        return
    assert type(found) is str
    assert public_url(found) == found
    assert len(found) <= 2048
    assert found.isascii()
    assert not any(char <= " " for char in found)
    url = ada_url.URL(found)
    assert url.href == found
    assert url.protocol in {"http:", "https:"}
    assert (url.username, url.password, url.hash) == ("", "", "")
    parameters = {name.lower() for name in ada_url.URLSearchParams(url.search).keys()}  # noqa: SIM118 - not a mapping
    assert parameters.isdisjoint(name.lower() for name in CREDENTIALS)
    host = url.hostname
    assert "." in host.strip(".") or ":" in host
    assert not host.endswith(".")
    if host.startswith("[") or host.replace(".", "").isdigit():
        address = ipaddress.ip_address(host.strip("[]"))
        networks = PRIVATE_V6 if address.version == 6 else PRIVATE_V4
        assert not any(address in ipaddress.ip_network(network) for network in networks)
    else:
        assert host.rsplit(".", 1)[-1] not in SPECIAL_NAMES
