import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qak_documents import keyword_tokens
from qak_documents._tokens import CJK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("年费标准", ["年费", "费标", "标准"]),
        ("税", ["税"]),
        ("年费2024年", ["年费", "2024", "年"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("한국어", ["한국", "국어"]),
        ("𠀀𠀁𠀂", ["𠀀𠀁", "𠀁𠀂"]),
        ("Releases are approved by the maintainers", ["releas", "approv", "maintain"]),
        ("ＡＢＣ ﬁle", ["abc", "file"]),
        ("GPT-4", ["gpt-4", "gpt", "4"]),
        ("v2.1, 3.14", ["v2.1", "v2", "1", "3.14", "3", "14"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("C++ and C#", ["c++", "c", "c#", "c"]),
        ("well-known company's don't", ["well", "known", "compani", "don"]),
        ("café Straße Привет", ["café", "straße", "привет"]),
        ("user@example.com", ["user", "exampl", "com"]),
        ("the of and", []),
        ("，。!? \n", []),
        ("", []),
    ],
)
def test_tokens_of_a_text(text: str, expected: list[str]) -> None:
    assert keyword_tokens(text) == expected


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("年费", "会员年费为三千元"),
        ("gpt-4", "We use GPT-4."),
        ("GPT 4", "We use gpt-4."),
        ("V2.1", "since v2.1 of the protocol"),
        ("approval", "It was approved."),
        ("two-factor", "two factor login"),
        ("policy", "annual-leave-and-release-approval-policy-of-the-company"),
    ],
)
def test_each_token_of_a_query_is_found_in_its_text(query: str, text: str) -> None:
    stems = set(keyword_tokens(text))
    parts = [token for token in keyword_tokens(query) if token.isalnum()]
    assert parts
    assert stems.issuperset(parts)


@given(st.text())
def test_tokens_never_raise_and_ignore_compatibility_forms(text: str) -> None:
    tokens = keyword_tokens(text)
    assert keyword_tokens(unicodedata.normalize("NFKC", text)) == tokens
    assert all(token and not any(char.isspace() for char in token) and len(token) <= 42 for token in tokens)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF) | st.sampled_from(" ，。"), max_size=50))
def test_pairs_are_their_own_tokens(text: str) -> None:
    tokens = keyword_tokens(text)
    assert keyword_tokens(" ".join(tokens)) == tokens


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2, max_size=30), st.data())
def test_any_two_neighbours_of_a_chinese_text_are_found(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 2))
    assert set(keyword_tokens(text[at : at + 2])) <= set(keyword_tokens(text))


def test_long_runs_cost_no_more_than_their_length() -> None:
    assert keyword_tokens("x" * 1_000_000) == ["x" * 40]
    assert len(keyword_tokens("年" * 100_000)) == 99_999
    assert len(keyword_tokens("a-" * 100_000)) <= 100_000


def test_long_runs_of_marks_cost_no_more_than_their_length() -> None:
    assert keyword_tokens("fee" + "\u0301\u0323" * 200_000 + " cafe\u0301") == ["fee", "caf\u00e9"]


def test_tokens_are_the_same_from_many_threads() -> None:
    texts = [
        " ".join(f"{word}{suffix}" for word in ("approv", "releas", f"thread{n}x") for suffix in ("ing", "ed"))
        for n in range(200)
    ]
    expected = [keyword_tokens(text) for text in texts]
    from qak_documents import _keywords

    _keywords._word_tokens.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(keyword_tokens, texts)) == expected


def test_cjk_ranges_hold_no_latin_letter_or_digit() -> None:
    import re

    assert not re.search(f"[{CJK}]", "".join(map(chr, range(0x2E80))))
