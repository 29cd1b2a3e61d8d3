"""How the provider is composed, asked and closed."""

from __future__ import annotations

import asyncio
import copy
import sys
import textwrap
import threading
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, SuperComponent, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.components.retrievers import AutoMergingRetriever, MultiRetriever, TextEmbeddingRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter

from qak_adapter_haystack import HaystackProvider, create
from qak_core import (
    CancelSignal,
    KnowledgeBaseUnknown,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    KnowledgeInvalidRequest,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    SettingsError,
    assert_provider,
)
from qak_core.authoring import run_blocking


def ids(response: Any) -> list[str]:
    return [result.id for result in response.results]


@component
class Fixed:
    """A retriever without filters and top_k."""

    def __init__(self, *documents: Document) -> None:
        self.documents = documents

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        return {"documents": list(self.documents)}


@component
class Counting:
    """As a web search: knows ``top_k`` and no filters."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents
        self.asked: list[int] = []

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 10) -> dict[str, Any]:
        self.asked.append(top_k)
        return {"documents": self.documents[:top_k]}


def texts(count: int, **meta: Any) -> list[Document]:
    return [Document(id=f"d{n}", content=f"text {n}", meta=meta) for n in range(count)]


# Composition


def test_provider_reports_every_problem_at_once(store) -> None:
    with pytest.raises(SettingsError) as caught:
        HaystackProvider(
            InMemoryEmbeddingRetriever(store),
            knowledge_bases={"a": object(), "b": InMemoryBM25Retriever},
            score="best",  # type: ignore[arg-type]
            caller_filters="some",  # type: ignore[arg-type]
            citation_keys={"page": "p"},
            filters={"field": "meta.x"},
            max_workers=0,
        )
    text = "\n".join(caught.value.problems)
    for part in ("score", "caller_filters", "citation_keys", "filters", "max_workers", "text_embedder", "'a'", "'b'"):
        assert part in text
    with pytest.raises(SettingsError, match="retriever or knowledge_bases"):
        HaystackProvider()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"query_inputs": ["question"]}, "no free input 'question'"),
        ({"top_k_inputs": ["limit"]}, "no free input 'limit'"),
        ({"filters_inputs": ["where"]}, "no free input 'where'"),
        ({"output": "docs"}, "no output 'docs'; it has documents"),
    ],
)
def test_provider_names_the_sockets_there_are_when_a_named_one_is_not(store, names, message) -> None:
    with pytest.raises(SettingsError, match=message):
        HaystackProvider(InMemoryBM25Retriever(store), **names)


def test_provider_refuses_a_component_with_inputs_it_cannot_fill(store) -> None:
    @component
    class Demanding:
        @component.output_types(documents=list[Document])
        def run(self, query: str, tenant: str) -> dict[str, Any]:
            raise AssertionError("never run")

    with pytest.raises(SettingsError, match="'tenant'"):
        HaystackProvider(Demanding())
    with pytest.raises(SettingsError, match="no input for the query"):
        HaystackProvider(DocumentWriter(store))
    with pytest.raises(SettingsError, match="must take text and give embedding"):
        HaystackProvider(InMemoryEmbeddingRetriever(store), text_embedder=InMemoryBM25Retriever(store))


def test_provider_takes_documents_from_inside_a_pipeline_when_told_which(store, ask) -> None:
    @component
    class Builder:
        @component.output_types(prompt=str)
        def run(self, documents: list[Document]) -> dict[str, Any]:
            return {"prompt": " ".join(document.content or "" for document in documents)}

    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("builder", Builder())
    pipeline.connect("words", "builder")
    with pytest.raises(SettingsError, match=r"words\.documents"):
        HaystackProvider(pipeline)
    assert len(ids(ask(HaystackProvider(pipeline, output="words.documents"), top_k=2))) == 2


@pytest.mark.filterwarnings(
    "ignore:'MultiRetriever' is an experimental:haystack.utils.experimental.ExperimentalWarning"
)
def test_provider_refuses_retrievers_whose_own_filters_differ(store, parts) -> None:
    def retriever(kind: str) -> InMemoryBM25Retriever:
        return InMemoryBM25Retriever(store, filters={"field": "meta.kind", "operator": "==", "value": kind})

    both = MultiRetriever(retrievers={"a": retriever("article"), "b": retriever("blog")})
    with pytest.raises(SettingsError, match="different filters of their own"):
        HaystackProvider(both)
    HaystackProvider(MultiRetriever(retrievers={"a": retriever("blog"), "b": retriever("blog")}))


def test_provider_shows_nothing_but_its_key() -> None:
    assert repr(HaystackProvider(Fixed(), key="shelf")) == "HaystackProvider('shelf')"


# Kinds of retrievers


def test_hybrid_pipeline_finds_by_words_and_by_vectors(store, ask, parts) -> None:
    provider = HaystackProvider(parts.hybrid(store), score="similarity", owner_key="owner_id")
    response = ask(provider, "blue light", top_k=3)
    assert ids(response)[0] == "blue"
    assert set(ids(response)) == {"red", "green", "blue"}
    scores = [result.score for result in response.results]
    assert scores == sorted(scores, reverse=True)


def test_hybrid_pipeline_branch_that_ignores_filters_is_checked_afterwards(store, ask, parts) -> None:
    pipeline = parts.hybrid(store, join_mode="concatenate")
    pipeline.add_component("web", Fixed(Document(id="foreign", content="lamp", score=99.0, meta={"owner_id": "bob"})))
    pipeline.connect("web", "joiner")
    provider = HaystackProvider(pipeline, owner_key="owner_id", filters={"type": "gte", "key": "year", "value": 2025})
    assert set(ids(ask(provider))) == {"green", "blue"}


def test_auto_merging_pipeline_returns_parents_and_keeps_owners_apart(ask, parts) -> None:
    def leaves_and_parents(owner_id: str) -> list[Document]:
        text = f"{owner_id} has one lamp. {owner_id} has two lamps. "
        splitter = HierarchicalDocumentSplitter(block_sizes={10, 5}, split_overlap=0, split_by="word")
        return splitter.run([Document(content=text, meta={"owner_id": owner_id})])["documents"]

    documents = [*leaves_and_parents("alice"), *leaves_and_parents("bob")]
    parents = parts.make_store(document for document in documents if document.meta["__children_ids"])
    leaves = parts.make_store(document for document in documents if not document.meta["__children_ids"])
    pipeline = Pipeline()
    pipeline.add_component("leaves", InMemoryBM25Retriever(leaves))
    pipeline.add_component("merging", AutoMergingRetriever(parents, threshold=0.4))
    pipeline.connect("leaves", "merging.documents")
    (result,) = ask(HaystackProvider(pipeline, owner_key="owner_id"), "lamp lamps").results
    assert "one lamp" in result.content
    assert "two lamps" in result.content
    assert "bob" not in result.content
    assert not any(key.startswith("_") for key in result.metadata)
    parents.shutdown()
    leaves.shutdown()


def test_async_pipeline_runs_on_the_event_loop_and_starts_no_thread(store, run, parts) -> None:
    pipeline = Pipeline()
    pipeline.add_component("embedder", parts.AsyncToyTextEmbedder())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.connect("embedder.embedding", "vectors.query_embedding")

    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith(("qak-haystack", "asyncio_"))}

    async def ask_twice() -> None:
        before = threads()
        provider = HaystackProvider(pipeline)
        for query in ("blue light", "reading"):
            response = await provider.retrieve(RetrievalRequest(query=query), RetrievalContext(owner_id="a"))
            assert len(response.results) == 4
        assert threads() <= before

    run(ask_twice())
    assert pipeline.get_component("embedder").warmed_up >= 1


@pytest.mark.parametrize("kind", ["component", "wrapped", "pipeline"])
def test_blocking_part_never_runs_in_the_event_loops_own_threads(store, run, parts, kind) -> None:
    names: set[str] = set()

    @component
    class Watching:
        @component.output_types(embedding=list[float])
        def run(self, text: str) -> dict[str, Any]:
            names.add(threading.current_thread().name.rpartition("-")[0])
            return {"embedding": parts.embed(text)}

    vectors = InMemoryEmbeddingRetriever(store)
    made: dict[str, Any] = {
        "component": lambda: (vectors, Watching()),
        "wrapped": lambda: TextEmbeddingRetriever(retriever=vectors, text_embedder=Watching()),
        "pipeline": lambda: parts.hybrid(store, Watching()),
    }
    provider = HaystackProvider(made[kind]())
    run(provider.retrieve(RetrievalRequest(query="lamp"), RetrievalContext(owner_id="alice")))
    assert names == {"qak-haystack"}


def test_blocking_run_async_can_be_kept_off_the_event_loop(run) -> None:
    threads: list[str] = []

    @component
    class Pretender:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            threads.append(threading.current_thread().name)
            return {"documents": []}

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            raise AssertionError("it would block")

    provider = HaystackProvider(Pretender(), run_in_thread=True)
    run(provider.retrieve(RetrievalRequest(query="q"), RetrievalContext(owner_id="alice")))
    assert threads == ["qak-haystack-1"]


@pytest.mark.parametrize("native", [False, True])
def test_component_is_warmed_up_once_before_fifty_calls_at_once(store, run, parts, native) -> None:
    embedder = parts.AsyncToyTextEmbedder() if native else parts.ToyTextEmbedder()
    provider = HaystackProvider(InMemoryEmbeddingRetriever(store), text_embedder=embedder)

    async def ask_at_once() -> None:
        calls = [
            provider.retrieve(RetrievalRequest(query=f"lamp {n}"), RetrievalContext(owner_id="a")) for n in range(50)
        ]
        assert [len(response.results) for response in await asyncio.gather(*calls)] == [4] * 50

    run(ask_at_once())
    assert embedder.warmed_up == 1


class Loading:
    """What warming up takes its time for; a test says when it is over."""

    def __init__(self) -> None:
        self.loaded = threading.Event()
        self.started: list[asyncio.AbstractEventLoop | None] = []
        self.failing: list[Exception] = []

    def load(self) -> None:
        self.started.append(None)
        assert self.loaded.wait(20.0)
        if self.failing:
            raise self.failing.pop()

    async def load_natively(self) -> None:
        self.started.append(asyncio.get_running_loop())
        assert await run_blocking(CancelSignal(20.0), self.loaded.wait)
        if self.failing:
            raise self.failing.pop()


def loading(kind: str, slow: Loading) -> Any:
    @component
    class Blocking:
        def warm_up(self) -> None:
            slow.load()

        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": texts(1)}

    @component
    class Mixed:
        def warm_up(self) -> None:
            slow.load()

        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            raise AssertionError("native")

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            return {"documents": texts(1)}

    @component
    class Native:
        async def warm_up_async(self) -> None:
            await slow.load_natively()

        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            raise AssertionError("native")

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            return {"documents": texts(1)}

    return {"blocking": Blocking, "mixed": Mixed, "native": Native}[kind]()


@pytest.mark.parametrize("kind", ["blocking", "mixed", "native"])
def test_warming_up_outlives_the_calls_that_are_too_late_for_it_and_is_never_begun_twice(run, kind) -> None:
    slow = Loading()
    provider = HaystackProvider(loading(kind, slow))

    async def ask_within(timeout_s: float) -> list[str]:
        context = RetrievalContext(owner_id="alice", signal=CancelSignal(timeout_s))
        return ids(await provider.retrieve(RetrievalRequest(query="q"), context))

    async def ask_until_warm() -> None:
        late = await asyncio.gather(*(ask_within(0.05) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in late] == [KnowledgeTimeout] * 3
        with pytest.raises(KnowledgeTimeout):
            await ask_within(0.05)
        slow.loaded.set()
        assert await ask_within(20.0) == ["d0"]
        assert len(slow.started) == 1

    run(ask_until_warm())


@pytest.mark.parametrize("kind", ["blocking", "mixed", "native"])
def test_warming_up_that_failed_is_tried_again_by_the_next_call(run, kind) -> None:
    slow = Loading()
    slow.loaded.set()
    slow.failing.append(ConnectionError("sk-planted-0123456789abcdefghij"))
    provider = HaystackProvider(loading(kind, slow))

    async def ask_twice() -> None:
        with pytest.raises(KnowledgeUnavailable):
            await provider.retrieve(RetrievalRequest(query="q"), RetrievalContext(owner_id="alice"))
        assert ids(await provider.retrieve(RetrievalRequest(query="q"), RetrievalContext(owner_id="alice"))) == ["d0"]
        assert len(slow.started) == 2

    run(ask_twice())


def test_component_is_warmed_up_in_each_event_loop_that_its_clients_are_to_work_in(ask) -> None:
    slow = Loading()
    slow.loaded.set()
    provider = HaystackProvider(loading("native", slow))
    for _ in range(2):
        assert ids(ask(provider)) == ["d0"]
    assert len(set(slow.started)) == 2


@pytest.mark.parametrize("kind", ["mixed", "native"])
def test_closing_ends_the_warming_up_that_nobody_waits_for(run, kind) -> None:
    slow = Loading()
    provider = HaystackProvider(loading(kind, slow))

    async def close_meanwhile() -> None:
        others = asyncio.all_tasks()
        context = RetrievalContext(owner_id="alice", signal=CancelSignal(0.05))
        with pytest.raises(KnowledgeTimeout):
            await provider.retrieve(RetrievalRequest(query="q"), context)
        assert asyncio.all_tasks() - others
        await provider.close()
        await asyncio.wait(asyncio.all_tasks() - others, timeout=20.0)
        assert asyncio.all_tasks() == others

    run(close_meanwhile())
    slow.loaded.set()


def test_super_component_with_own_names_needs_only_the_query_named(store, ask, parts) -> None:
    wrapped = SuperComponent(
        pipeline=parts.hybrid(store),
        input_mapping={"question": ["words.query", "embedder.text"], "filters": ["words.filters", "vectors.filters"]},
        output_mapping={"joiner.documents": "docs"},
    )
    provider = HaystackProvider(wrapped, query_inputs=["question"])
    assert ids(ask(provider, filters={"type": "eq", "key": "owner_id", "value": "bob"})) == ["secret"]


# top_k, owners, filters


def test_top_k_is_kept_when_the_retriever_does_not_know_it(ask) -> None:
    assert ids(ask(HaystackProvider(Fixed(*texts(20))), top_k=3)) == ["d0", "d1", "d2"]


def test_retriever_without_filters_is_asked_for_more_when_results_must_be_left_out(ask) -> None:
    others, own = texts(30, owner_id="bob"), texts(3, owner_id="alice")
    retriever = Counting([*others, *own])
    assert len(ids(ask(HaystackProvider(retriever, owner_key="owner_id"), top_k=3))) == 3
    assert retriever.asked == [24, 192]


@pytest.mark.parametrize("owner", [None, 7, True, ["alice"], "Alice", "alice ", {"id": "alice"}, b"alice"])
def test_document_of_no_clear_owner_belongs_to_nobody(ask, owner) -> None:
    provider = HaystackProvider(Fixed(*texts(1, owner_id=owner)), owner_key="owner_id")
    assert ids(ask(provider)) == []
    assert ids(ask(HaystackProvider(Fixed(*texts(1)), owner_key="owner_id"))) == []


def test_owner_may_stand_deeper_in_the_metadata_and_is_not_shown(parts, ask) -> None:
    store = parts.make_store([Document(id="a", content="lamp", meta={"access": {"owner": "alice"}, "owner": "x"})])
    provider = HaystackProvider(InMemoryBM25Retriever(store), owner_key="meta.access.owner")
    assert ids(ask(provider)) == ["a"]
    assert ids(ask(provider, owner_id="bob")) == []
    hidden = HaystackProvider(InMemoryBM25Retriever(store), owner_key="owner")
    assert ask(hidden, owner_id="x").results[0].metadata == {}
    store.shutdown()


def test_native_filters_of_a_caller_need_to_be_declared_and_stay_beside_the_hosts(store, ask) -> None:
    bobs = {"field": "meta.owner_id", "operator": "==", "value": "bob"}
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(HaystackProvider(InMemoryBM25Retriever(store)), filters=bobs)
    provider = HaystackProvider(InMemoryBM25Retriever(store), caller_filters="native", owner_key="owner_id")
    assert ids(ask(provider, filters=bobs)) == []
    assert ids(ask(provider, filters=bobs, owner_id="bob")) == ["secret"]
    assert ids(ask(provider, filters={"operator": "NOT", "conditions": [bobs]}, owner_id="bob")) == []
    for wrong in ({"operator": "XOR", "conditions": [bobs]}, {**bobs, "more": 1}, {"operator": "=="}):
        with pytest.raises(KnowledgeInvalidRequest):
            ask(provider, filters=wrong)


def test_filters_that_the_store_refuses_are_unsupported(store, ask) -> None:
    provider = HaystackProvider(InMemoryBM25Retriever(store))
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters={"type": "gt", "key": "kind", "value": "2026-01-01"})
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters={"type": "gt", "key": "kind", "value": "m"})
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(HaystackProvider(InMemoryBM25Retriever(store), caller_filters="none"), filters={"type": "eq"})


def test_host_filter_is_checked_where_the_retriever_takes_none(ask) -> None:
    documents = [*texts(9, kind="blog"), Document(id="article", content="text", meta={"kind": "article"})]
    articles = {"type": "eq", "key": "kind", "value": "article"}
    assert ids(ask(HaystackProvider(Fixed(*documents), filters=articles), top_k=2)) == ["article"]


@component
class Deaf:
    """Has an input for filters, and ignores it."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int = 10) -> dict[str, Any]:
        return {"documents": self.documents[:top_k]}


def joined(*retrievers: Any) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("joiner", DocumentJoiner())
    for number, retriever in enumerate(retrievers):
        pipeline.add_component(f"r{number}", retriever)
        pipeline.connect(f"r{number}", "joiner")
    return pipeline


ALICES = {"field": "meta.owner_id", "operator": "==", "value": "alice"}


def leaky(kind: str, store: Any) -> tuple[Any, dict[str, Any]]:
    """Return a retriever that lets out documents whatever filters it is sent, and how to compose it."""
    everything = store.filter_documents()
    if kind == "branch without filters":
        return joined(InMemoryBM25Retriever(store), Fixed(*everything)), {}
    if kind == "branch not named":
        both = joined(InMemoryBM25Retriever(store), InMemoryBM25Retriever(store))
        return both, {"filters_inputs": ["r0.filters"]}
    if kind == "branch that ignores":
        return joined(InMemoryBM25Retriever(store), Deaf(everything)), {}
    return Deaf(everything), {}


LEAKY = ["branch without filters", "branch not named", "branch that ignores", "component that ignores"]


@pytest.mark.parametrize("kind", LEAKY)
@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (ALICES, {"red", "green", "blue"}),
        ({**ALICES, "field": "owner_id"}, {"red", "green", "blue"}),
        ({"operator": "NOT", "conditions": [{**ALICES, "value": "bob"}]}, {"red", "green", "blue"}),
        (
            {"operator": "AND", "conditions": [ALICES, {"field": "meta.year", "operator": ">", "value": 2024}]},
            {"green", "blue"},
        ),
        ({"field": "id", "operator": "in", "value": ["red", "secret"]}, {"red", "secret"}),
        (
            {"field": "content", "operator": "!=", "value": "Bob's lamp lamp lamp is a secret."},
            {"red", "green", "blue"},
        ),
    ],
    ids=["comparison", "bare key", "not", "and", "id", "content"],
)
@pytest.mark.parametrize("side", ["host", "caller"])
def test_native_filter_holds_for_every_document_whatever_a_branch_makes_of_it(
    store, ask, kind, native, expected, side
) -> None:
    retriever, names = leaky(kind, store)
    if side == "host":
        found = ask(HaystackProvider(retriever, filters=native, **names), top_k=8)
    else:
        found = ask(HaystackProvider(retriever, caller_filters="native", **names), filters=native, top_k=8)
    assert set(ids(found)) == expected


@pytest.mark.parametrize("kind", LEAKY)
def test_native_filters_of_host_and_caller_hold_together(store, ask, kind) -> None:
    retriever, names = leaky(kind, store)
    provider = HaystackProvider(retriever, filters=ALICES, caller_filters="native", **names)
    assert ids(ask(provider, filters={**ALICES, "value": "bob"})) == []
    either = {"operator": "OR", "conditions": [{**ALICES, "value": "bob"}, ALICES]}
    assert set(ids(ask(provider, filters=either))) == {"red", "green", "blue"}


def test_native_host_filter_is_checked_where_the_retriever_takes_none(ask) -> None:
    documents = [*texts(9, kind="blog"), Document(id="article", content="text", meta={"kind": "article"})]
    articles = {"field": "meta.kind", "operator": "==", "value": "article"}
    retriever = Counting(documents)
    assert ids(ask(HaystackProvider(retriever, filters=articles), top_k=2)) == ["article"]
    assert retriever.asked == [16]


def test_document_that_can_not_be_compared_with_a_native_filter_is_left_out(ask) -> None:
    documents = [
        Document(id=f"d{n}", content="text", meta={"day": day}) for n, day in enumerate(["x", 7, "2026-01-02"])
    ]
    since = {"field": "meta.day", "operator": ">", "value": "2026-01-01"}
    assert ids(ask(HaystackProvider(Deaf(documents), filters=since))) == ["d2"]
    never = {"operator": "NOT", "conditions": [since]}
    assert ids(ask(HaystackProvider(Deaf(documents), filters=never))) == []


@pytest.mark.parametrize(
    ("operator", "value"), [("in", "alice"), ("not in", "alice"), (">", "m"), ("<=", ["2026-01-01"]), (">=", {})]
)
def test_native_filter_that_nothing_can_be_compared_with_is_refused(store, ask, operator, value) -> None:
    wrong = {"operator": "OR", "conditions": [ALICES, {"field": "meta.kind", "operator": operator, "value": value}]}
    with pytest.raises(SettingsError, match="can't compare"):
        HaystackProvider(InMemoryBM25Retriever(store), filters=wrong)
    provider = HaystackProvider(InMemoryBM25Retriever(store), caller_filters="native")
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters=wrong)


def test_filters_that_another_component_writes_are_never_left_to_the_caller(store, ask) -> None:
    @component
    class Guessing:
        """As an extractor of filters from the query: its model may be talked into anything."""

        @component.output_types(filters=dict[str, Any])
        def run(self, query: str) -> dict[str, Any]:
            return {"filters": {"field": "meta.owner_id", "operator": "==", "value": "bob"}}

    pipeline = Pipeline()
    pipeline.add_component("guessing", Guessing())
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.connect("guessing.filters", "words.filters")
    provider = HaystackProvider(pipeline, owner_key="owner_id")
    assert not provider.describe().can("filters")
    assert ids(ask(provider)) == []
    assert ids(ask(provider, owner_id="bob")) == ["secret"]
    beside_a_free_one = Pipeline()
    beside_a_free_one.add_component("guessing", Guessing())
    beside_a_free_one.add_component("bound", InMemoryBM25Retriever(store))
    beside_a_free_one.add_component("free", InMemoryBM25Retriever(store))
    beside_a_free_one.add_component("joiner", DocumentJoiner())
    beside_a_free_one.connect("guessing.filters", "bound.filters")
    beside_a_free_one.connect("bound", "joiner")
    beside_a_free_one.connect("free", "joiner")
    assert not HaystackProvider(beside_a_free_one).describe().can("filters")


def test_each_retriever_of_a_pipeline_keeps_its_own_filters(store, ask) -> None:
    pipeline = Pipeline()
    for kind in ("article", "blog"):
        own = {"field": "meta.kind", "operator": "==", "value": kind}
        pipeline.add_component(kind, InMemoryBM25Retriever(store, filters=own))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("article", "joiner")
    pipeline.connect("blog", "joiner")
    provider = HaystackProvider(pipeline, owner_key="owner_id")
    assert set(ids(ask(provider))) == {"red", "green", "blue"}
    assert set(ids(ask(provider, filters={"type": "gt", "key": "year", "value": 2024}))) == {"green", "blue"}


def test_retriever_that_changes_its_filters_changes_nobody_elses(ask) -> None:
    seen: list[dict[str, Any]] = []

    @component
    class Changing:
        @component.output_types(documents=list[Document])
        def run(self, query: str, filters: dict[str, Any] | None = None) -> dict[str, Any]:
            assert filters is not None
            seen.append(copy.deepcopy(filters))
            filters["conditions"][0].clear()
            return {"documents": []}

    host = {"operator": "AND", "conditions": [{"field": "meta.kind", "operator": "==", "value": "article"}]}
    provider = HaystackProvider(Changing(), filters=host)
    for _ in range(2):
        ask(provider)
    assert seen == [host, host]


# Knowledge bases


def test_knowledge_bases_are_asked_alone_together_or_refused(ask) -> None:
    bases = {
        name: Fixed(*(Document(id=f"{name}{n}", content=name, score=0.5) for n in range(3))) for name in ("a", "b", "c")
    }
    provider = HaystackProvider(knowledge_bases=bases, score="similarity")
    assert [base.id for base in provider.describe().knowledge_bases] == ["a", "b", "c"]
    assert not provider.describe().can("scores")
    assert ids(ask(provider, knowledge_base_ids=["b"])) == ["b:b0", "b:b1", "b:b2"]
    assert ids(ask(provider, knowledge_base_ids=["c", "a"], top_k=3)) == ["c:c0", "a:a0", "c:c1"]
    together = ask(provider)
    assert ids(together) == ["a:a0", "b:b0", "c:c0", "a:a1", "b:b1"]
    assert {result.score for result in together.results} == {None}
    with pytest.raises(KnowledgeBaseUnknown):
        ask(provider, knowledge_base_ids=["a", "nobody"])


def test_failing_knowledge_base_degrades_the_answer(ask) -> None:
    @component
    class Failing:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            raise ConnectionError("postgres://u:p@db")

    provider = HaystackProvider(knowledge_bases={"good": Fixed(*texts(2)), "bad": Failing()})
    response = ask(provider)
    assert ids(response) == ["good:d0", "good:d1"]
    assert response.degraded == ("bad",)
    with pytest.raises(KnowledgeError) as caught:
        ask(provider, knowledge_base_ids=["bad"])
    assert caught.value.code == "knowledge_unavailable"


def test_equal_ids_of_two_bases_are_told_apart_by_the_base(ask) -> None:
    provider = HaystackProvider(knowledge_bases={"a": Fixed(*texts(2)), "b": Fixed(*texts(2))})
    assert ids(ask(provider)) == ["a:d0", "b:d0", "a:d1", "b:d1"]


# Life


def test_vendors_own_cancellation_is_a_failure_and_not_the_callers(ask) -> None:
    @component
    class GivesUp:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            raise AssertionError("native")

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            raise asyncio.CancelledError

    with pytest.raises(KnowledgeError) as caught:
        ask(HaystackProvider(GivesUp()))
    assert caught.value.code == "knowledge_unavailable"


def test_native_call_that_ignores_cancellation_is_left_behind(run) -> None:
    async def stubborn() -> None:
        go_on = asyncio.Event()

        @component
        class Stubborn:
            @component.output_types(documents=list[Document])
            def run(self, query: str) -> dict[str, Any]:
                raise AssertionError("native")

            @component.output_types(documents=list[Document])
            async def run_async(self, query: str) -> dict[str, Any]:
                while not go_on.is_set():
                    try:
                        await go_on.wait()
                    except asyncio.CancelledError:
                        continue
                raise RuntimeError("too late")

        provider = HaystackProvider(Stubborn())
        context = RetrievalContext(owner_id="alice", signal=CancelSignal(0.05))
        with pytest.raises(KnowledgeError) as caught:
            await provider.retrieve(RetrievalRequest(query="q"), context)
        assert caught.value.code == "knowledge_timeout"
        go_on.set()
        await asyncio.sleep(0)

    run(stubborn())


def test_close_ends_what_runs_and_calls_the_host_once(run) -> None:
    entered, released, closed = threading.Event(), threading.Event(), []

    @component
    class Slow:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            entered.set()
            assert released.wait(20)
            return {"documents": []}

    async def close_while_it_runs() -> None:
        async def aclose() -> None:
            closed.append(True)

        provider = HaystackProvider(Slow(), max_workers=1, aclose=aclose)
        request, context = RetrievalRequest(query="q"), RetrievalContext(owner_id="alice")
        tasks = [asyncio.ensure_future(provider.retrieve(request, context)) for _ in range(2)]
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 20)
        await provider.close()
        await provider.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [KnowledgeClosed] * 2
        with pytest.raises(KnowledgeClosed):
            await provider.retrieve(request, context)
        health = await provider.health()
        assert isinstance(health, ProviderHealth)
        assert health.status == "unavailable"
        released.set()

    run(close_while_it_runs())
    assert closed == [True]


@pytest.mark.parametrize("kind", ["async", "sync", "failing", "none"])
def test_health_is_what_the_host_says(run, kind) -> None:
    async def checked() -> ProviderHealth:
        return ProviderHealth(status="degraded", message="one shard")

    def failing() -> ProviderHealth:
        raise RuntimeError("postgres://u:p@db")

    check = {"async": checked, "sync": lambda: {"status": "degraded"}, "failing": failing, "none": None}[kind]
    expected = {"async": "degraded", "sync": "degraded", "failing": "unavailable", "none": "ready"}[kind]

    async def ask_runtime() -> ProviderHealth:
        async with KnowledgeRuntime(HaystackProvider(Fixed(), health=check)) as runtime:
            return await runtime.health()

    health = run(ask_runtime())
    assert health.status == expected
    assert "postgres" not in health.message


# Settings


@pytest.fixture
def factories(monkeypatch, store, parts):
    """A module as a host would have it."""
    module = types.ModuleType("hosts_retrievers")
    vars(module).update(
        words=lambda: InMemoryBM25Retriever(store),
        vectors=lambda: InMemoryEmbeddingRetriever(store),
        embedder=parts.ToyTextEmbedder,
        pair=lambda: (InMemoryEmbeddingRetriever(store), parts.ToyTextEmbedder()),
        hybrid=lambda: parts.hybrid(store),
        failing=lambda: 1 / 0,
        nothing=list,
    )
    monkeypatch.setitem(sys.modules, "hosts_retrievers", module)
    return module


def test_settings_make_a_provider_from_dotted_factories(factories, ask) -> None:
    provider = create(
        {
            "retriever": "hosts_retrievers:vectors",
            "text_embedder": "hosts_retrievers:embedder",
            "key": "lamps",
            "label": "Lamps",
            "owner_key": "owner_id",
            "score": "similarity",
            "filters": {"type": "eq", "key": "kind", "value": "article"},
        }
    )
    assert assert_provider(provider).key == "lamps"
    assert ids(ask(provider, "blue light"))[0] == "blue"
    bases = create({"knowledge_bases": {"w": "hosts_retrievers:words", "p": "hosts_retrievers:pair"}})
    assert set(ids(ask(bases, knowledge_base_ids=["p"]))) == {"p:red", "p:green", "p:blue", "p:secret"}
    assert "secret" in ids(ask(create({"retriever": "hosts_retrievers:hybrid"})))


@pytest.mark.parametrize(
    ("settings", "parts_of_message"),
    [
        ({}, ["retriever or knowledge_bases"]),
        ({"retreiver": "a:b"}, ["did you mean 'retriever'"]),
        (
            {"retriever": "no colon", "knowledge_bases": {"x": "also none"}, "score": "similarity", "max_workers": 0},
            ["retriever: expected 'module:callable'", "knowledge_bases.x", "max_workers"],
        ),
        (
            {"retriever": "no_such_module_here:x", "knowledge_bases": {"x": "hosts_retrievers:failing"}},
            ["retriever: no_such_module_here:x cannot be imported, it raised ModuleNotFoundError", "ZeroDivisionError"],
        ),
        (
            {"retriever": "hosts_retrievers:words", "score": "high", "caller_filters": "any"},
            ["score", "caller_filters"],
        ),
        ({"retriever": "hosts_retrievers:nothing"}, ["must be a component or Pipeline of Haystack, got list"]),
    ],
)
def test_settings_errors_name_every_problem(factories, settings, parts_of_message) -> None:
    with pytest.raises(SettingsError) as caught:
        create(settings)
    for part in parts_of_message:
        assert part in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_factories_made_is_closed_with_the_provider(factories, run, caplog) -> None:
    done: list[str] = []

    @component
    class Client:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": []}

        def close(self) -> None:
            done.append("blocking")

    @component
    class AsyncClient(Client):
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": []}

        async def close_async(self) -> None:
            done.append("async")

    @component
    class BrokenClient(Client):
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": []}

        def close(self) -> None:
            raise RuntimeError("postgres://u:p@db")

    factories.client, factories.async_client, factories.broken = Client, AsyncClient, BrokenClient
    names = ("broken", "client", "async_client", "pair")
    bases = {name: f"hosts_retrievers:{name}" for name in names}
    run(create({"knowledge_bases": bases}).close())
    assert done == ["blocking", "async"]
    assert "postgres" not in caplog.text


def test_configuration_that_the_readme_shows_makes_a_provider(factories) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    shown = readme[readme.index("    [provider]\n") :].partition("\n\n")[0]
    table = tomllib.loads(textwrap.dedent(shown))["provider"]
    assert table.pop("adapter") == "haystack"
    assert create({**table, "retriever": "hosts_retrievers:hybrid"}).describe().can("scores")
