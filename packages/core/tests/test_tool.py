import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core import CancelSignal, KnowledgeRuntime, KnowledgeTimeout, KnowledgeTool
from qak_core.errors import ERRORS_BY_CODE

from ._providers import RESULT, Patient, Provider, Raising

pytestmark = pytest.mark.clause("tool")

FORMS = {
    "openai": lambda definition: definition["function"]["parameters"],
    "mcp": lambda definition: definition["inputSchema"],
    "json_schema": lambda definition: definition,
}


def tool(provider=None, **options):
    return KnowledgeTool(KnowledgeRuntime(provider or Provider()), **options)


@pytest.fixture
def call(run):
    return lambda arguments, provider=None, **fields: run(tool(provider).call(arguments, **{"owner_id": "o", **fields}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_definition_offers_three_arguments_and_nothing_else(form, language):
    definition = tool(language=language).definition(form)
    schema = FORMS[form](definition)
    assert json.loads(json.dumps(definition)) == definition
    assert list(schema["properties"]) == ["query", "knowledge_base_ids", "top_k"]
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert (schema["properties"]["top_k"]["minimum"], schema["properties"]["top_k"]["maximum"]) == (1, 8)
    assert schema["properties"]["knowledge_base_ids"]["maxItems"] == 8
    for word in ("owner", "session", "filter"):
        assert word not in json.dumps(schema)
    texts = [argument["description"] for argument in schema["properties"].values()]
    assert all(any("\u4e00" <= char <= "\u9fff" for char in text) is (language == "zh") for text in texts)


def test_each_form_has_its_names():
    assert tool().definition()["type"] == "function"
    assert tool().definition()["function"]["name"] == "knowledge"
    mcp = tool().definition("mcp")
    assert (mcp["name"], mcp["annotations"]["readOnlyHint"]) == ("knowledge", True)


@pytest.mark.clause("describe.knowledge_bases")
def test_published_knowledge_bases_are_offered_with_their_labels():
    schema = tool(Provider(knowledge_bases={"hr": "人事", "it": ""})).definition("json_schema")
    ids = schema["properties"]["knowledge_base_ids"]
    assert ids["items"]["enum"] == ["hr", "it"]
    assert "人事" in ids["description"]
    assert "enum" not in tool().definition("json_schema")["properties"]["knowledge_base_ids"]["items"]


@pytest.mark.clause("management", "runtime.gate")
def test_management_is_never_offered_to_the_model():
    class Managing(Provider):
        async def ingest(self, source, context): ...

        async def list_documents(self, context): ...

        async def remove_document(self, document_id, context): ...

    managing = Managing(capabilities={"management": True, "filters": True})
    for form in FORMS:
        assert tool(managing).definition(form) == tool().definition(form)


@pytest.mark.clause("runtime.gate")
@pytest.mark.parametrize("form", FORMS)
def test_there_is_no_tool_without_a_provider(form, run):
    absent = KnowledgeTool(KnowledgeRuntime(None))
    assert not absent.available
    assert absent.definition(form) is None
    assert run(absent.call({"query": "q"}, owner_id="o"))["code"] == "knowledge_unconfigured"


@pytest.mark.clause("composition")
@pytest.mark.parametrize(
    ("value", "available"),
    [
        (None, True),
        ("", True),
        ("1", True),
        ("on", True),
        ("0", False),
        ("false", False),
        (" No ", False),
        ("OFF", False),
    ],
)
def test_the_switch_hides_the_tool_only(monkeypatch, run, value, available):
    monkeypatch.delenv("QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED", raising=False)
    if value is not None:
        monkeypatch.setenv("QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED", value)
    runtime = KnowledgeRuntime(Provider())
    switched = KnowledgeTool(runtime)
    assert switched.available is available
    assert (switched.definition() is not None) is available
    assert run(runtime.search("q", owner_id="o")).status == "ok"
    assert KnowledgeTool(runtime, enabled=True).available
    assert not KnowledgeTool(runtime, enabled=False).available


@pytest.mark.clause("tool")
def test_a_tool_that_is_switched_off_cannot_be_called(run):
    provider = Provider()
    hidden = KnowledgeTool(KnowledgeRuntime(provider), enabled=False)
    assert run(hidden.call({"query": "q"}, owner_id="o"))["code"] == "knowledge_unconfigured"
    assert provider.calls == []


@pytest.mark.clause("response.envelope")
@pytest.mark.parametrize(
    "arguments", [{"query": "年费"}, '{"query": "年费", "top_k": "2", "knowledge_base_ids": null}']
)
def test_a_call_gives_the_envelope(call, arguments):
    envelope = call(arguments)
    assert envelope["status"] == "ok"
    assert envelope["query"] == "年费"
    assert envelope["results"] == [RESULT]


@pytest.mark.clause("context.trusted")
def test_a_call_carries_what_the_host_says(run):
    provider = Provider()
    fields = {"session_id": "s", "turn_id": "t", "trace_id": "x"}
    run(tool(provider).call({"query": "q", "top_k": 2}, owner_id="o", **fields))
    [(request, context)] = provider.calls
    assert request.top_k == 2
    assert {name: getattr(context, name) for name in fields} == fields
    assert context.owner_id == "o"


@pytest.mark.clause(
    "context.trusted", "request.filters", "request.knowledge_base_ids", "request.query", "request.top_k"
)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"query": "q", "owner_id": "mallory"}, "knowledge_invalid_request"),
        ({"query": "q", "filters": {"owner": "mallory"}}, "knowledge_invalid_request"),
        ({"query": "q", "ownerId": "mallory"}, "knowledge_invalid_request"),
        ({"query": "q", "session_id": "s"}, "knowledge_invalid_request"),
        ({"query": "q", "signal": None}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": ["other"]}, "knowledge_base_unknown"),
        ({"query": "q", "knowledge_base_ids": "hr"}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": False}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": ""}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": {}}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": 0}, "knowledge_invalid_request"),
        ({"query": "q", "knowledge_base_ids": [None]}, "knowledge_invalid_request"),
        ({"query": "q", "top_k": True}, "knowledge_invalid_request"),
        ({"query": "q", "top_k": 2.5}, "knowledge_invalid_request"),
        ({"query": " "}, "knowledge_query_required"),
        ({}, "knowledge_query_required"),
        ({"query": None}, "knowledge_query_required"),
        ({"query": ["q"]}, "knowledge_invalid_request"),
        ("", "knowledge_invalid_request"),
        ("{", "knowledge_invalid_request"),
        ("null", "knowledge_invalid_request"),
        ('["q"]', "knowledge_invalid_request"),
        ("[" * 100_000, "knowledge_invalid_request"),
        ('{"query": "q", "top_k": ' + "9" * 5000 + "}", "knowledge_invalid_request"),
        ('{"query": "q", "top_k": NaN}', "knowledge_invalid_request"),
        (None, "knowledge_invalid_request"),
        (b'{"query": "q"}', "knowledge_invalid_request"),
        ([("query", "q")], "knowledge_invalid_request"),
        ({5: "q"}, "knowledge_invalid_request"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_arguments_that_a_model_may_not_give_are_refused(call, arguments, code):
    provider = Provider(capabilities={"filters": True}, knowledge_bases=["hr"])
    envelope = call(arguments, provider)
    assert set(envelope) == {"status", "code", "message", "retryable"}
    assert (envelope["status"], envelope["code"]) == ("error", code)
    assert provider.calls == []


@pytest.mark.clause("errors", "runtime.errors")
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("error", ERRORS_BY_CODE.values(), ids=ERRORS_BY_CODE)
def test_every_failure_is_an_envelope_with_a_fixed_text(run, language, error):
    envelope = run(
        tool(Raising(error("http://10.0.0.1 password=hunter2")), language=language).call({"query": "q"}, owner_id="o")
    )
    assert set(envelope) == {"status", "code", "message", "retryable"}
    assert envelope["code"] in {error.code, "knowledge_failed"}
    assert envelope["retryable"] is ERRORS_BY_CODE[envelope["code"]].retryable
    assert "10.0.0.1" not in str(envelope)
    assert "hunter2" not in str(envelope)
    assert any("\u4e00" <= char <= "\u9fff" for char in envelope["message"]) is (language == "zh")


@pytest.mark.clause("context.trusted")
@pytest.mark.parametrize("owner_id", ["", None, 5])
def test_a_call_without_an_owner_is_refused(call, owner_id):
    assert call({"query": "q"}, owner_id=owner_id)["code"] == "knowledge_owner_required"


@pytest.mark.clause("runtime.deadline")
def test_the_callers_cancellation_and_deadline_are_passed_on(call):
    cancelled = CancelSignal()
    cancelled.cancel()
    assert call({"query": "q"}, signal=cancelled)["code"] == "knowledge_cancelled"
    assert call({"query": "q"}, Patient(), signal=CancelSignal(0.02))["code"] == KnowledgeTimeout.code


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("query top_k knowledge_base_ids owner_id".split()), inner)
    ),
    max_leaves=5,
)


@given(arguments=json_values | json_values.map(json.dumps) | st.text())
@settings(max_examples=200, deadline=None, database=None)
def test_whatever_a_model_writes_gives_an_envelope(arguments):
    envelope = asyncio.run(tool().call(arguments, owner_id="o"))
    json.dumps(envelope, allow_nan=False).encode()
    assert envelope["status"] in {"ok", "error"}
