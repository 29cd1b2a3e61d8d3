import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from uuid import UUID

import pytest

from qak_core.authoring import flatten_metadata, plain_value

from .. import _hostile as hostile

pytestmark = pytest.mark.clause("response.metadata")


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Scalar:
    """What NumPy's scalars look like from outside."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Array(Scalar):
    shape = (2,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (date(2026, 11, 30), "2026-11-30"),
        (datetime(2026, 11, 30, 18, 5, tzinfo=timezone(timedelta(hours=8))), "2026-11-30T18:05:00+08:00"),
        (time(18, 5), "18:05:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("1.50"), "1.50"),
        (PurePosixPath("a/b"), "a/b"),
        (Scalar(0.5), 0.5),
        (Scalar(7), 7),
        (Scalar(True), True),
        (Scalar("x"), "x"),
        (hostile.LyingFloat(0.5), 0.5),
        (hostile.LyingInt(3), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_with_a_plain_form_is_given_in_it(value, expected):
    plain = plain_value(value)
    assert (plain, type(plain)) == (expected, type(expected))


def itself():
    scalar = Scalar(None)
    scalar.value = scalar
    return scalar


@pytest.mark.parametrize(
    "value",
    [
        None,
        math.nan,
        math.inf,
        -math.inf,
        b"x",
        [1],
        (1,),
        {"a": 1},
        {1},
        object(),
        1j,
        Array(1),
        Scalar(math.nan),
        Scalar([1]),
        itself(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_plain_form_has_none(value):
    assert plain_value(value) is None


def test_a_subclass_of_str_becomes_plain_text():
    assert type(plain_value(hostile.RaisingStr("x"))) is str
    assert str.__eq__(plain_value(hostile.LyingStr("x")), "x")


def test_what_is_internal_to_a_vendor_is_left_out():
    given = {
        "title": "T",
        "embedding": [0.1],
        "vector": "x",
        "_node_content": "{}",
        "_private": 1,
        "page": Scalar(3),
        5: "five",
        None: "none",
        ("a",): "tuple",
        "nested": {"a": 1},
        "secret": "s",
    }
    assert flatten_metadata(given, drop=["secret"]) == {"title": "T", "page": 3, "5": "five"}


@pytest.mark.parametrize("metadata", [None, "text", 5, ["a"], [("a", 1)]])
def test_anything_but_a_mapping_has_no_metadata(metadata):
    assert flatten_metadata(metadata) == {}


def test_a_flat_copy_shares_nothing_with_the_vendors_object():
    given = {"a": "x"}
    flat = flatten_metadata(given)
    flat["a"] = "changed"
    assert given == {"a": "x"}
    assert json.loads(json.dumps(flat)) == flat
