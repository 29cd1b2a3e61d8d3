import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_core import (
    KnowledgeBase,
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeInvalidResponse,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
    Source,
    from_wire,
    normalize_response,
    to_wire,
)

pytestmark = pytest.mark.clause("response.fields")

RESULT = RetrievalResult(
    id="1",
    content="text",
    score=0.5,
    source=Source(id="d", title="T", uri="https://example.com/", mime_type="text/html", locator="page 3"),
    metadata={"lang": "en", "n": 1},
)
WIRE_RESULT = {
    "id": "1",
    "content": "text",
    "score": 0.5,
    "source": {"id": "d", "title": "T", "uri": "https://example.com/", "mimeType": "text/html", "locator": "page 3"},
    "metadata": {"lang": "en", "n": 1},
}
REQUEST = RetrievalRequest(query="q", top_k=3, knowledge_base_ids=["a"], filters={"a": {"b": [1]}})
VALUES = [
    (RESULT, WIRE_RESULT),
    (RetrievalResult(id="1", content="x"), {"id": "1", "content": "x", "metadata": {}}),
    (RetrievalResponse(results=[RESULT], degraded=["wiki"]), {"results": [WIRE_RESULT], "degraded": ["wiki"]}),
    (REQUEST, {"query": "q", "topK": 3, "knowledgeBaseIds": ["a"], "filters": {"a": {"b": [1]}}}),
    (ProviderHealth(status="degraded", message="slow"), {"status": "degraded", "message": "slow"}),
    (
        ProviderDescription(
            key="k", label="L", capabilities={"filters": True}, knowledge_bases=[KnowledgeBase(id="a", label="A")]
        ),
        {
            "key": "k",
            "label": "L",
            "protocolVersion": 1,
            "capabilities": {"filters": True},
            "knowledgeBases": [{"id": "a", "label": "A"}],
        },
    ),
    (Source(), {}),
]


@pytest.mark.parametrize(("value", "wire"), VALUES, ids=[type(value).__name__ for value, _ in VALUES])
def test_a_value_is_written_in_camel_case_and_read_back(value, wire):
    assert to_wire(value) == wire
    assert from_wire(type(value), json.loads(json.dumps(wire))) == value


@pytest.mark.parametrize(
    ("kind", "wire", "value"),
    [
        (RetrievalRequest, {"query": "q", "top_k": "3"}, RetrievalRequest(query="q", top_k=3)),
        (RetrievalResult, {"chunkId": "1", "text": "x"}, RetrievalResult(id="1", content="x")),
        (RetrievalResult, {"chunk_id": "1", "content": "x", "new": 1}, RetrievalResult(id="1", content="x")),
        (RetrievalResult, {"id": 5, "content": "x"}, RetrievalResult(id="5", content="x")),
        (RetrievalResult, {"id": "1", "content": "x", "score": None}, RetrievalResult(id="1", content="x")),
        (Source, {"url": "https://example.com/", "mime_type": "m"}, Source(uri="https://example.com/", mime_type="m")),
        (
            RetrievalResponse,
            [{"id": "1", "content": "x"}],
            RetrievalResponse(results=[RetrievalResult(id="1", content="x")]),
        ),
        (
            ProviderDescription,
            {"key": "k", "label": "L", "knowledgeBases": ["a"]},
            ProviderDescription(key="k", label="L", knowledge_bases=[KnowledgeBase(id="a")]),
        ),
    ],
)
def test_snake_case_and_older_names_are_read(kind, wire, value):
    assert from_wire(kind, wire) == value


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        (RetrievalResult, None),
        (RetrievalResult, []),
        (RetrievalResult, {"id": "1"}),
        (RetrievalResult, {"id": True, "content": "x"}),
        (RetrievalResult, {"id": "1", "content": 5}),
        (RetrievalResult, {"id": "1", "content": "x", "score": True}),
        (RetrievalResult, {"id": "1", "content": "x", "score": "0.5"}),
        (RetrievalResult, {"id": "1", "content": "x", "source": "d"}),
        (RetrievalResult, {"id": "1", "content": "x", "metadata": [1]}),
        (RetrievalResponse, {"results": None}),
        (RetrievalResponse, {"results": {"id": "1", "content": "x"}}),
        (RetrievalResponse, {"result": []}),
        (ProviderHealth, {"status": 5}),
        (ProviderDescription, {"key": "k"}),
    ],
)
@pytest.mark.clause("response.shape")
def test_another_shape_is_an_invalid_response(kind, wire):
    with pytest.raises(KnowledgeInvalidResponse):
        from_wire(kind, wire)


@pytest.mark.clause("request.query")
@pytest.mark.parametrize(
    "wire", [None, [], "q", {}, {"query": 5}, {"query": "q", "topK": True}, {"query": "q", "filters": [1]}]
)
def test_another_shape_is_an_invalid_request(wire):
    with pytest.raises(KnowledgeInvalidRequest):
        from_wire(RetrievalRequest, wire)


@pytest.mark.clause("context.trusted")
def test_what_only_a_host_may_say_has_no_wire_form():
    with pytest.raises(TypeError):
        to_wire(RetrievalContext(owner_id="o"))
    made = from_wire(RetrievalRequest, {"query": "q", "ownerId": "x", "owner_id": "x", "signal": 1})
    assert made == RetrievalRequest(query="q")


@pytest.mark.parametrize("thing", [None, {}, "text", object()], ids=lambda thing: type(thing).__name__)
def test_something_else_has_no_wire_form(thing):
    with pytest.raises(TypeError):
        to_wire(thing)


texts = st.text(max_size=10)
optional_texts = st.none() | texts
results = st.builds(
    RetrievalResult,
    id=texts,
    content=texts,
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    source=st.none()
    | st.builds(Source, **dict.fromkeys(["id", "title", "uri", "mime_type", "locator"], optional_texts)),
    metadata=st.dictionaries(texts, texts | st.booleans() | st.integers(), max_size=3),
)


@given(st.builds(RetrievalResponse, results=st.lists(results, max_size=3), degraded=st.lists(texts, max_size=2)))
@settings(max_examples=150, deadline=None, database=None)
def test_any_response_survives_the_wire(response):
    wire = json.loads(json.dumps(to_wire(response)))
    assert from_wire(RetrievalResponse, wire) == response
    assert normalize_response(wire, query="q") == normalize_response(response, query="q")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("id content results source metadata score query topK status".split()) | texts,
            inner,
            max_size=4,
        )
    ),
)


@given(
    kind=st.sampled_from(
        [RetrievalRequest, RetrievalResponse, RetrievalResult, Source, ProviderHealth, ProviderDescription]
    ),
    wire=json_values,
)
@settings(max_examples=300, deadline=None, database=None)
def test_whatever_comes_over_the_wire_is_a_value_or_an_error_of_the_list(kind, wire):
    with suppress(KnowledgeError):
        assert isinstance(from_wire(kind, wire), kind)
