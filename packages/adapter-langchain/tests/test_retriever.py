"""The other direction: LangChain's own suite for retrievers, and there and back again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from qak_adapter_langchain import LangChainProvider, LangChainRetriever, as_retriever
from qak_core import (
    KnowledgeCancelled,
    KnowledgeError,
    KnowledgeFiltersUnsupported,
    KnowledgeRuntime,
    KnowledgeTimeout,
    ProviderContractError,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    Source,
    normalize_response,
)

from ._vendors import found, in_memory

ALICE = RetrievalContext(owner_id="alice", session_id="s", turn_id="t", trace_id="r")
RESULTS = [
    RetrievalResult(
        id=f"chunk-{n}",
        content=f"passage {n}",
        score=1 - n / 10,
        source=Source(
            id=f"doc-{n}", title=f"T{n}", uri=f"https://e.example.com/{n}", mime_type="text/x", locator="p 1"
        ),
        metadata={"department": "finance", "year": 2026},
    )
    for n in range(6)
] + [RetrievalResult(id="bare", content="nothing else")]


class Scripted:
    """Answers always the same, and remembers what it was asked."""

    def __init__(self, *, capabilities: Mapping[str, bool] | None = None) -> None:
        self.asked: list[tuple[RetrievalRequest, RetrievalContext]] = []
        self.threads: list[str] = []
        self.capabilities = dict(capabilities or {})

    def describe(self) -> dict[str, Any]:
        return {
            "protocol_version": 1,
            "key": "scripted",
            "label": "Scripted",
            "capabilities": self.capabilities,
            "knowledge_bases": ["handbook"],
        }

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> list[RetrievalResult]:
        self.asked.append((request, context))
        self.threads.append(threading.current_thread().name)
        return RESULTS


class TestLangChainsOwnSuite(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LangChainRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        documents = [Document(id=f"d{n}", page_content=f"lamp {n}") for n in range(9)]
        return {"runtime": KnowledgeRuntime(LangChainProvider(in_memory(documents))), "context": ALICE}

    @property
    def retriever_query_example(self) -> str:
        return "lamp"


def test_document_carries_source_citation_and_notice() -> None:
    first, *_, last = as_retriever(Scripted(), context=ALICE, k=7).invoke("anything")
    assert (first.id, first.page_content) == ("chunk-0", "passage 0")
    notice = normalize_response([], query="x").notice
    assert first.metadata == {
        "department": "finance",
        "year": 2026,
        "source": "https://e.example.com/0",
        "title": "T0",
        "source_id": "doc-0",
        "url": "https://e.example.com/0",
        "citation_id": "source_1",
        "mime_type": "text/x",
        "locator": "p 1",
        "relevance_score": 1.0,
        "citation": {
            "id": "source_1",
            "title": "T0",
            "url": "https://e.example.com/0",
            "snippet": "passage 0",
            "source": "doc-0",
        },
        "notice": notice,
    }
    assert last.metadata == {"notice": notice}


def test_retriever_asks_in_the_owners_name_with_what_the_host_gave() -> None:
    provider = Scripted(capabilities={"filters": True})
    owners = iter(["alice", "bob"])
    retriever = as_retriever(
        provider,
        context=lambda: RetrievalContext(owner_id=next(owners)),
        k=3,
        knowledge_base_ids=("handbook",),
        filters={"type": "eq", "key": "a", "value": 1},
    )
    assert len(retriever.invoke("anything")) == 3
    assert len(asyncio.run(retriever.ainvoke("anything", k=2))) == 2
    (first, one), (second, two) = provider.asked
    assert (one.owner_id, two.owner_id) == ("alice", "bob")
    assert (first.top_k, second.top_k) == (3, 2)
    assert first.knowledge_base_ids == ("handbook",)
    assert first.filters == {"type": "eq", "key": "a", "value": 1}
    assert one.signal.remaining() < 11  # the runtime's own deadline


def test_retriever_raises_the_errors_of_the_protocol() -> None:
    with pytest.raises(KnowledgeFiltersUnsupported):
        as_retriever(Scripted(), context=ALICE, filters={"type": "eq", "key": "a", "value": 1}).invoke("anything")
    with pytest.raises(ProviderContractError):
        as_retriever(object(), context=ALICE)

    class Hanging(Scripted):
        async def retrieve(self, request: Any, context: Any) -> Any:
            await asyncio.Event().wait()

    with pytest.raises(KnowledgeTimeout) as caught:
        as_retriever(KnowledgeRuntime(Hanging(), timeout_s=0.05), context=ALICE).invoke("anything")
    assert isinstance(caught.value, KnowledgeError)


def test_retriever_follows_the_signal_of_its_context() -> None:
    context = RetrievalContext(owner_id="alice")
    retriever = as_retriever(Scripted(), context=context)
    assert retriever.invoke("anything")
    context.signal.cancel()
    with pytest.raises(KnowledgeCancelled):
        retriever.invoke("anything")


def test_retriever_shows_neither_owner_nor_runtime() -> None:
    assert "alice" not in repr(as_retriever(Scripted(), context=ALICE))


def test_invoke_from_another_thread_uses_the_loop_of_the_runtime() -> None:
    provider = Scripted()

    async def main() -> None:
        retriever = as_retriever(provider, context=ALICE)
        await asyncio.to_thread(retriever.invoke, "anything")
        retriever.invoke("anything")  # in the loop's own thread: a loop of its own answers, or this would hang

    asyncio.run(main())
    as_retriever(provider, context=ALICE).invoke("anything")
    assert provider.threads == ["MainThread", "qak-langchain-invoke", "qak-langchain-invoke"]


class LoopBound(Scripted):
    """As one over an async client, whose connections belong to the loop they were made in."""

    loop: Any = None

    async def retrieve(self, request: Any, context: Any) -> Any:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("Event loop is closed")
        await asyncio.sleep(0)
        return await super().retrieve(request, context)


@pytest.mark.parametrize("made_in_the_loop", [True, False])
def test_ainvoke_from_another_loop_uses_the_loop_of_the_runtime(made_in_the_loop: bool) -> None:
    outside = None if made_in_the_loop else as_retriever(LoopBound(), context=ALICE)

    async def main() -> None:
        retriever = outside or as_retriever(LoopBound(), context=ALICE)

        async def both() -> list[Any]:
            return await asyncio.gather(*(retriever.ainvoke("anything") for _ in range(3)))

        answers = await both()
        answers += await asyncio.to_thread(lambda: asyncio.run(both()))
        answers.append(await asyncio.to_thread(retriever.invoke, "anything"))
        assert [len(answer) for answer in answers] == [5] * 7

    asyncio.run(main())


def test_ainvoke_after_invoke_uses_the_loop_in_which_the_runtime_began() -> None:
    retriever = as_retriever(LoopBound(), context=ALICE)
    assert len(retriever.invoke("anything")) == 5
    assert len(asyncio.run(retriever.ainvoke("anything"))) == 5


def test_ainvoke_from_another_loop_that_is_cancelled_ends_the_search() -> None:
    class Hanging(Scripted):
        async def retrieve(self, request: Any, context: Any) -> Any:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    started, ended = threading.Event(), threading.Event()

    async def main() -> None:
        retriever = as_retriever(Hanging(), context=ALICE)

        async def give_up() -> None:
            call = asyncio.ensure_future(retriever.ainvoke("anything"))
            await asyncio.to_thread(started.wait, 10)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        await asyncio.to_thread(lambda: asyncio.run(give_up()))
        assert await asyncio.to_thread(ended.wait, 10)

    asyncio.run(main())


def test_invoke_that_would_wait_for_itself_is_refused() -> None:
    class Nested(Scripted):
        async def retrieve(self, request: Any, context: Any) -> Any:
            return as_retriever(Scripted(), context=ALICE).invoke(request.query)

    with pytest.raises(KnowledgeError):
        as_retriever(Nested(), context=ALICE).invoke("anything")


def test_there_and_back_again_keeps_ids_order_scores_sources_and_metadata() -> None:
    back = LangChainProvider(as_retriever(Scripted(), context=ALICE, k=8), score="similarity")
    assert found(back, top_k=8) == RESULTS


def test_there_and_back_through_a_store_keeps_what_the_store_gave() -> None:
    documents = [
        Document(id=f"d{n}", page_content=f"lamp {n}", metadata={"source": f"https://e.example.com/{n}", "page": n})
        for n in range(4)
    ]
    there = LangChainProvider(in_memory(documents), score="similarity")
    back = LangChainProvider(as_retriever(there, context=ALICE, k=8), score="similarity")
    assert found(back, "lamp 2", top_k=3) == found(there, "lamp 2", top_k=3)
