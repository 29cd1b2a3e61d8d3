import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core._redaction import REDACTED, names_credential, redact, redact_credentials

pytestmark = pytest.mark.clause("response.metadata", "runtime.errors")

SECRET = "Zx9Kq27LmPw4RtYb81Vn"

CARRIERS = [
    "password={}",
    "password: {}",
    "PASSWORD = {}",
    "pwd={}",
    "passwd='{}'",
    "api_key={}",
    "api-key: {}",
    "apikey={}",
    "x-api-key: {}",
    "OPENAI_API_KEY={}",
    "client_secret={}&a=1",
    "?a=1&token={}",
    "?sig={}&se=2",
    "access_token={};x",
    '{{"api_key": "{}"}}',
    "{{'password': '{}'}}",
    '{{\\"token\\": \\"{}\\"}}',
    "Authorization: Bearer {}",
    "authorization: basic {}",
    "Bearer {}",
    "sk-{}",
    "sk-proj-{}",
    "sk_live_{}",
    "ghp_{}",
    "github_pat_{}",
    "glpat-{}",
    "hf_{}",
    "xoxb-{}",
    "AIza{}",
    "eyJ{0}.{0}.{0}",
    "AccountName=x;AccountKey={}==",
    "SharedAccessSignature=sv=1&sig={}",
    "postgres://user:{}@db.example.com/x",
    "https://{}@example.com/",
    "https://example.com/?X-Amz-Signature={}",
    "https://example.com/#access_token={}",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\n{}",
    "password = 'my {} pass'",
    "Cookie: session_id={}",
    "密码 password={}，谢谢",
]

INNOCENT = [
    "",
    "Two people approve a release; the annual fee is 120 EUR.",
    "年费是一百二十元。",
    "Password: rules",
    "The token limit is 4096.",
    "https://example.com/docs?page=2#top",
    "see https://example.com/x, and https://8.8.8.8/.",
    "keyboard: 5",
    "a = b; c: d",
    "author: Kim",
    "max_tokens",
    "12:30 - 14:45",
    "C:\\folder\\file.txt",
    "id=7&page=3",
]

PRIVATE_ADDRESSES = [
    "http://10.0.0.1/x",
    "http://2130706433",
    "https://wiki.corp/path",
    "http://localhost:3000",
    "https://user@example.com/",
    "file:///etc/passwd",
    "s3://bucket/key",
    "javascript://example.com/%0aalert(1)",
    "redis://cache:6379/0",
    "HTTP://[::1]/",
    "https://example.com/?token=abc",
    "http:/10.0.0.1/x",
    "http:\\\\10.0.0.1\\x",
    "http:10.0.0.1",
    "file:/etc/passwd",
]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("frame", ["{}", "failed: {} (status 401)", "行：{}\nnext"])
def test_redaction_takes_a_credential_out(carrier, frame):
    text = frame.format(carrier.format(SECRET))
    for clean_text in (redact_credentials(text), redact(text)):
        assert SECRET not in clean_text
        assert REDACTED in clean_text


@pytest.mark.parametrize("text", INNOCENT)
def test_redaction_leaves_ordinary_text_alone(text):
    assert redact(text) == text


@pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
@pytest.mark.parametrize("frame", ["{}", "see {} there", "见{}", "({})", '"{}"', "<{}>"])
def test_redaction_takes_an_address_out_that_is_not_public(address, frame):
    text = redact(frame.format(address))
    assert REDACTED in text
    for part in (
        "10.0.0.1",
        "2130706433",
        "wiki.corp",
        "localhost",
        "etc/passwd",
        "bucket",
        "alert",
        "cache",
        "::1",
        "abc",
    ):
        assert part not in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[
            (name, True)
            for name in "password api_key X-Api-Key clientSecret access_token auth pwd Authorization".split()
        ],
        *[(name, False) for name in "title author page department tokens keyword passage publisher".split()],
    ],
)
def test_a_field_is_known_to_hold_a_credential_by_its_name(name, expected):
    assert names_credential(name) is expected


@given(st.text(st.sampled_from("ab1 :/=\"'&?@.-_\\\n密k") | st.characters(), max_size=60))
@settings(max_examples=500, deadline=None, database=None)
def test_redacting_twice_changes_nothing_more(text):
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a-",
        "://",
        "http://",
        "http:",
        "=",
        "a=",
        "password",
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "Bearer ",
        "sk-",
        '\\"',
    ],
)
def test_redaction_takes_linear_time(piece):
    text = piece * (200_000 // len(piece))
    assert isinstance(redact(text), str)
