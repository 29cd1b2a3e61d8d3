"""One test for each known pitfall of Haystack, H01 to H15, and for each public report, on the real parts."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import haystack.telemetry._telemetry as telemetry_module
import numpy
import pytest
from haystack import Document, Pipeline, component, tracing
from haystack.components.converters import CSVToDocument
from haystack.components.preprocessors import DocumentSplitter, MarkdownHeaderSplitter
from haystack.components.retrievers import TextEmbeddingRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.dataclasses import ByteStream
from haystack.document_stores.types import FilterPolicy

from qak_adapter_haystack import HaystackProvider
from qak_core import (
    CancelSignal,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidResponse,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    RetrievalContext,
    RetrievalRequest,
    SettingsError,
)

SECRET = "sk-planted-0123456789abcdefghij"
BOBS = {"type": "eq", "key": "owner_id", "value": "bob"}
OWNER = {"field": "meta.owner_id", "operator": "==", "value": "alice"}


def ids(response: Any) -> list[str]:
    return [result.id for result in response.results]


@component
class Returns:
    """A retriever whose answer a test chooses."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 10) -> dict[str, Any]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


# Filters


@pytest.mark.parametrize("policy", list(FilterPolicy))
@pytest.mark.parametrize(
    "own",
    [
        OWNER,
        {"operator": "AND", "conditions": [OWNER]},
        {"operator": "OR", "conditions": [OWNER]},
        {"operator": "NOT", "conditions": [{"field": "meta.owner_id", "operator": "==", "value": "bob"}]},
    ],
    ids=["comparison", "and", "or", "not"],
)
def test_H01_retriever_keeps_its_own_filters_whatever_the_caller_filters(store, ask, caplog, policy, own) -> None:
    provider = HaystackProvider(InMemoryBM25Retriever(store, filters=own, filter_policy=policy))
    kinds = [{"type": "in", "key": "kind", "value": ["article", "blog"]}, {"type": "gte", "key": "year", "value": 2000}]
    assert set(ids(ask(provider, filters={"type": "or", "filters": [BOBS, *kinds]}))) == {"red", "green", "blue"}
    assert ids(ask(provider, filters=BOBS)) == []
    assert set(ids(ask(provider))) == {"red", "green", "blue"}
    assert "alice" not in caplog.text  # Haystack warns of filters that it drops, with their values
    assert "bob" not in caplog.text


@pytest.mark.parametrize("policy", list(FilterPolicy))
def test_H01_host_and_owner_filters_hold_beside_the_callers(store, ask, policy) -> None:
    articles = {"type": "eq", "key": "kind", "value": "article"}
    provider = HaystackProvider(
        InMemoryBM25Retriever(store, filter_policy=policy), filters=articles, owner_key="owner_id"
    )
    blogs = {"type": "eq", "key": "kind", "value": "blog"}
    assert ids(ask(provider, filters=blogs)) == []
    assert ids(ask(provider, filters={"type": "or", "filters": [blogs, BOBS]})) == []
    assert set(ids(ask(provider, filters={"type": "ne", "key": "kind", "value": "x"}))) == {"red", "blue"}
    assert ids(ask(provider, owner_id="bob")) == ["secret"]


def test_H02_filters_of_one_call_leave_no_trace_for_the_next(store, ask) -> None:
    own, host = {**OWNER}, {"operator": "AND", "conditions": [{"field": "meta.year", "operator": ">", "value": 2000}]}
    retriever = InMemoryBM25Retriever(store, filters=own, filter_policy=FilterPolicy.MERGE)
    provider = HaystackProvider(retriever, filters=host)
    for year in (2024, 2026):
        assert len(ids(ask(provider, filters={"type": "eq", "key": "year", "value": year}))) == 1
    assert len(ids(ask(provider))) == 3
    assert retriever.filters == OWNER
    assert host == {"operator": "AND", "conditions": [{"field": "meta.year", "operator": ">", "value": 2000}]}


def test_H03_pipeline_gets_each_input_where_it_belongs(store, ask, parts) -> None:
    seen: dict[str, Any] = {}

    @component
    class Ranker:
        """Has a query and a top_k of its own, as rankers do, and no filters."""

        @component.output_types(documents=list[Document])
        def run(self, query: str, documents: list[Document], top_k: int = 3) -> dict[str, Any]:
            seen.update(query=query, top_k=top_k, candidates=len(documents))
            return {"documents": documents[:top_k]}

    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("ranker", Ranker())
    pipeline.connect("words", "ranker.documents")
    assert len(ids(ask(HaystackProvider(pipeline), "lamp", top_k=2))) == 2
    assert seen == {"query": "lamp", "top_k": 2, "candidates": 4}  # the retriever still chose its own number


def test_H03_filters_nobody_takes_are_refused_not_ignored(ask) -> None:
    provider = HaystackProvider(Returns({"documents": []}))
    assert not provider.describe().can("filters")
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters=BOBS)


def test_H04_output_is_found_by_its_type_or_named_by_the_host(ask) -> None:
    @component
    class Odd:
        @component.output_types(docs=list[Document], ignored=list[str])
        def run(self, query: str) -> dict[str, Any]:
            return {"docs": [Document(id="a", content="text")], "ignored": [], "undeclared": [Document(content="no")]}

    @component
    class Two:
        @component.output_types(good=list[Document], bad=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"good": [Document(id="good", content="text")], "bad": [Document(id="bad", content="text")]}

    assert ids(ask(HaystackProvider(Odd()))) == ["a"]
    with pytest.raises(SettingsError, match="good, bad"):
        HaystackProvider(Two())
    assert ids(ask(HaystackProvider(Two(), output="good"))) == ["good"]


@pytest.mark.parametrize(
    "answer",
    [{"documents": None}, {}, {"docs": []}, {"documents": "text"}, {"documents": 5}, None, [Document(content="x")]],
)
def test_H05_answer_without_a_list_of_documents_is_invalid_not_empty(ask, answer) -> None:
    with pytest.raises(KnowledgeInvalidResponse):
        ask(HaystackProvider(Returns(answer)))


def test_H06_documents_without_text_are_left_out_and_made_up_for(ask, parts) -> None:
    image = [Document(id=f"image-{n}", blob=ByteStream(b"\x89PNG"), embedding=parts.embed("lamp")) for n in range(3)]
    blank = [
        Document(id=f"blank-{n}", content=text, embedding=parts.embed("lamp")) for n, text in enumerate(["", " \n"])
    ]
    texts = [Document(id=f"text-{n}", content=f"lamp {n}", embedding=parts.embed(f"lamp {n}")) for n in range(3)]
    store = parts.make_store(image + blank + texts)
    provider = HaystackProvider(InMemoryEmbeddingRetriever(store), text_embedder=parts.ToyTextEmbedder())
    assert len(ids(ask(provider, "lamp", top_k=3))) == 3
    assert all(name.startswith("text") for name in ids(ask(provider, "lamp", top_k=3)))
    store.shutdown()


@component
class L2Retriever:
    """As stores with a Euclidean metric do: best first, with the distance as score."""

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        found = [("best", 0.0), ("near", 0.632), ("far", 1.414), ("worst", 2.0)]
        return {"documents": [Document(id=name, content=name, score=score) for name, score in found[:top_k]]}


def test_H07_distances_keep_their_order_and_never_get_out(ask, parts) -> None:
    pair = HaystackProvider(L2Retriever(), text_embedder=parts.ToyTextEmbedder(), score="distance")
    response = ask(pair, top_k=4)
    assert ids(response) == ["best", "near", "far", "worst"]
    assert [result.score for result in response.results] == [None] * 4
    assert not pair.describe().can("scores")
    # why retriever and embedder are better given apart:
    sorted_by_haystack = TextEmbeddingRetriever(retriever=L2Retriever(), text_embedder=parts.ToyTextEmbedder())
    assert ids(ask(HaystackProvider(sorted_by_haystack), top_k=4)) == ["worst", "far", "near", "best"]


# Errors


def leak_free(error: KnowledgeError) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)]
    assert not any(SECRET in text or "postgres" in text for text in shown)


@pytest.mark.parametrize("wrapped", [False, True], ids=["component", "pipeline"])
@pytest.mark.parametrize(
    ("cause", "expected"),
    [(RuntimeError, KnowledgeUnavailable), (TimeoutError, KnowledgeTimeout)],
)
def test_H08_error_keeps_its_kind_and_nothing_of_its_text(ask, caplog, wrapped, cause, expected) -> None:
    failing = Returns(cause(f"postgres://u:{SECRET}@db/lamp"))
    pipeline = Pipeline()
    pipeline.add_component("failing", failing)
    with caplog.at_level(logging.DEBUG), pytest.raises(expected) as caught:
        ask(HaystackProvider(pipeline if wrapped else failing), f"my {SECRET}")
    leak_free(caught.value)
    assert SECRET not in caplog.text


def test_H09_failing_pipeline_leaves_no_snapshot_of_the_query(ask, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HAYSTACK_PIPELINE_SNAPSHOT_SAVE_ENABLED", "true")
    pipeline = Pipeline()
    pipeline.add_component("failing", Returns(RuntimeError("no")))
    with pytest.raises(KnowledgeUnavailable) as caught:
        ask(HaystackProvider(pipeline), "a private question")
    leak_free(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# Telemetry and tracing


def test_H10_importing_the_adapter_imports_no_sdk_writes_no_file_opens_no_socket(tmp_path: Path) -> None:
    program = """
import sys
seen = []
def hook(event, arguments):
    if event.startswith("socket.") or event in ("os.mkdir", "os.rename", "os.remove"):
        seen.append((event, arguments))
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append((event, arguments))
sys.addaudithook(hook)
import qak_adapter_haystack
from qak_core import list_adapters, load_adapter
assert any(info.name == "haystack" and not info.problem for info in list_adapters())
assert load_adapter("haystack") is qak_adapter_haystack.create
assert not [name for name in sys.modules if name.partition(".")[0] in ("haystack", "posthog", "numpy", "openai")]
assert seen == [], seen
"""
    env = {name: value for name, value in os.environ.items() if name != "HAYSTACK_TELEMETRY_ENABLED"}
    env |= {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


class Events:
    """Stands where Haystack keeps its telemetry client, and takes what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send_event(self, name: str, properties: Any = None) -> None:
        self.sent.append(name)


class Spans(tracing.Tracer):
    """A host's tracer."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tags: list[Any] = []

    def trace(self, operation_name: str, tags: Any = None, parent_span: Any = None) -> Any:
        self.names.append(operation_name)
        self.tags.append(tags)
        return tracing.tracer.__class__(null_tracer()).trace(operation_name)

    def current_span(self) -> Any:
        return None


def null_tracer() -> Any:
    return sys.modules["haystack.tracing.tracer"].NullTracer()


@pytest.fixture
def host_observability(monkeypatch):
    events, spans = Events(), Spans()
    monkeypatch.setattr(telemetry_module, "telemetry", events)
    tracing.enable_tracing(spans)
    yield events, spans
    tracing.disable_tracing()


@pytest.mark.parametrize("kind", ["hybrid", "native"])
def test_H10_calls_stay_out_of_telemetry_and_tracing_while_the_hosts_go_on(store, parts, run, host_observability, kind):
    events, spans = host_observability
    if kind == "hybrid":
        pipeline = parts.hybrid(store)
    else:
        pipeline = Pipeline()
        pipeline.add_component("words", InMemoryBM25Retriever(store))
    mine = Pipeline()
    mine.add_component("words", InMemoryBM25Retriever(store))
    provider = HaystackProvider(pipeline)

    async def both() -> None:
        request, context = RetrievalRequest(query="a private lamp"), RetrievalContext(owner_id="alice")
        call = asyncio.ensure_future(provider.retrieve(request, context))
        await asyncio.gather(call, mine.run_async({"words": {"query": "public lamp"}}))

    run(both())
    assert events.sent == ["Pipeline run (3.x)"]
    assert spans.names == ["haystack.pipeline.run", "haystack.component.run"]
    assert "private" not in repr(spans.tags)
    assert tracing.is_tracing_enabled()
    mine.run({"words": {"query": "another"}})
    assert len(spans.names) == 4
    tracing.disable_tracing()
    assert not tracing.is_tracing_enabled()


def test_H10_calls_are_traced_where_the_host_asks_for_it(store, ask, host_observability) -> None:
    events, spans = host_observability
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    ask(HaystackProvider(pipeline, disable_tracing=False))
    assert events.sent
    assert "haystack.pipeline.run" in spans.names


# Threads, embedders


def test_H11_late_thread_is_left_behind_and_its_answer_dropped(run) -> None:
    entered, released = threading.Event(), threading.Event()

    @component
    class Slow:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            entered.set()
            assert released.wait(20)
            raise RuntimeError(SECRET)

    async def cancel_while_it_runs() -> None:
        provider = HaystackProvider(Slow(), max_workers=1)
        signal = CancelSignal(20.0)
        task = asyncio.ensure_future(
            provider.retrieve(RetrievalRequest(query="q"), RetrievalContext(owner_id="alice", signal=signal))
        )
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 20)
        signal.cancel()
        with pytest.raises(KnowledgeError) as caught:
            await task
        assert caught.value.code == "knowledge_cancelled"
        released.set()
        await provider.close()

    run(cancel_while_it_runs())


def test_H12_embedding_retriever_without_its_embedder_is_refused_at_composition(store, ask, parts) -> None:
    with pytest.raises(SettingsError, match="text_embedder"):
        HaystackProvider(InMemoryEmbeddingRetriever(store))
    embedder = parts.ToyTextEmbedder()
    provider = HaystackProvider(InMemoryEmbeddingRetriever(store), text_embedder=embedder, owner_key="owner_id")
    assert ids(ask(provider, "blue light"))[0] == "blue"
    ask(provider, "green lamp")
    assert embedder.warmed_up == 1


def test_H13_numpy_scores_become_plain_numbers(store, ask) -> None:
    retriever = InMemoryBM25Retriever(store, scale_score=True)
    assert isinstance(retriever.run(query="lamp")["documents"][0].score, numpy.floating)
    scores = [result.score for result in ask(HaystackProvider(retriever, score="similarity")).results]
    assert [type(score) for score in scores] == [float] * 4
    assert scores == sorted(scores, reverse=True)


def test_H14_split_documents_have_flat_metadata_and_a_locator(ask, parts) -> None:
    text = Document(
        content="# Lamps\n\n## Red\n\nThe lamp is red.\n\n## Blue\n\nThe lamp is blue.", meta={"title": "Lamps"}
    )
    sections = MarkdownHeaderSplitter(keep_headers=False).run(documents=[text])["documents"]
    long = Document(content="one two three four five six seven eight lamp", meta={"page_number": 1})
    splitter = DocumentSplitter(split_by="word", split_length=4, split_overlap=2)
    chunks = splitter.run(documents=[long])["documents"]
    assert any("_split_overlap" in chunk.meta for chunk in chunks)
    store = parts.make_store([*sections, *chunks])
    results = ask(HaystackProvider(InMemoryBM25Retriever(store)), "lamp red", top_k=8).results
    for result in results:
        assert all(type(value) in {str, int, float, bool} for value in result.metadata.values())
        assert not any(key.startswith("_") for key in result.metadata)
    locators = [result.source.locator for result in results]
    assert any("section Lamps > Red" in locator for locator in locators)
    assert any("characters" in locator and locator.startswith("page 1") for locator in locators)
    assert {result.source.id for result in results} == {text.id, long.id}
    store.shutdown()


@pytest.mark.parametrize("whole", [False, True])
def test_H15_file_path_gives_a_title_and_never_an_address_or_a_directory(ask, parts, tmp_path, whole) -> None:
    path = tmp_path / "lamps.csv"
    path.write_text("lamp,colour\nheliotrope,red\n", encoding="utf-8")
    documents = CSVToDocument(store_full_path=whole).run(sources=[path])["documents"]
    store = parts.make_store(documents)
    (result,) = ask(HaystackProvider(InMemoryBM25Retriever(store)), "heliotrope").results
    assert result.source.title == "lamps.csv"
    assert result.source.uri is None
    assert str(tmp_path) not in repr(result)
    store.shutdown()


# Public reports


def test_report_29_merge_policy_keeps_the_init_filter_beside_another_field(store, ask) -> None:
    retriever = InMemoryBM25Retriever(
        store, filters={"field": "meta.kind", "operator": "==", "value": "article"}, filter_policy=FilterPolicy.MERGE
    )
    recent = {"type": "gte", "key": "year", "value": 2025}
    assert set(ids(ask(HaystackProvider(retriever), filters=recent))) == {"blue", "secret"}


def test_report_31_meta_named_as_fields_overwrites_nothing(ask, parts) -> None:
    store = parts.make_store([Document(id="real", content="lamp", meta={"id": "fake", "score": 9, "content": "fake"})])
    (result,) = ask(HaystackProvider(InMemoryBM25Retriever(store), score="similarity")).results
    assert (result.id, result.content) == ("real", "lamp")
    assert result.score != 9
    assert result.metadata == {"id": "fake", "score": 9, "content": "fake"}
    store.shutdown()


def test_report_33_kind_of_an_error_is_read_from_its_cause_not_its_text(ask) -> None:
    class RateLimitError(Exception):
        status_code = 429

    pipeline = Pipeline()
    pipeline.add_component("failing", Returns(RateLimitError("slow down")))
    with pytest.raises(KnowledgeError) as caught:
        ask(HaystackProvider(pipeline))
    assert caught.value.code == "knowledge_rate_limited"


def test_report_35_switched_off_telemetry_writes_nothing_and_is_asked_nothing(tmp_path: Path) -> None:
    program = """
import asyncio, sys
connected = []
sys.addaudithook(lambda event, arguments: connected.append(arguments) if event == "socket.connect" else None)
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from qak_adapter_haystack import HaystackProvider
from qak_core import KnowledgeRuntime
store = InMemoryDocumentStore()
store.write_documents([Document(content="a lamp")])
pipeline = Pipeline()
pipeline.add_component("words", InMemoryBM25Retriever(store))
async def main():
    async with KnowledgeRuntime(HaystackProvider(pipeline)) as runtime:
        assert len((await runtime.search("lamp", owner_id="alice")).results) == 1
asyncio.run(main())
assert connected == [], connected
"""
    env = os.environ | {"HOME": str(tmp_path), "HAYSTACK_TELEMETRY_ENABLED": "false"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert list(tmp_path.iterdir()) == []
