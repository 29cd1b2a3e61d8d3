import pytest
from hypothesis import given
from hypothesis import strategies as st

from qak_documents import estimate_tokens
from qak_documents._tokens import cut_by_cost, token_cost

ANY = st.text(st.characters() | st.sampled_from("年a1 \n\t。_中文"), max_size=200)


@pytest.mark.parametrize(
    ("text", "hundredths"),
    [
        ("", 0),
        ("年费", 180),
        ("annual fee", 216),
        ("12", 137),
        ("1234", 274),
        ("a\n\n\nb", 316),
        ("a, b!", 348),
        ("年费 is 3000元。", 90 * 3 + 108 + 274 + 66),
        ("_", 66),
        ("   ", 0),
        ("x" * 24, 108),
        ("x" * 25, 216),
        (" " * 16, 66),
    ],
)
def test_estimate_follows_its_formula(text: str, hundredths: int) -> None:
    assert token_cost(text) == hundredths
    assert estimate_tokens(text) == -(-hundredths // 100)


@given(ANY, st.integers(200, 1000))
def test_cuts_by_cost_are_bounded_and_lose_nothing(text: str, max_cost: int) -> None:
    spans = list(cut_by_cost(text, 0, len(text), max_cost))
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(token_cost(text[start:end]) <= max_cost for start, end in spans)
    assert sum(token_cost(text[start:end]) for start, end in spans) >= token_cost(text)
