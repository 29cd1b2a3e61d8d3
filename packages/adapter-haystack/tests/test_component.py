"""The other direction: a provider as a component, and round trips."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.errors import DeserializationError, SerializationError

from qak_adapter_haystack import HaystackProvider, KnowledgeComponent, as_retriever
from qak_core import (
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    KnowledgeRuntime,
    ProviderDescription,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    Source,
)

ALICE = RetrievalContext(owner_id="alice", turn_id="turn")


class Shelf:
    """A provider that keeps what it was asked."""

    def __init__(self, *results: RetrievalResult, error: Exception | None = None) -> None:
        self.results, self.error = results, error
        self.asked: list[tuple[RetrievalRequest, RetrievalContext]] = []
        self.loops: list[asyncio.AbstractEventLoop] = []

    def describe(self) -> ProviderDescription:
        return ProviderDescription(key="shelf", label="Shelf", capabilities={"filters": True})

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> list[RetrievalResult]:
        self.asked.append((request, context))
        self.loops.append(asyncio.get_running_loop())
        if self.error is not None:
            raise self.error
        return list(self.results[: request.top_k])


RESULTS = (
    RetrievalResult(
        id="one",
        content="The first text.",
        score=0.9,
        source=Source(
            id="doc-1",
            title="First",
            uri="https://docs.example.com/first",
            mime_type="text/markdown",
            locator="page 3; lines 4-9",
        ),
        metadata={"department": "finance", "year": 2026, "reviewed": True},
    ),
    RetrievalResult(id="two", content="A private text.", score=0.9, source=Source(uri="http://wiki.corp/x", title="2")),
    RetrievalResult(id="three", content="A bare text.", score=-1.5),
)


def shelf() -> Shelf:
    return Shelf(*RESULTS)


def alice() -> RetrievalContext:
    return ALICE


def test_component_has_the_sockets_of_a_retriever() -> None:
    made = as_retriever(Shelf(), context=ALICE)
    inputs = made.__haystack_input__._sockets_dict
    assert {name: socket.is_mandatory for name, socket in inputs.items()} == {
        "query": True,
        "top_k": False,
        "filters": False,
    }
    assert {name: socket.type for name, socket in made.__haystack_output__._sockets_dict.items()} == {
        "documents": list[Document]
    }


@pytest.mark.parametrize("native", [False, True])
def test_documents_carry_source_citation_and_notice(run, native) -> None:
    made = as_retriever(Shelf(*RESULTS), context=ALICE)
    found = run(made.run_async(query="q")) if native else made.run(query="q")
    first, second, third = found["documents"]
    assert (first.id, first.content, first.score) == ("one", "The first text.", 0.9)
    notice = first.meta.pop("notice")
    assert "untrusted" in notice
    assert first.meta == {
        "department": "finance",
        "year": 2026,
        "reviewed": True,
        "source_id": "doc-1",
        "title": "First",
        "url": "https://docs.example.com/first",
        "mime_type": "text/markdown",
        "locator": "page 3; lines 4-9",
        "citation_id": "source_1",
        "citation": {
            "id": "source_1",
            "title": "First",
            "url": "https://docs.example.com/first",
            "snippet": "The first text.",
            "source": "doc-1",
        },
    }
    assert second.meta == {"title": "2", "notice": notice}
    assert third.meta == {"notice": notice}
    made.close()


def test_round_trip_keeps_ids_order_scores_and_sources(run) -> None:
    inner = Shelf(*RESULTS)
    outer = HaystackProvider(as_retriever(inner, context=ALICE), score="similarity")

    async def ask_both() -> tuple[Any, Any]:
        async with KnowledgeRuntime(inner) as bare, KnowledgeRuntime(outer) as around:
            return [await runtime.search("q", owner_id="alice", turn_id="turn") for runtime in (bare, around)]

    bare, around = run(ask_both())
    assert around.to_dict() == bare.to_dict()
    assert [result.id for result in around.results] == ["one", "two", "three"]


def test_round_trip_through_real_components_keeps_everything(run, store) -> None:
    inner = HaystackProvider(InMemoryBM25Retriever(store), score="similarity", owner_key="owner_id")
    outer = HaystackProvider(as_retriever(inner, context=ALICE), score="similarity")
    wanted = {"type": "and", "filters": [{"type": "eq", "key": "kind", "value": "article"}]}

    async def ask_both() -> list[Any]:
        request, context = RetrievalRequest(query="blue lamp", filters=wanted), RetrievalContext(owner_id="alice")
        return [await provider.retrieve(request, context) for provider in (inner, outer)]

    bare, around = run(ask_both())
    assert [result.id for result in bare.results] == ["blue", "red"]
    assert around.results == bare.results


def test_context_comes_from_the_host_for_each_call_and_from_no_input() -> None:
    provider, owners = Shelf(), iter(["alice", "bob"])
    made = as_retriever(provider, context=lambda: RetrievalContext(owner_id=next(owners), session_id="s", trace_id="t"))
    for _ in range(2):
        made.run(query="owner_id:carol", filters={"field": "meta.owner_id", "operator": "==", "value": "carol"})
    assert [context.owner_id for _, context in provider.asked] == ["alice", "bob"]
    assert provider.asked[0][1].session_id == "s"
    assert provider.asked[0][0].filters == {"type": "eq", "key": "owner_id", "value": "carol"}
    made.close()


def test_component_passes_top_k_filters_and_knowledge_bases_on(run) -> None:
    provider = Shelf(*RESULTS)
    made = as_retriever(provider, context=ALICE, knowledge_base_ids=["handbook"])
    neutral = {"type": "eq", "key": "year", "value": 2026}
    assert len(run(made.run_async(query="q", top_k=2, filters=neutral))["documents"]) == 2
    assert len(run(made.run_async(query="q", top_k=None, filters={}))["documents"]) == 3
    first, second = (request for request, _ in provider.asked)
    assert (first.top_k, first.filters, first.knowledge_base_ids) == (2, neutral, ("handbook",))
    assert (second.top_k, second.filters) == (5, None)
    with pytest.raises(KnowledgeFiltersUnsupported):
        run(made.run_async(query="q", filters={"field": "content", "operator": "==", "value": "x"}))


def test_component_works_in_a_pipeline_beside_other_retrievers(run, store) -> None:
    pipeline = Pipeline()
    pipeline.add_component("knowledge", as_retriever(Shelf(*RESULTS), context=ALICE))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("knowledge", "joiner")
    pipeline.connect("words", "joiner")
    inputs = {"knowledge": {"query": "lamp"}, "words": {"query": "lamp"}}
    expected = {"one", "two", "three", "red", "green", "blue", "secret"}
    assert {document.id for document in pipeline.run(inputs)["joiner"]["documents"]} == expected
    assert {document.id for document in run(pipeline.run_async(inputs))["joiner"]["documents"]} == expected
    pipeline.close()


def test_error_of_a_component_in_a_pipeline_keeps_its_kind_through_the_provider(ask) -> None:
    class Vendors(Exception):
        pass

    pipeline = Pipeline()
    pipeline.add_component("knowledge", as_retriever(Shelf(error=KnowledgeFiltersUnsupported()), context=ALICE))
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(HaystackProvider(pipeline))
    failing = as_retriever(Shelf(error=Vendors("sk-planted-0123456789abcdefghij")), context=ALICE)
    with pytest.raises(KnowledgeError) as caught:
        failing.run(query="q")
    assert "planted" not in repr(caught.value)
    failing.close()


def test_blocking_run_is_done_by_the_loop_that_the_component_was_made_in(run) -> None:
    provider = Shelf()

    async def from_a_thread() -> None:
        made = as_retriever(provider, context=ALICE)
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(made.run, query="q")
        assert provider.loops == [loop]
        made.run(query="q")  # in the loop itself, which can't wait for itself: another one does it
        assert provider.loops[1] is not loop
        made.close()

    run(from_a_thread())


@pytest.mark.parametrize("made_in_the_loop", [True, False])
def test_async_run_from_a_second_loop_is_done_by_the_first_while_that_runs(run, made_in_the_loop) -> None:
    provider = Shelf(*RESULTS)
    made = None if made_in_the_loop else as_retriever(provider, context=ALICE)

    async def from_a_second_loop() -> None:
        component_of_first = made or as_retriever(provider, context=ALICE)
        await component_of_first.run_async(query="q")
        found = await asyncio.to_thread(asyncio.run, component_of_first.run_async(query="q"))
        assert [document.id for document in found["documents"]] == ["one", "two", "three"]
        assert provider.loops == [asyncio.get_running_loop()] * 2
        component_of_first.close()

    run(from_a_second_loop())


def test_async_run_goes_on_in_a_new_loop_when_the_first_has_ended(run) -> None:
    provider = Shelf(*RESULTS)
    made = as_retriever(provider, context=ALICE)
    for _ in range(2):
        assert len(run(made.run_async(query="q"))["documents"]) == 3
    assert len(set(provider.loops)) == 2
    made.close()


def test_async_run_is_done_by_the_components_own_loop_once_that_has_begun(run) -> None:
    provider = Shelf(*RESULTS)
    made = as_retriever(provider, context=ALICE)
    made.run(query="q")
    run(made.run_async(query="q"))
    assert provider.loops[0] is provider.loops[1]
    made.close()


class Hanging(Shelf):
    """Never answers, and says when it was asked and when it was left."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.left = threading.Event(), threading.Event()

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> list[RetrievalResult]:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return []


def test_cancelling_an_async_run_ends_the_search_in_the_other_loop(run) -> None:
    provider = Hanging()

    async def cancelled_in_a_second_loop(made: KnowledgeComponent) -> None:
        running = asyncio.create_task(made.run_async(query="q"))
        await asyncio.to_thread(provider.entered.wait, 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def first_loop() -> None:
        made = as_retriever(provider, context=ALICE)
        await asyncio.to_thread(asyncio.run, cancelled_in_a_second_loop(made))
        assert await asyncio.to_thread(provider.left.wait, 20)

    run(first_loop())


def test_closing_ends_an_async_run_in_the_components_own_loop(run) -> None:
    provider = Hanging()
    made = as_retriever(provider, context=ALICE)

    def search() -> None:
        with pytest.raises(KnowledgeClosed):
            made.run(query="q")

    blocked = threading.Thread(target=search)
    blocked.start()
    assert provider.entered.wait(20)

    async def close_meanwhile() -> None:
        provider.entered.clear()
        running = asyncio.create_task(made.run_async(query="q"))
        assert await asyncio.to_thread(provider.entered.wait, 20)
        made.close()
        with pytest.raises(KnowledgeClosed):
            await running

    run(close_meanwhile())
    blocked.join(20)
    assert not blocked.is_alive()


def test_closing_ends_a_run_and_its_thread() -> None:
    provider = Hanging()
    made, errors = as_retriever(provider, context=ALICE), []

    def search() -> None:
        try:
            made.run(query="q")
        except KnowledgeError as error:
            errors.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    assert provider.entered.wait(20)
    made.close()
    made.close()
    thread.join(20)
    assert [type(error) for error in errors] == [KnowledgeClosed]


# Saving


def test_component_of_functions_is_saved_and_loaded_with_its_pipeline() -> None:
    pipeline = Pipeline()
    pipeline.add_component("knowledge", as_retriever(shelf, context=alice, knowledge_base_ids=["a"]))
    saved = pipeline.dumps()
    with pytest.raises(DeserializationError):
        Pipeline.loads(saved)  # nobody allowed these modules
    allowed = ["qak_adapter_haystack", shelf.__module__]
    loaded = Pipeline.loads(saved, allowed_modules=allowed).get_component("knowledge")
    assert isinstance(loaded, KnowledgeComponent)
    assert loaded.knowledge_base_ids == ["a"]
    assert [document.id for document in loaded.run(query="q")["documents"]] == ["one", "two", "three"]
    loaded.close()


@pytest.mark.parametrize(
    ("source", "context", "named"),
    [(Shelf(), alice, "source"), (shelf, ALICE, "context"), (lambda: Shelf(), alice, "lambdas")],
)
def test_component_of_objects_cannot_be_saved_and_says_what_to_do(source, context, named) -> None:
    with pytest.raises(SerializationError, match=named):
        as_retriever(source, context=context).to_dict()


def test_component_is_made_of_a_runtime_too(run) -> None:
    async def ask() -> None:
        async with KnowledgeRuntime(Shelf(*RESULTS), language="zh") as runtime:
            (first, *_) = (await as_retriever(runtime, context=ALICE).run_async(query="q"))["documents"]
            assert "不可信" in first.meta["notice"]

    run(ask())


def test_other_components_read_the_documents(run) -> None:
    @component
    class Reader:
        @component.output_types(text=str)
        def run(self, documents: list[Document]) -> dict[str, Any]:
            return {"text": " ".join(document.content or "" for document in documents)}

    pipeline = Pipeline()
    pipeline.add_component("knowledge", as_retriever(Shelf(*RESULTS), context=ALICE))
    pipeline.add_component("reader", Reader())
    pipeline.connect("knowledge", "reader")
    assert run(pipeline.run_async({"knowledge": {"query": "q", "top_k": 1}})) == {"reader": {"text": "The first text."}}
