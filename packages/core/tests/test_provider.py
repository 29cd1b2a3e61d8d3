import copy

import pytest

from qak_core import (
    KnowledgeBase,
    KnowledgeManagementProvider,
    KnowledgeProvider,
    ProviderContractError,
    ProviderDescription,
    ProviderHealth,
    assert_provider,
)
from qak_core.provider import read_health

from . import _hostile as hostile
from ._providers import DESCRIPTION, Provider


def problems(provider):
    with pytest.raises(ProviderContractError) as caught:
        assert_provider(provider)
    assert caught.value.problems
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def description_problems(**fields):
    return problems(Provider(**fields))


@pytest.mark.clause("provider.shape")
def test_any_object_with_the_two_methods_is_a_provider():
    provider = Provider()
    assert isinstance(provider, KnowledgeProvider)
    assert not isinstance(provider, KnowledgeManagementProvider)
    assert assert_provider(provider) == ProviderDescription(**DESCRIPTION)


@pytest.mark.clause("provider.shape")
def test_what_else_a_provider_has_is_ignored():
    provider = Provider()
    provider.ingest = provider.anything = 5
    assert assert_provider(provider).key == "stand-in"


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize("name", ["describe", "retrieve", "health", "close"])
@pytest.mark.parametrize("member", [5, "text", object()], ids=["int", "str", "object"])
def test_a_member_that_cannot_be_called_is_a_problem(name, member):
    provider = Provider()
    setattr(provider, name, member)
    assert any(name in problem for problem in problems(provider))


@pytest.mark.clause("provider.shape")
def test_every_problem_is_reported_and_not_only_the_first():
    class Wrong:
        health = 5
        close = "no"

        def describe(self):
            return {"protocol_version": True, "key": "-", "label": "", "capabilities": {"A": 1}, "knowledge_bases": 5}

    found = problems(Wrong())
    for word in ("retrieve", "health", "close", "protocol_version", "key", "label", "capabilit", "knowledge_bases"):
        assert any(word in problem for problem in found), word


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize("thing", [None, 5, "text", object(), {"describe": 1}], ids=lambda thing: type(thing).__name__)
def test_something_else_is_no_provider(thing):
    assert len(problems(thing)) >= 2


def raising(*_):
    raise RuntimeError("password=hunter2")


@pytest.mark.clause("provider.shape", "runtime.errors")
@pytest.mark.parametrize("name", ["describe", "retrieve", "health", "close"])
def test_a_member_that_raises_when_looked_at_is_a_problem_without_its_text(name):
    provider = type("Broken", (Provider,), {name: property(raising)})()
    found = problems(provider)
    assert any(name in problem for problem in found)
    assert "hunter2" not in "".join(found)


@pytest.mark.clause("provider.shape", "runtime.errors")
def test_a_description_that_raises_is_a_problem_without_its_text():
    provider = Provider()
    provider.describe = raising
    [problem] = problems(provider)
    assert "RuntimeError" in problem
    assert "hunter2" not in problem


@pytest.mark.clause("provider.shape")
def test_an_async_description_and_a_stream_are_problems():
    class Async(Provider):
        async def describe(self):
            return DESCRIPTION

        async def retrieve(self, request, context):
            yield {"id": "1", "content": "x"}

    found = problems(Async())
    assert any("describe" in problem and "async" in problem for problem in found)
    assert any("retrieve" in problem and "generator" in problem for problem in found)


@pytest.mark.clause("provider.shape")
@pytest.mark.parametrize(
    "described",
    [
        None,
        "text",
        [],
        5,
        hostile.Opaque(),
        hostile.RaisingDict(DESCRIPTION),
        hostile.RaisingMapping(),
        {**DESCRIPTION, "capabilities": hostile.RaisingDict(a=True)},
        {**DESCRIPTION, "knowledge_bases": hostile.RaisingSequence()},
        {**DESCRIPTION, "knowledge_bases": [hostile.Opaque()]},
        {**DESCRIPTION, "key": hostile.RaisingInt(1)},
        {**DESCRIPTION, "label": hostile.Opaque()},
    ],
    ids=lambda described: type(described).__name__,
)
def test_a_description_of_another_shape_is_a_problem(described):
    provider = Provider()
    provider.describe = lambda: described
    problems(provider)


@pytest.mark.clause("describe.version")
@pytest.mark.parametrize(
    "version", [True, "1", 1.0, [1], None, 0, 2, hostile.LyingInt(1), 10**5000], ids=lambda it: type(it).__name__
)
def test_only_the_integer_one_is_the_version(version):
    [problem] = description_problems(protocol_version=version)
    assert "protocol_version" in problem
    assert "the integer 1" in problem


@pytest.mark.clause("describe.version")
@pytest.mark.parametrize(
    ("version", "shown"), [(True, "True (bool)"), ("1", "'1'"), (1.0, "1.0 (float)"), ([1], "list")]
)
def test_a_refused_version_is_named_as_it_was_given(version, shown):
    [problem] = description_problems(protocol_version=version)
    assert problem.endswith(f"got {shown}")


@pytest.mark.clause("describe.version")
def test_a_missing_version_is_a_problem():
    provider = Provider()
    del provider.description["protocol_version"]
    assert "protocol_version" in problems(provider)[0]


@pytest.mark.clause("describe.key")
@pytest.mark.parametrize("key", ["a", "7", "local", "adapter-http-2", "a--b", "a" * 64])
def test_a_key_is_lower_case_letters_digits_and_inner_hyphens(key):
    assert assert_provider(Provider(key=key)).key == key


@pytest.mark.clause("describe.key")
@pytest.mark.parametrize("key", ["", "-a", "a-", "A", "a_b", "a b", "a\n", "é", "٣", "a" * 65, None, 5, b"a", True])
def test_another_key_is_a_problem(key):
    [problem] = description_problems(key=key)
    assert problem.startswith("key ")


@pytest.mark.clause("describe.label")
@pytest.mark.parametrize(
    ("label", "expected"), [(" Local\n library ", "Local library"), ("本地\u200b库", "本地库"), ("x" * 120, "x" * 120)]
)
def test_a_label_is_cleaned(label, expected):
    assert assert_provider(Provider(label=label)).label == expected


@pytest.mark.clause("describe.label")
@pytest.mark.parametrize("label", ["", " \n", "\u200b", "x" * 121, None, 5, b"x"])
def test_another_label_is_a_problem(label):
    [problem] = description_problems(label=label)
    assert problem.startswith("label ")


@pytest.mark.clause("describe.capabilities")
def test_capabilities_are_names_with_booleans():
    given = {"filters": True, "scores": False, "knowledge_bases": True, "x-own": True}
    described = assert_provider(Provider(capabilities=given))
    assert described.capabilities == given
    assert described.can("filters")
    assert not described.can("scores")
    assert not described.can("management")
    assert assert_provider(Provider(capabilities=None)).capabilities == {}


@pytest.mark.clause("describe.capabilities")
@pytest.mark.parametrize(
    "capabilities",
    [
        {"filters": 1},
        {"filters": "yes"},
        {"filters": None},
        {"Filters": True},
        {5: True},
        {"": True},
        {"a b": True},
        {f"c{number}": True for number in range(17)},
        ["filters"],
        "filters",
    ],
)
def test_a_rejected_capability_is_reported_and_not_lost(capabilities):
    [problem] = description_problems(capabilities=capabilities)
    assert "capabilit" in problem


@pytest.mark.clause("describe.knowledge_bases")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ([], ()),
        (["a", " b "], (KnowledgeBase(id="a"), KnowledgeBase(id="b"))),
        ([{"id": "a", "label": " A\n1 "}], (KnowledgeBase(id="a", label="A 1"),)),
        ([KnowledgeBase(id="a", label="A")], (KnowledgeBase(id="a", label="A"),)),
        ({"a": "A", "b": "B"}, (KnowledgeBase(id="a", label="A"), KnowledgeBase(id="b", label="B"))),
        ([{"id": "a", "label": 5}], (KnowledgeBase(id="a"),)),
    ],
)
def test_knowledge_bases_are_ids_with_labels(given, expected):
    assert assert_provider(Provider(knowledge_bases=given)).knowledge_bases == expected


@pytest.mark.clause("describe.knowledge_bases")
@pytest.mark.parametrize("given", ["a", 5, [""], ["x" * 121], [5], [{"label": "A"}], ["a", "a "], [None]])
def test_another_knowledge_base_is_a_problem(given):
    [problem] = description_problems(knowledge_bases=given)
    assert "knowledge" in problem


@pytest.mark.clause("describe.version", "describe.knowledge_bases")
def test_a_description_may_use_the_wire_names_or_the_class():
    wire = {"protocolVersion": 1, "key": "k", "label": "L", "knowledgeBases": ["a"]}
    expected = ProviderDescription(key="k", label="L", knowledge_bases=(KnowledgeBase(id="a"),))
    for described in (wire, expected, ProviderDescription(key="k", label="L", knowledge_bases=["a"])):
        provider = Provider()
        provider.describe = lambda described=described: described
        assert assert_provider(provider) == expected


@pytest.mark.clause("describe.frozen")
def test_a_description_holds_nothing_that_the_provider_can_change_later():
    given = {**DESCRIPTION, "capabilities": {"filters": True}, "knowledge_bases": [{"id": "a", "label": "A"}]}
    provider = Provider(**given)
    described = assert_provider(provider)
    before = copy.deepcopy(described)
    given["capabilities"]["scores"] = True
    given["knowledge_bases"].append({"id": "b"})
    given["knowledge_bases"][0]["id"] = "c"
    assert described == before


@pytest.mark.clause("provider.shape", "runtime.errors")
def test_a_problem_shows_no_credential():
    found = description_problems(key="password=hunter2", label=5, capabilities={"x": "sk-abcdefghijklmnop1234"})
    assert "hunter2" not in "".join(found)
    assert "sk-abc" not in "".join(found)


@pytest.mark.clause("health.states")
@pytest.mark.parametrize("status", ["ready", "unconfigured", "degraded", "unavailable"])
@pytest.mark.parametrize(
    "make", [lambda status: {"status": status}, lambda status: ProviderHealth(status=status)], ids=["mapping", "class"]
)
def test_a_known_state_is_taken(status, make):
    assert read_health(make(status)) == ProviderHealth(status=status)


@pytest.mark.clause("health.states")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "ready",
        5,
        ["ready"],
        {},
        {"status": "READY"},
        {"status": "ok"},
        {"status": None},
        {"status": True},
        {"status": hostile.LyingStr("dead")},
        {"status": hostile.RaisingStr("dead")},
        {"status": hostile.Opaque()},
        hostile.RaisingDict(status="ready"),
        hostile.RaisingMapping(),
        hostile.Opaque(),
        ProviderHealth(status="dead"),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_anything_unclear_is_unavailable_and_never_ready(answer):
    health = read_health(answer)
    assert health.status == "unavailable"
    assert health.message
    assert not health.ok


@pytest.mark.clause("health.states")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("all\n well", "all well"),
        ("see http://10.0.0.1/x", "see [redacted]"),
        ("failed: password=hunter2", "failed: password=[redacted]"),
        ("x" * 900, "x" * 500),
        (5, ""),
        (None, ""),
        (hostile.Opaque(), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_health_message_is_redacted_and_bounded(message, expected):
    assert read_health({"status": "degraded", "message": message}) == ProviderHealth(
        status="degraded", message=expected
    )
