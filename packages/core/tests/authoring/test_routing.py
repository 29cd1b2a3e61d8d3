import asyncio
import logging

import pytest

from qak_core import CancelSignal, KnowledgeBaseUnknown, KnowledgeUnavailable, RetrievalResult
from qak_core.authoring import answer, route

pytestmark = pytest.mark.clause("composition")


def result(result_id, score=None):
    return RetrievalResult(id=result_id, content=result_id, score=score)


def found(*results):
    async def call():
        return list(results)

    return call


async def fail():
    raise KnowledgeUnavailable


def ask(top_k=5, **calls):
    return asyncio.run(answer(calls, CancelSignal(5), top_k=top_k))


def test_bases_that_are_named_are_asked_in_that_order():
    bases = {"": 0, "a": 1, "b": 2}
    assert list(route(bases, ["b", "a"]).items()) == [("b", 2), ("a", 1)]
    assert route(bases, []) == {"": 0}
    assert route({"a": 1, "b": 2}, ()) == {"a": 1, "b": 2}


@pytest.mark.parametrize("ids", [["c"], ["a", "c"], ["A"], [""], ["*"]])
def test_unknown_base_is_refused(ids):
    with pytest.raises(KnowledgeBaseUnknown):
        route({"": 0, "a": 1}, ids)


def test_answer_of_one_base_keeps_scores_and_order():
    response = ask(a=found(result("x", 0.9), result("y"), result("z", 0.9)), top_k=3)
    assert [(one.id, one.score) for one in response.results] == [("x", 0.9), ("y", None), ("z", 0.9)]
    assert response.degraded == ()


def test_answer_of_several_bases_is_interleaved_without_scores_and_cut():
    response = ask(a=found(result("x", 0.9), result("y", 0.8)), b=found(result("x", 7.0)), top_k=2)
    assert [(one.id, one.score) for one in response.results] == [("x", None), ("x#2", None)]


def test_base_that_fails_is_named_beside_what_the_others_found():
    response = ask(a=fail, b=found(result("x")))
    assert [one.id for one in response.results] == ["x"]
    assert response.degraded == ("a",)
    with pytest.raises(KnowledgeUnavailable):
        ask(a=fail)
    with pytest.raises(KnowledgeUnavailable):
        ask(a=fail, b=fail)


def test_scores_that_rise_are_left_out_and_logged_without_their_values(caplog):
    with caplog.at_level(logging.WARNING):
        response = ask(a=found(result("x", 0.125), result("y"), result("z", 0.5)))
    assert [one.score for one in response.results] == [None, None, None]
    assert "rise" in caplog.text
    assert "0.125" not in caplog.text


def test_scores_that_rise_beyond_the_answer_do_no_harm():
    assert ask(a=found(result("x", 0.5), result("y", 0.9)), top_k=1).results[0].score == 0.5
