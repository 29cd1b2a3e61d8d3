import pytest

from qak_core import KnowledgeInvalidRequest
from qak_core.authoring import Reading, option_problems

pytestmark = pytest.mark.clause("registry.factory")

GOOD = {"caller_filters": "neutral", "forms": ("neutral", "none"), "filters": None, "max_workers": 8}


def problems(reading=None, **options):
    return option_problems(reading or Reading(), **{**GOOD, **options})


@pytest.mark.parametrize("first_page", [None, 0, 1])
def test_options_that_can_be_used_are_no_problem(first_page):
    reading = Reading(
        score="distance", id_key="a.b", citation_keys={"title": "t"}, owner_key="o", first_page=first_page
    )
    assert problems(reading, filters={"type": "eq", "key": "a", "value": 1}, max_workers=64, base_ids=["a b"]) == []


def test_every_option_that_can_not_be_used_is_named():
    reading = Reading(score="high", id_key="", citation_keys={"page": "p"}, owner_key="", first_page=2)
    found = problems(reading, caller_filters="any", filters={"a": 1}, max_workers=0, base_ids=["", " b"])
    names = ["score", "caller_filters", "citation_keys", "id_key", "owner_key", "first_page", "max_workers"]
    names += ["knowledge_bases", "knowledge_bases", "filters"]
    assert [problem.partition(":")[0] for problem in found] == names


def test_a_truth_value_is_no_page_and_sixty_five_threads_are_too_many():
    assert len(problems(Reading(first_page=True), max_workers=65)) == 2
    for wrong in ("8", None, True, 2.5, [], {}):
        assert [line.partition(":")[0] for line in problems(Reading(), max_workers=wrong)] == ["max_workers"]


def test_filters_of_another_grammar_are_read_by_its_reader():
    def refuse(given):
        raise KnowledgeInvalidRequest(f"no {given}")

    assert problems(filters="x", read_filter=refuse) == ["filters: no x"]
