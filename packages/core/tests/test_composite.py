import asyncio
from functools import partial

import pytest

from qak_core import (
    KnowledgeBaseUnknown,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    ProviderContractError,
)
from qak_core.composite import CompositeProvider

from ._providers import Patient, Provider, Raising, until

pytestmark = pytest.mark.clause("composition")


def found(*ids, **fields):
    return [{"id": result_id, "content": f"text of {result_id}", **fields} for result_id in ids]


def ask(sides, query="q", *, options=None, **fields):
    async def scenario():
        async with KnowledgeRuntime(CompositeProvider(sides, **(options or {}))) as runtime:
            return await runtime.search(query, **{"owner_id": "o", "top_k": 8, **fields})

    return scenario()


def ids(answer):
    return [result.id for result in answer.results]


@pytest.mark.parametrize("shape", [list, tuple, lambda results: {"results": results}], ids=["list", "tuple", "mapping"])
def test_results_of_all_sides_are_namespaced_and_interleaved_by_rank(run, shape):
    sides = {"a": Provider(shape(found("1", "2", "3"))), "b": Provider(shape(found("1"))), "c": Provider([])}
    answer = run(ask(sides))
    assert ids(answer) == ["a:1", "b:1", "a:2", "a:3"]
    assert answer.degraded == ()


def test_no_side_can_starve_another(run):
    sides = {"loud": Provider(found(*map(str, range(8)), score=1e9)), "quiet": Provider(found("x", "y", score=0.1))}
    assert ids(run(ask(sides, top_k=4))) == ["loud:0", "quiet:x", "loud:1", "quiet:y"]


@pytest.mark.clause("response.score")
def test_scores_of_two_sides_do_not_stand_beside_each_other(run):
    answer = run(ask({"a": Provider(found("1", score=0.9)), "b": Provider(found("1", score=250))}))
    assert [result.score for result in answer.results] == [None, None]


@pytest.mark.clause("response.content")
def test_a_content_that_a_side_cut_still_says_so(run):
    answer = run(ask({"a": Provider([{"id": "1", "content": "x" * 5000}]), "b": Provider(found("1"))}))
    assert [result.truncated for result in answer.results] == [True, False]


@pytest.mark.parametrize(
    "error",
    [ValueError("password=hunter2"), KnowledgeUnavailable(), asyncio.CancelledError()],
    ids=lambda it: type(it).__name__,
)
def test_one_failing_side_leaves_a_degraded_answer(run, error, caplog):
    answer = run(ask({"bad": Raising(error), "good": Provider(found("1"))}))
    assert (ids(answer), answer.degraded) == (["good:1"], ("bad",))
    assert "hunter2" not in caplog.text


@pytest.mark.clause("runtime.deadline")
@pytest.mark.parametrize("deaf", [False, True])
def test_a_late_side_leaves_a_degraded_answer_even_if_it_does_not_listen(run, deaf):
    async def scenario():
        late = Patient(deaf=deaf)
        answer = await ask(
            {"late": late, "good": Provider(found("1"))}, options={"timeout_s": 0.3, "close_timeout_s": 0.05}
        )
        assert (ids(answer), answer.degraded) == (["good:1"], ("late",))
        late.released.set()
        await until(lambda: late.ended)

    run(scenario())


@pytest.mark.parametrize(
    ("errors", "expected"),
    [([KnowledgeUnavailable(), ValueError("x")], KnowledgeUnavailable), ([KnowledgeTimeout()], KnowledgeTimeout)],
)
def test_when_every_side_fails_that_is_an_error_and_not_an_empty_answer(run, errors, expected):
    async def scenario():
        with pytest.raises(KnowledgeError) as caught:
            await ask({f"s{number}": Raising(error) for number, error in enumerate(errors)})
        assert type(caught.value) is expected

    run(scenario())


def test_a_sides_own_degraded_parts_are_named_with_it(run):
    side = Provider({"results": found("1"), "degraded": ["wiki"]})
    assert run(ask({"a": side})).degraded == ("a: wiki",)


@pytest.mark.clause("request.knowledge_base_ids", "describe.knowledge_bases")
def test_knowledge_base_ids_route_to_their_sides(run):
    sides = {
        "a": Provider(found("1"), knowledge_bases=["hr", "it"]),
        "b": Provider(found("2"), knowledge_bases=["law"]),
        "whole": Provider(found("3"), label="Wiki"),
    }
    published = CompositeProvider(sides).describe().knowledge_bases
    assert [(base.id, base.label) for base in published] == [("hr", ""), ("it", ""), ("law", ""), ("whole", "Wiki")]
    assert ids(run(ask(sides, knowledge_base_ids=["it", "whole"]))) == ["a:1", "whole:3"]
    assert [side.calls[-1][0].knowledge_base_ids for side in (sides["a"], sides["whole"])] == [("it",), ()]
    assert sides["b"].calls == []
    assert len(run(ask(sides)).results) == 3
    assert sides["a"].calls[-1][0].knowledge_base_ids == ()

    async def unknown():
        with pytest.raises(KnowledgeBaseUnknown):
            await ask(sides, knowledge_base_ids=["it", "other"])

    run(unknown())


@pytest.mark.clause("context.trusted")
def test_every_side_gets_the_hosts_context(run):
    sides = {name: Provider(found("1"), capabilities={"filters": True}) for name in "ab"}
    run(ask(sides, owner_id="o", session_id="s", trace_id="x", filters={"a": 1}, top_k=3))
    for side in sides.values():
        [(request, context)] = side.calls
        assert (request.top_k, request.filters) == (3, {"a": 1})
        assert (context.owner_id, context.session_id, context.trace_id) == ("o", "s", "x")


@pytest.mark.clause("request.filters")
def test_filters_are_refused_where_one_side_cannot_apply_them(run):
    sides = {"a": Provider(found("1"), capabilities={"filters": True}), "b": Provider(found("2"))}

    async def scenario():
        with pytest.raises(KnowledgeFiltersUnsupported):
            await ask(sides, filters={"a": 1})

    run(scenario())
    assert sides["a"].calls == []


@pytest.mark.clause("citation.stable")
def test_one_address_found_by_two_sides_is_one_citation(run):
    sides = {name: Provider(found("1", url="https://example.com/x")) for name in "ab"}
    answer = run(ask(sides))
    assert [result.citation_id for result in answer.results] == ["source_1", "source_1"]
    assert len(answer.citations) == 1


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize(
    "sides",
    [
        {},
        {"": Provider()},
        {"a:b": Provider()},
        {" a": Provider()},
        {"a" * 41: Provider()},
        {"a": None},
        {"a": object()},
        {"a": Provider(knowledge_bases=["hr"]), "b": Provider(knowledge_bases=["hr"])},
        {"a": Provider(knowledge_bases=["b"]), "b": Provider()},
    ],
    ids=["none", "unnamed", "colon", "blank", "long", "nothing", "no provider", "base twice", "base like a side"],
)
def test_sides_that_cannot_work_together_are_refused_at_composition(sides):
    with pytest.raises(ProviderContractError):
        CompositeProvider(sides)


@pytest.mark.clause("health.states")
@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["ready", "ready"], "ready"),
        (["ready", "degraded"], "degraded"),
        (["ready", "unavailable"], "degraded"),
        (["unconfigured", "unavailable"], "unavailable"),
    ],
)
def test_the_health_of_all_sides_is_summed_up(run, states, expected):
    sides = {f"s{number}": Provider() for number in range(len(states))}
    for side, state in zip(sides.values(), states, strict=True):
        side.health = partial(lambda **answer: answer, status=state)
    composite = CompositeProvider(sides)
    health = run(KnowledgeRuntime(composite).health())
    assert health.status == expected
    assert all((f"s{number}" in health.message) is (state != "ready") for number, state in enumerate(states))
    assert {name: health.status for name, health in run(composite.side_health()).items()} == {
        f"s{number}": state for number, state in enumerate(states)
    }


@pytest.mark.clause("management")
def test_the_description_and_the_management_of_each_side_stay_visible():
    sides = {"a": Provider(), "b": Provider(key="other")}
    composite = CompositeProvider(sides)
    assert [side.description.key for side in composite.sides.values()] == ["stand-in", "other"]
    assert [side.provider for side in composite.sides.values()] == list(sides.values())


@pytest.mark.clause("close.once")
def test_closing_the_composite_closes_every_side_once(run):
    closed = []

    class Closing(Provider):
        async def close(self):
            closed.append(self)
            raise RuntimeError("password=hunter2")

    async def scenario():
        sides = {name: Closing() for name in "ab"}
        composite = CompositeProvider(sides)
        runtime = KnowledgeRuntime(composite)
        await asyncio.gather(runtime.close(), runtime.close())
        assert len(closed) == 2
        with pytest.raises(KnowledgeClosed):
            await composite.sides["a"].search("q", owner_id="o")

    run(scenario())


@pytest.mark.clause("runtime.breaker")
def test_each_side_has_a_breaker_of_its_own(run):
    async def scenario():
        bad, good = Raising(ValueError("x")), Provider(found("1"))
        async with KnowledgeRuntime(CompositeProvider({"bad": bad, "good": good}, breaker_failures=2)) as runtime:
            for _ in range(5):
                assert (await runtime.search("q", owner_id="o")).degraded == ("bad",)
        assert (len(bad.calls), len(good.calls)) == (2, 5)

    run(scenario())
