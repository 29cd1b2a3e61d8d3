"""The provider around whatever LangChain has: kinds of objects, knowledge bases, ends, errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import traceback
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError, ModelTimeoutError
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from qak_adapter_langchain import LangChainProvider
from qak_core import (
    CancelSignal,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeError,
    KnowledgeInvalidRequest,
    KnowledgeRateLimited,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    SettingsError,
)

from ._vendors import Doing, Fixed, NativelyAsync, ToyEmbeddings, ask, bm25, chroma, found, in_memory, qdrant, retrieve

SECRET = "sk-Larkspur2Vault9Key"
DOCUMENTS = [Document(id=f"d{n}", page_content=f"lamp {n}", metadata={"n": n}) for n in range(20)]


async def three(query: str) -> list[Document]:
    assert threading.current_thread().name == "MainThread"
    return DOCUMENTS[:3]


async def reranked(documents: list[Document]) -> list[Document]:
    return documents[::-1]


def raising(error: BaseException) -> Any:
    def do(query: str) -> Any:
        raise error

    return do


class AsyncEmbeddings(ToyEmbeddings):
    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


class AsyncStore(InMemoryVectorStore):
    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        return [(document, 0.5) for document in await three(query)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        return await three(query)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        raise AssertionError("the blocking form was called")


class OnlyAinvoke:
    async def ainvoke(self, query: str) -> list[Document]:
        return await three(query)


def fallback() -> Any:
    return RunnableLambda(raising(ConnectionError())).with_fallbacks([bm25(DOCUMENTS)])


@pytest.mark.parametrize(
    ("make", "threaded", "count"),
    [
        (lambda: in_memory(DOCUMENTS), True, 8),
        (lambda: in_memory(DOCUMENTS).as_retriever(), True, 8),
        (lambda: in_memory(DOCUMENTS).as_retriever(search_type="mmr"), True, 8),
        (lambda: in_memory(DOCUMENTS).as_retriever().with_retry(), True, 8),
        (lambda: in_memory(DOCUMENTS).as_retriever().with_config(tags=["x"]).with_retry(), True, 8),
        (lambda: in_memory(DOCUMENTS).as_retriever().with_fallbacks([qdrant([]).as_retriever()]), True, 8),
        (lambda: bm25(DOCUMENTS).with_retry(), True, 4),
        (fallback, True, 4),
        (lambda: RunnableLambda(lambda query: query.upper()) | bm25(DOCUMENTS), True, 4),
        (lambda: RunnableLambda(lambda query: DOCUMENTS), True, 8),
        (lambda: RunnableLambda(lambda query: DOCUMENTS[:2], afunc=three), False, 3),
        (lambda: RunnableLambda(three), False, 3),
        (lambda: NativelyAsync(do=three), False, 3),
        (lambda: NativelyAsync(do=three).with_retry(), False, 3),
        (lambda: AsyncStore(AsyncEmbeddings()), False, 3),
        (lambda: AsyncStore(AsyncEmbeddings()).as_retriever(), False, 3),
        (lambda: AsyncStore(ToyEmbeddings()).as_retriever(search_kwargs={}), True, None),
        (OnlyAinvoke, False, 3),
        (lambda: bm25(DOCUMENTS) | RunnableLambda(reranked), False, 4),
        (lambda: (bm25(DOCUMENTS) | RunnableLambda(reranked)).with_retry(), False, 4),
        (lambda: in_memory(DOCUMENTS).as_retriever(search_kwargs={"k": 8}) | RunnableLambda(reranked), False, 8),
        (lambda: RunnableLambda(raising(ConnectionError())).with_fallbacks([RunnableLambda(three)]), False, 3),
    ],
)
def test_provider_takes_what_users_have_and_decides_how_to_call_it(
    make: Any, threaded: bool, count: int | None
) -> None:
    provider = LangChainProvider(make())
    (base,) = provider._bases.values()
    assert base.source.in_thread is threaded
    if count is not None:
        assert len(found(provider, "lamp", top_k=8)) == count


def test_host_decides_between_thread_and_loop_where_it_knows_better() -> None:
    seen: list[str] = []

    def blocking(query: str) -> list[Document]:
        seen.append(threading.current_thread().name)
        return []

    async def pretending(query: str) -> list[Document]:
        return blocking(query)

    retriever = RunnableLambda(blocking, afunc=pretending)
    for run_in_thread in (None, False, True):
        ask(LangChainProvider(retriever, run_in_thread=run_in_thread))
    assert [name.rpartition("-")[0] or name for name in seen] == ["MainThread", "MainThread", "qak-langchain"]
    with pytest.raises(SettingsError, match="run_in_thread=True"):
        LangChainProvider(OnlyAinvoke(), run_in_thread=True)


@pytest.mark.parametrize("vendor", [object(), "text", ToyEmbeddings(), lambda query: []], ids=type)
def test_object_that_cannot_retrieve_is_refused_when_composed(vendor: Any) -> None:
    with pytest.raises(SettingsError, match="expected a retriever with ainvoke or a vector store"):
        LangChainProvider(vendor)


def test_every_argument_that_cannot_be_used_is_named() -> None:
    wrong: dict[str, Any] = {
        "score": "relevance",
        "caller_filters": "any",
        "first_page": 2,
        "citation_keys": {"url": ""},
    }
    with pytest.raises(SettingsError, match="score") as caught:
        LangChainProvider(bm25(DOCUMENTS), knowledge_bases={" x": object()}, **wrong)
    assert len(caught.value.problems) == 6
    with pytest.raises(SettingsError, match="neither"):
        LangChainProvider()
    with pytest.raises(SettingsError, match="filters: "):
        LangChainProvider(bm25(DOCUMENTS), filters={"n": 1})


def bases(**knowledge_bases: Any) -> LangChainProvider:
    return LangChainProvider(knowledge_bases=knowledge_bases)


def test_knowledge_bases_are_asked_alone_or_all_and_interleaved_by_rank() -> None:
    provider = bases(a=Fixed(answer=DOCUMENTS[:3]), b=Fixed(answer=DOCUMENTS[:2]))
    assert [base.id for base in provider.describe().knowledge_bases] == ["a", "b"]
    assert [result.id for result in found(provider)] == ["a:d0", "b:d0", "a:d1", "b:d1", "a:d2"]
    assert [result.id for result in found(provider, top_k=3)] == ["a:d0", "b:d0", "a:d1"]
    assert [result.id for result in found(provider, knowledge_base_ids=["b"])] == ["b:d0", "b:d1"]
    assert [result.id for result in found(provider, knowledge_base_ids=["b", "a"], top_k=2)] == ["b:d0", "a:d0"]


@pytest.mark.parametrize("ids", [["c"], ["a", "c"], ["*"], ["A"]])
def test_unknown_knowledge_base_is_refused(ids: list[str]) -> None:
    for provider in (bases(a=Fixed(answer=DOCUMENTS)), LangChainProvider(Fixed(answer=DOCUMENTS))):
        with pytest.raises(KnowledgeBaseUnknown):
            ask(provider, knowledge_base_ids=ids)


def test_retriever_beside_knowledge_bases_answers_what_names_none() -> None:
    provider = LangChainProvider(Fixed(answer=DOCUMENTS[:1]), knowledge_bases={"a": Fixed(answer=DOCUMENTS[1:2])})
    assert [result.id for result in found(provider)] == ["d0"]
    assert [result.id for result in found(provider, knowledge_base_ids=["a"])] == ["a:d1"]


@pytest.mark.parametrize(
    "broken", [Doing(do=raising(RuntimeError(SECRET))), Fixed(answer=None)], ids=["raises", "none"]
)
def test_knowledge_base_that_fails_leaves_the_others_and_a_mark(broken: Any) -> None:
    response = ask(bases(a=broken, b=Fixed(answer=DOCUMENTS[:2])))
    assert [result.id for result in response.results] == ["b:d0", "b:d1"]
    assert list(response.degraded) == ["a"]
    with pytest.raises(KnowledgeError):
        ask(bases(a=broken, b=broken))


def test_knowledge_base_that_hangs_leaves_the_others_in_time() -> None:
    async def hang(query: str) -> list[Document]:
        await asyncio.Event().wait()
        return []

    response = ask(bases(a=NativelyAsync(do=hang), b=Fixed(answer=DOCUMENTS[:1])), timeout_s=0.3)
    assert [result.id for result in response.results] == ["b:d0"]
    assert list(response.degraded) == ["a"]


def test_owner_is_compared_exactly_and_never_shown() -> None:
    owners: list[Any] = ["a", "A", "a ", ["a"], None, 5, b"a", {"a": 1}]
    documents = [Document(page_content=f"of {owner!r}", metadata={"owner": owner}) for owner in owners]
    provider = LangChainProvider(Fixed(answer=[*documents, "plain text"]), owner_key="owner")
    (result,) = found(provider, owner_id="a", top_k=8)
    assert (result.content, dict(result.metadata)) == ("of 'a'", {})
    assert found(provider, owner_id="5", top_k=8) == []


class StatusError(Exception):
    def __init__(self, status_code: Any) -> None:
        super().__init__(f"{SECRET} was refused by https://db.internal")
        self.status_code = status_code


class AuthenticationError(Exception):
    """As clients of several vendors call it."""


def caused(cause: Exception) -> Exception:
    error = RuntimeError(SECRET)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelAuthenticationError(SECRET), KnowledgeUnauthorized),
        (ModelRateLimitError(SECRET), KnowledgeRateLimited),
        (ModelTimeoutError(SECRET), KnowledgeTimeout),
        (AuthenticationError(SECRET), KnowledgeUnauthorized),
        (TimeoutError(SECRET), KnowledgeTimeout),
        (ConnectionRefusedError(SECRET), KnowledgeUnavailable),
        (OSError(SECRET), KnowledgeUnavailable),
        (StatusError(401), KnowledgeUnauthorized),
        (StatusError(403), KnowledgeUnauthorized),
        (StatusError(429), KnowledgeRateLimited),
        (StatusError(504), KnowledgeTimeout),
        (StatusError(503), KnowledgeUnavailable),
        (StatusError(404), KnowledgeInvalidRequest),
        (StatusError("401"), KnowledgeUnavailable),
        (ExceptionGroup(SECRET, [ValueError(SECRET), StatusError(429)]), KnowledgeRateLimited),
        (caused(StatusError(401)), KnowledgeUnauthorized),
        (ValueError(SECRET), KnowledgeUnavailable),
        (KeyError(SECRET), KnowledgeUnavailable),
    ],
    ids=repr,
)
@pytest.mark.parametrize("native", [True, False])
def test_vendor_error_becomes_one_of_the_protocol_and_leaves_nothing(
    error: Exception, kind: type[KnowledgeError], native: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(query: str) -> Any:
        raise error

    retriever = NativelyAsync(do=fail) if native else Doing(do=raising(error))
    with caplog.at_level(logging.DEBUG), pytest.raises(KnowledgeError) as caught:
        ask(LangChainProvider(retriever), f"my query {SECRET}")
    raised = caught.value
    assert type(raised) is kind
    assert raised.__cause__ is None
    assert raised.__context__ is None
    # The traceback's frames show source lines only.
    shown = [str(raised), repr(raised), repr(vars(raised)), repr(raised.args), *traceback.format_exception(raised)]
    assert not any(SECRET in text for text in (*shown, caplog.text))
    assert type(error).__name__ in caplog.text


def test_stop_iteration_of_a_blocking_retriever_is_a_failure_like_others() -> None:
    with pytest.raises(KnowledgeUnavailable):
        ask(LangChainProvider(Doing(do=raising(StopIteration(SECRET)))))


def test_error_of_an_embedding_is_translated_too() -> None:
    class Broken(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            raise StatusError(401)

    store = InMemoryVectorStore.from_texts(["lamp"], Broken())
    with pytest.raises(KnowledgeUnauthorized):
        ask(LangChainProvider(store))


def test_deadline_ends_a_native_call_as_a_timeout_and_cancels_it() -> None:
    async def main() -> None:
        cancelled = asyncio.Event()

        async def hang(query: str) -> list[Document]:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return []

        with pytest.raises(KnowledgeTimeout):
            await retrieve(LangChainProvider(NativelyAsync(do=hang)), timeout_s=0.1)
        await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(main())


def test_vendor_that_says_it_was_cancelled_although_nobody_did_has_failed() -> None:
    async def give_up(query: str) -> list[Document]:
        raise asyncio.CancelledError

    with pytest.raises(KnowledgeUnavailable):
        ask(LangChainProvider(NativelyAsync(do=give_up)))


@pytest.mark.parametrize("native", [True, False])
def test_cancelling_the_signal_ends_the_retrieval_and_drops_what_comes_late(native: bool) -> None:
    async def main() -> None:
        release, started, late = threading.Event(), threading.Event(), asyncio.Event()

        def block(query: str) -> list[Document]:
            started.set()
            release.wait(30)
            return DOCUMENTS

        async def deaf(query: str) -> list[Document]:
            started.set()
            for _ in range(2):  # deaf to the first cancellation
                with contextlib.suppress(asyncio.CancelledError):
                    await late.wait()
            return DOCUMENTS

        provider = LangChainProvider(NativelyAsync(do=deaf) if native else Doing(do=block))
        signal = CancelSignal(60)
        context = RetrievalContext(owner_id="a", signal=signal)
        call = asyncio.ensure_future(provider.retrieve(RetrievalRequest(query="anything"), context))
        await asyncio.to_thread(started.wait, 10)
        signal.cancel()
        with pytest.raises(KnowledgeCancelled):
            await asyncio.wait_for(call, 5)
        release.set()
        late.set()

    asyncio.run(main())


def test_closing_gives_up_what_runs_and_calls_the_host_once() -> None:
    async def main() -> None:
        started, calls = asyncio.Event(), []

        async def hang(query: str) -> list[Document]:
            started.set()
            await asyncio.Event().wait()
            return []

        async def aclose() -> None:
            calls.append("closed")

        provider = LangChainProvider(NativelyAsync(do=hang), aclose=aclose)
        call = asyncio.ensure_future(retrieve(provider))
        await started.wait()
        await asyncio.gather(provider.close(), provider.close())
        await provider.close()
        with pytest.raises(KnowledgeClosed):
            await asyncio.wait_for(call, 5)
        with pytest.raises(KnowledgeClosed):
            await retrieve(provider)
        assert calls == ["closed"]
        assert (await provider.health()).status == "unavailable"

    asyncio.run(main())


def test_health_is_ready_or_what_the_host_says() -> None:
    async def check() -> ProviderHealth:
        return ProviderHealth(status="degraded", message="one replica is down")

    async def fail() -> ProviderHealth:
        raise StatusError(401)

    async def main() -> None:
        assert (await LangChainProvider(OnlyAinvoke()).health()).status == "ready"
        assert (await LangChainProvider(OnlyAinvoke(), health=check).health()).status == "degraded"
        async with KnowledgeRuntime(LangChainProvider(OnlyAinvoke(), health=fail)) as runtime:
            health = await runtime.health()
        assert health.status == "unavailable"
        assert SECRET not in health.message

    asyncio.run(main())


def test_description_says_what_the_provider_can_do() -> None:
    store = chroma([])
    capabilities = {
        "plain": LangChainProvider(bm25(DOCUMENTS)),
        "store": LangChainProvider(store, score="similarity"),
        "bases": LangChainProvider(knowledge_bases={"a": store, "b": bm25(DOCUMENTS)}, score="similarity"),
        "checked": LangChainProvider(bm25(DOCUMENTS), caller_filters="results", score="distance"),
    }
    said = {name: provider.describe().capabilities for name, provider in capabilities.items()}
    assert [name for name in said if said[name]["filters"]] == ["store", "checked"]
    assert [name for name in said if said[name]["scores"]] == ["store"]
    assert [name for name in said if said[name]["knowledge_bases"]] == ["bases"]
    assert repr(capabilities["plain"]) == "LangChainProvider('langchain')"
