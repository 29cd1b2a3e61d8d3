import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core._text import clean, collapse, cut, cut_to_json_bytes, json_bytes

pytestmark = pytest.mark.clause("text")

REMOVED = [
    *map(chr, [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)]),
    *map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
    *"\u200b\u2060\ufeff\ufff9\ufffa\ufffb",
    *map(chr, range(0xE0000, 0xE0080)),
]
KEPT = [
    "\t",
    "\n",
    "\u200d",
    "\u200c",
    "\ufe0f",
    "\ufe0e",
    "\U000e0100",
    "\xad",
    "\u200e",
    "\u061c",
    "\u3000",
    "\ufffd",
    "😀",
]

CLUSTERS = {
    "a letter with accents": "e\u0301\u0323",
    "a family": "👨\u200d👩\u200d👧\u200d👦",
    "a skin tone": "👍🏽",
    "an emoji presentation": "❤\ufe0f",
    "a keycap": "1\ufe0f\u20e3",
    "a flag": "🇨🇳",
    "conjoining jamo": "\u1112\u1161\u11ab",
    "a syllable with a final": "\uac00\u11a8",
    "a Devanagari conjunct": "\u0915\u094d\u0937",
    "a Devanagari vowel sign": "\u0915\u093e",
    "a Persian non-joiner": "\u0647\u200c",
    "a Thai vowel": "\u0e01\u0e33",
    "an ideographic variant": "\u845b\U000e0100",
    "a half-width voiced sound": "\uff76\uff9e",
}

any_text = st.text(
    st.characters(codec=None, categories=None)
    | st.sampled_from([*REMOVED[::7], *KEPT, "\ud800", "\udfff", '"', "\\", "\u0301"])
)
cleaned_text = any_text.map(clean)
bounded = settings(max_examples=400, deadline=None, database=None)


@pytest.mark.parametrize("char", REMOVED, ids=lambda char: f"U+{ord(char):04X}")
def test_cleaning_removes_a_control_or_invisible_character(char):
    assert clean(f"a{char}b") == "ab"


@pytest.mark.parametrize("char", KEPT, ids=lambda char: f"U+{ord(char):04X}")
def test_cleaning_keeps_what_writing_needs(char):
    assert clean(f"a{char}b") == f"a{char}b"


@pytest.mark.clause("response.json")
@pytest.mark.parametrize("half", [*map(chr, (0xD800, 0xDBFF, 0xDC00, 0xDFFF))])
def test_cleaning_replaces_a_lone_surrogate(half):
    assert clean(f"a{half}b") == "a\ufffdb"


@given(text=any_text)
@bounded
def test_cleaned_text_is_encodable_and_stays_as_it_is(text):
    cleaned = clean(text)
    assert type(cleaned) is str
    assert clean(cleaned) == cleaned
    assert cleaned.encode().decode() == cleaned
    assert set(REMOVED).isdisjoint(cleaned)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \t\n b  ", "a b"),
        ("a\u3000\u2028\u2009b\xa0", "a b"),
        ("a\u200bb", "ab"),
        ("\n\t ", ""),
        ("a\r\nb", "a b"),
    ],
)
def test_collapsing_turns_whitespace_into_one_space(text, expected):
    assert collapse(text) == expected


@given(text=any_text)
@bounded
def test_collapsed_text_has_no_run_of_whitespace(text):
    collapsed = collapse(text)
    assert collapsed == " ".join(collapsed.split())
    assert collapse(collapsed) == collapsed


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_cutting_does_not_split_a_cluster(cluster):
    for limit in range(3, 3 + len(cluster)):
        assert cut(f"abc{cluster}", limit) == "abc"
    assert cut(f"abc{cluster}d", 3 + len(cluster)) == f"abc{cluster}"


@pytest.mark.parametrize("flags", range(1, 40, 3))
def test_cutting_keeps_flags_in_pairs_however_many_stand_together(flags):
    text = "🇨🇳" * flags + "!"
    assert cut(text, 2 * flags - 1) == "🇨🇳" * (flags - 1) or flags == 1
    assert cut(text, 2 * flags) == "🇨🇳" * flags


@pytest.mark.parametrize("limit", [1, 63, 64, 65, 300, 4000])
def test_cutting_ends_inside_a_cluster_that_is_an_attack(limit):
    zalgo = "a" + "\u0301" * 100_000
    assert len(cut(zalgo, limit)) == limit
    assert cut("👨\u200d" * 50_000, limit)
    assert cut("🇨" * 50_000, limit)


@given(text=any_text, limit=st.integers(1, 20))
@bounded
def test_cut_text_is_a_prefix_within_the_limit(text, limit):
    kept = cut(text, limit)
    assert len(kept) <= limit
    assert text.startswith(kept)
    assert kept or not text[:limit].strip()


@pytest.mark.clause("response.budget")
@given(text=cleaned_text, limit=st.integers(0, 80))
@bounded
def test_text_cut_to_bytes_takes_no_more_as_json(text, limit):
    kept = cut_to_json_bytes(text, text.encode(), limit)
    assert text.startswith(kept)
    assert not kept or len(json.dumps(kept, ensure_ascii=False).encode()) <= limit


@pytest.mark.clause("response.budget")
@given(text=cleaned_text)
@bounded
def test_json_bytes_is_what_json_takes(text):
    assert json_bytes(text, text.encode()) == len(json.dumps(text, ensure_ascii=False).encode())


def test_hostile_lengths_take_linear_time():
    for piece in ("\u0301", "🇨🇳", "👨\u200d", "\u202e", " ", '"', "\ud800", "한"):
        text = clean(piece * 100_000)
        assert len(cut(collapse(text), 4000)) <= 4000
        assert len(cut_to_json_bytes(text, text.encode(), 5000)) <= 5000
