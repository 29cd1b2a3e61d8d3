import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core.authoring import stable_id, unique_ids

pytestmark = pytest.mark.clause("response.id")

parts = st.lists(st.none() | st.text(max_size=6), max_size=4)
quick = settings(max_examples=200, deadline=None, database=None)


@given(first=parts, second=parts)
@quick
def test_an_id_depends_on_all_parts_their_order_and_their_borders(first, second):
    assert (stable_id(*first) == stable_id(*second)) is (first == second)
    assert len(stable_id(*first)) == 32
    assert set(stable_id(*first)) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", ""), ("a",)),
        ((None,), ("",)),
        ((None,), ()),
        (("",), ()),
        (("-",), (None,)),
        (("1:a",), ("a",)),
        (("a1:b",), ("a", "b")),
        ((None, "a"), ("a", None)),
        (("\ud800",), ("\ufffd",)),
    ],
)
def test_parts_with_other_borders_give_another_id(first, second):
    assert stable_id(*first) != stable_id(*second)


def test_an_id_is_the_same_in_another_process():
    code = "from qak_core.authoring import stable_id; print(stable_id('hr', None, '年费', 3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == stable_id("hr", None, "年费", 3)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], []),
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a#2", "a#3"]),
        (["a", "a", "a#2"], ["a", "a#2", "a#2#2"]),
        (["a#2", "a", "a"], ["a#2", "a", "a#3"]),
        (["", ""], ["", "#2"]),
    ],
)
def test_ids_that_came_before_get_a_number(ids, expected):
    assert unique_ids(ids) == expected


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "#2", ""]), max_size=12))
@quick
def test_numbered_ids_never_merge_and_keep_their_order(ids):
    unique = unique_ids(ids)
    assert len(set(unique)) == len(unique) == len(ids)
    assert all(new.startswith(old) for new, old in zip(unique, ids, strict=True))
