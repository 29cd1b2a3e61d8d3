import uuid

import pytest

from qak_core.authoring import Comparison, Scope, matches

pytestmark = pytest.mark.clause("context.trusted", "request.filters")

YEAR = Comparison(operator="gte", key="year", value=2025)


class LyingText(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    "owner", [None, "", 7, True, ["alice"], "Alice", "alice ", {"id": "alice"}, b"alice", LyingText("bob")], ids=repr
)
def test_passage_of_no_clear_owner_belongs_to_nobody(owner):
    scope = Scope(owner_key="owner", owner_id="alice")
    assert not scope.admits({"owner": owner})
    assert not scope.admits({})


def test_owner_is_that_very_text():
    assert Scope(owner_key="owner", owner_id="alice").admits({"owner": "alice"})
    assert Scope(owner_key="owner", owner_id=str(uuid.UUID(int=1))).admits({"owner": uuid.UUID(int=1)})
    assert not Scope(owner_key="owner", owner_id="5").admits({"owner": 5})


def test_owner_and_filter_must_both_be_met():
    scope = Scope(owner_key="owner", owner_id="alice", wanted=YEAR)
    assert scope.restricts
    for owner, year in (("alice", 2026), ("bob", 2026), ("alice", 2024), ("bob", 2024)):
        metadata = {"owner": owner, "year": year}
        met = (owner, year) == ("alice", 2026)
        assert scope.admits(metadata) is met
        assert matches(scope.whole(), metadata) is met


def test_scope_without_owner_or_filter_admits_all_and_says_nothing():
    assert not Scope().restricts
    assert Scope().admits({})
    assert Scope().whole() is None
    assert Scope(wanted=YEAR).whole() == YEAR
