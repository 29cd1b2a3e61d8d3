"""The other direction: a runtime or provider as a LlamaIndex retriever, and there and back again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import MetadataMode

from qak_adapter_llamaindex import KnowledgeRetriever, LlamaIndexProvider, as_retriever
from qak_contract_tests import CORPUS, ReferenceProvider
from qak_core import (
    CancelSignal,
    KnowledgeAnswer,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    RetrievalContext,
    RetrievalRequest,
)

OWNER = RetrievalContext(owner_id=CORPUS.owner_id, turn_id="turn-1")
QUESTION = "Larkspur approvals captain"


@contextmanager
def opened(provider: Any = None, **options: Any) -> Iterator[KnowledgeRetriever]:
    retriever = as_retriever(provider or ReferenceProvider(CORPUS), **{"context": OWNER, **options})
    yield retriever
    retriever.close()


def answer_of_the_runtime(top_k: int = 5) -> KnowledgeAnswer:
    async def main() -> KnowledgeAnswer:
        async with KnowledgeRuntime(ReferenceProvider(CORPUS)) as runtime:
            return await runtime.search(QUESTION, owner_id=CORPUS.owner_id, turn_id="turn-1", top_k=top_k)

    return asyncio.run(main())


def test_nodes_hold_what_the_runtime_answers() -> None:
    answer = answer_of_the_runtime()
    citations = {citation.id: citation.to_dict() for citation in answer.citations}
    with opened() as retriever:
        assert isinstance(retriever, BaseRetriever)
        nodes = retriever.retrieve(QUESTION)
    assert [found.node.node_id for found in nodes] == [result.id for result in answer.results]
    assert [found.score for found in nodes] == [result.score for result in answer.results]
    assert [found.text for found in nodes] == [result.content for result in answer.results]
    assert [found.node.ref_doc_id for found in nodes] == [
        result.source and result.source.id for result in answer.results
    ]
    for found, result in zip(nodes, answer.results, strict=True):
        assert result.source is not None
        expected: Mapping[str, Any] = {
            **result.metadata,
            "title": result.source.title,
            "url": result.source.uri,
            "mime_type": result.source.mime_type,
            "locator": result.source.locator,
            "source_id": result.source.id,
            "citation_id": result.citation_id,
            "citation": citations.get(result.citation_id or ""),
            "notice": answer.notice,
        }
        assert found.metadata == {name: value for name, value in expected.items() if value is not None}


def test_notice_and_citation_reach_a_language_model_and_no_embedding() -> None:
    with opened() as retriever:
        node = retriever.retrieve(QUESTION)[0].node
    seen = node.get_content(metadata_mode=MetadataMode.LLM)
    assert "citation_id: source_1" in seen
    assert "untrusted data" in seen
    assert "snippet" not in seen
    assert node.get_content(metadata_mode=MetadataMode.EMBED) == node.get_content(metadata_mode=MetadataMode.NONE)


@pytest.mark.parametrize("native_async", [False, True])
@pytest.mark.parametrize("top_k", [1, 3, 8])
def test_there_and_back_keeps_ids_order_scores_and_sources(native_async: bool, top_k: int) -> None:
    before = answer_of_the_runtime(top_k)

    async def main(retriever: KnowledgeRetriever) -> KnowledgeAnswer:
        provider = LlamaIndexProvider(retriever, score="similarity", native_async=native_async)
        async with KnowledgeRuntime(provider) as runtime:
            return await runtime.search(QUESTION, owner_id="anybody", turn_id="turn-1", top_k=top_k)

    with opened() as retriever:
        after = asyncio.run(main(retriever))
    assert len(after.results) == top_k
    # Metadata, citations and contents as well; only that a text had been cut is not known the second time.
    assert after.results == [replace(result, truncated=False) for result in before.results]
    assert after.citations == before.citations


def test_top_k_may_be_given_or_set_as_on_other_retrievers() -> None:
    with opened(top_k=2) as retriever:
        assert len(retriever.retrieve(CORPUS.common_query)) == 2
        retriever.similarity_top_k = 7
        assert len(retriever.retrieve(CORPUS.common_query)) == 7


def test_knowledge_bases_and_filters_are_the_hosts() -> None:
    wanted = {"type": "eq", "key": "department", "value": "finance"}
    with opened(knowledge_base_ids=["handbook"], filters=wanted, top_k=8) as retriever:
        found = retriever.retrieve(CORPUS.common_query)
    assert {one.metadata["source_id"] for one in found} == {"annual-fee", "travel-expenses"}


def test_context_may_change_from_call_to_call() -> None:
    owners = iter([CORPUS.owner_id, CORPUS.other_owner_id, "stranger"])
    with opened(context=lambda: RetrievalContext(owner_id=next(owners))) as retriever:
        found = [{one.metadata["source_id"] for one in retriever.retrieve(CORPUS.common_query)} for _ in range(3)]
    assert found[0]
    assert found[1]
    assert not found[0] & found[1]
    assert found[2] == set()


def test_retriever_made_outside_a_loop_works_from_every_thread_and_loop() -> None:
    async def ask(retriever: KnowledgeRetriever) -> list[int]:
        found = await asyncio.gather(
            retriever.aretrieve(QUESTION),
            asyncio.to_thread(retriever.retrieve, QUESTION),
            asyncio.to_thread(asyncio.run, retriever.aretrieve(QUESTION)),
        )
        return [len(nodes) for nodes in found]

    with opened() as retriever:
        assert asyncio.run(ask(retriever)) == [5, 5, 5]
        assert asyncio.run(ask(retriever)) == [5, 5, 5]
        assert len(retriever.retrieve(QUESTION)) == 5


def test_retriever_made_in_a_loop_keeps_its_runtime_there() -> None:
    loops = set()

    class Provider(ReferenceProvider):
        async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
            loops.add(asyncio.get_running_loop())
            return await super().retrieve(request, context)

    async def main() -> None:
        async with KnowledgeRuntime(Provider(CORPUS)) as runtime:
            with opened(runtime) as retriever:
                await retriever.aretrieve(QUESTION)
                await asyncio.to_thread(retriever.retrieve, QUESTION)
                await asyncio.to_thread(lambda: asyncio.run(retriever.aretrieve(QUESTION)))
                with pytest.raises(RuntimeError, match="aretrieve"):
                    retriever.retrieve(QUESTION)
        assert loops == {asyncio.get_running_loop()}

    asyncio.run(main())


def test_blocking_call_gives_up_when_the_loop_does_not_answer() -> None:
    class Deaf(ReferenceProvider):
        async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
            await asyncio.sleep(30)

    with opened(Deaf(CORPUS), timeout_s=0.1) as retriever:
        with pytest.raises(KnowledgeTimeout):
            retriever.retrieve(QUESTION)
        with pytest.raises(KnowledgeTimeout):
            asyncio.run(retriever.aretrieve(QUESTION))


def test_cancelling_a_call_from_another_loop_cancels_the_search() -> None:
    ended = threading.Event()

    class Hanging(ReferenceProvider):
        async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
            started.set()
            try:
                await asyncio.sleep(30)
            finally:
                ended.set()

    async def main(retriever: KnowledgeRetriever) -> None:
        task = asyncio.ensure_future(retriever.aretrieve(QUESTION))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = threading.Event()
    with opened(Hanging(CORPUS)) as retriever:
        asyncio.run(main(retriever))
        assert ended.wait(10)


def test_errors_are_those_of_the_runtime() -> None:
    class Broken(ReferenceProvider):
        async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
            raise KnowledgeUnavailable("sk-planted-9f8e7d6c5b4a")

    with opened(Broken(CORPUS)) as retriever, pytest.raises(KnowledgeUnavailable) as caught:
        retriever.retrieve(QUESTION)
    assert "sk-planted" not in f"{caught.value!r}"
    signal = CancelSignal()
    signal.cancel()
    cancelled = RetrievalContext(owner_id=CORPUS.owner_id, signal=signal)
    with opened(context=cancelled) as retriever, pytest.raises(KnowledgeCancelled):
        retriever.retrieve(QUESTION)


def test_closed_retriever_refuses_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with opened() as retriever:
        retriever.retrieve(QUESTION)
        (thread,) = set(threading.enumerate()) - before
    thread.join(10)
    assert not thread.is_alive()
    retriever.close()
    with pytest.raises(KnowledgeClosed):
        retriever.retrieve(QUESTION)
    with opened() as unused:
        pass
    with pytest.raises(KnowledgeClosed):
        unused.retrieve(QUESTION)


def test_retriever_is_part_of_llamaindex(find: Callable[..., Any]) -> None:
    with opened(top_k=3) as retriever:
        engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        assert len(engine.query(QUESTION).source_nodes) == 3
        fusion = QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1)
        assert len(fusion.retrieve(QUESTION)) == 2
        assert len(find(fusion, QUESTION, top_k=6)) == 6
