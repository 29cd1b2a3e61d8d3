"""What real retrievers and stores do to a naive adapter, one test a pitfall; numbers as in the vendor notes."""

from __future__ import annotations

import asyncio
import copy
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MergerRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from qdrant_client import models

from qak_adapter_langchain import LangChainProvider
from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidResponse, KnowledgeRuntime, KnowledgeTimeout

from ._vendors import Fixed, ask, bm25, chroma, faiss, found, in_memory, qdrant, retrieve

WORDS = ("lamp", "lamp shade", "lamp shade rattan", "lamp shade rattan tamarind", "saffron")


def documents(**metadata: Any) -> list[Document]:
    return [
        Document(id=f"00000000-0000-0000-0000-00000000000{n}", page_content=text, metadata={"n": n, **metadata})
        for n, text in enumerate(WORDS, 1)
    ]


@pytest.mark.parametrize("make", [in_memory, qdrant, chroma, faiss])
def test_l01_store_gives_real_scores_and_its_retriever_none(make: Any) -> None:
    store = make(documents())
    scores = [result.score for result in found(LangChainProvider(store.as_retriever(), score="similarity"), "lamp")]
    assert scores == [None] * len(scores)
    assert len(scores) == 5
    if make in {in_memory, qdrant}:
        best, *rest = (result.score for result in found(LangChainProvider(store, score="similarity"), "lamp"))
        assert best == pytest.approx(1.0)
        assert all(0 <= score < 1 for score in rest)


@pytest.mark.parametrize(
    "store",
    [
        lambda: chroma(documents(), space="l2"),
        lambda: chroma(documents(), space="cosine"),
        lambda: chroma(documents(), space="ip"),
        lambda: qdrant(documents(), distance=models.Distance.EUCLID),
        lambda: faiss(documents()),
    ],
    ids=["chroma-l2", "chroma-cosine", "chroma-ip", "qdrant-euclid", "faiss"],
)
@pytest.mark.parametrize("declared", ["distance", "similarity", "none"])
def test_l02_distance_never_leaves_as_a_score_even_when_misdeclared(store: Any, declared: Any, caplog: Any) -> None:
    results = found(LangChainProvider(store(), score=declared), "lamp")
    assert results[0].content == "lamp"
    assert {result.score for result in results} == {None}
    assert ("scores rise" in caplog.text) is (declared == "similarity")


def test_l02_dot_product_keeps_its_direction() -> None:
    provider = LangChainProvider(qdrant(documents(), distance=models.Distance.DOT), score="similarity")
    scores = [result.score for result in found(provider, "lamp")]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1.0)


def test_l03_no_warning_with_documents_in_it_is_given() -> None:
    store = chroma(documents(), space="l2")
    with pytest.warns(UserWarning, match="saffron"):
        store.similarity_search_with_relevance_scores("lamp", k=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found(LangChainProvider(store, score="distance"), "lamp")
    assert caught == []


def test_l04_k_is_enforced_when_the_retriever_ignores_it() -> None:
    retriever = Fixed(answer=[Document(page_content=f"document {n}") for n in range(20)])
    assert len(retriever.invoke("anything", k=2)) == 20
    results = found(LangChainProvider(retriever), top_k=2)
    assert [result.content for result in results] == ["document 0", "document 1"]


@pytest.mark.parametrize("retriever", [Fixed(answer=[]), bm25(documents()), faiss(documents())], ids=type)
def test_l04_filter_is_refused_where_it_would_be_ignored(retriever: Any) -> None:
    provider = LangChainProvider(retriever)
    assert not provider.describe().can("filters")
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters={"type": "eq", "key": "n", "value": 1})


def test_l04_translated_filter_is_refused_where_the_retriever_would_drop_it() -> None:
    """LangChain silently drops arguments that a retriever's class does not name."""
    retriever = Fixed(answer=documents())
    assert len(retriever.invoke("anything", filter={"n": 1})) == 5
    provider = LangChainProvider(retriever, translator=lambda wanted, context: {"filter": {"n": 1}})
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(provider, filters={"type": "eq", "key": "n", "value": 1})


class SyncWithK(BaseRetriever):
    """As many custom retrievers are: only the blocking form knows ``k``."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 1) -> list[Document]:
        return documents()[:k]


def test_l05_retriever_whose_blocking_form_alone_knows_k_gets_it() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        asyncio.run(SyncWithK().ainvoke("anything", k=2))
    assert len(found(LangChainProvider(SyncWithK()), top_k=4)) == 4


class AsyncWithoutK(SyncWithK):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise AssertionError("the form without k was called")


def test_l05_native_async_form_without_k_is_passed_over_for_the_one_with_it() -> None:
    assert len(found(LangChainProvider(AsyncWithoutK()), top_k=3)) == 3


@pytest.mark.parametrize("make", [in_memory, qdrant, chroma, faiss])
def test_l06_caller_can_only_narrow_what_the_host_allows(make: Any) -> None:
    store = make([*documents(owner="a"), *(d.model_copy(update={"id": str(n + 50).zfill(32)}) for n, d in THEIRS)])
    mode: Any = "results" if make is faiss else "neutral"
    host = {"type": "lte", "key": "n", "value": 3}
    provider = LangChainProvider(store, owner_key="owner", filters=host, caller_filters=mode)
    for filters in (
        None,
        {"type": "eq", "key": "owner", "value": "b"},
        {"type": "or", "filters": [host, {"type": "eq", "key": "owner", "value": "b"}]},
        {"type": "not", "filter": {"type": "eq", "key": "owner", "value": "a"}},
        {"type": "gte", "key": "n", "value": 2},
    ):
        results = found(provider, "lamp", owner_id="a", top_k=8, filters=filters)
        assert {result.metadata["n"] for result in results} == (
            {1, 2, 3} if filters is None or filters["type"] == "or" else {2, 3} if filters["type"] == "gte" else set()
        )


THEIRS = list(enumerate(documents(owner="b")))


def test_l06_filter_that_the_host_put_into_a_retriever_is_never_replaced() -> None:
    retriever = in_memory(documents()).as_retriever(
        search_kwargs={"filter": lambda document: document.metadata["n"] > 4}
    )
    assert len(retriever.invoke("lamp", filter=None)) == 4  # as LangChain does it
    theirs: list[Any] = [
        LangChainProvider(retriever),
        LangChainProvider(retriever, caller_filters="native"),
        LangChainProvider(retriever, translator=lambda wanted, context: {"filter": None}),
        LangChainProvider(retriever.bind(filter=lambda _: False), translator=lambda wanted, _: {"filter": None}),
    ]
    for provider in theirs:
        with pytest.raises(KnowledgeFiltersUnsupported):
            ask(provider, "lamp", filters={"type": "eq", "key": "n", "value": 1})
    for mode in ("neutral", "results"):
        narrowed = LangChainProvider(retriever, caller_filters=mode, filters={"type": "gt", "key": "n", "value": 0})
        assert [result.metadata["n"] for result in found(narrowed, "lamp")] == [5]


class Forwarding(BaseRetriever):
    """Names the filter, and hands it to a retriever in which the host has fixed one."""

    base: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any, filter: Any = None) -> list[Document]:  # noqa: A002
        return self.base.invoke(query, filter=filter)


class WithField(BaseRetriever):
    """Has a filter of its own, which the argument replaces."""

    filter: Any = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any, filter: Any = None) -> list[Document]:  # noqa: A002
        wanted = filter or self.filter or {}
        return [document for document in documents() if wanted.items() <= document.metadata.items()]


class KeepAll(BaseDocumentCompressor):
    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return list(documents)


WRAPPERS: dict[str, Any] = {
    "plain": lambda base: base,
    "retry": lambda base: base.with_retry(),
    "config": lambda base: base.with_config(tags=["x"]),
    "fallbacks": lambda base: base.with_fallbacks([base]),
    "second-fallback": lambda base: in_memory(documents()).as_retriever().with_fallbacks([base]),
    "bound-filter": lambda base: in_memory(documents()).as_retriever().bind(filter=lambda _: False).with_retry(),
    "sequence": lambda base: base | RunnableLambda(lambda found: found),
    "sequence-that-drops": lambda base: RunnablePassthrough() | base,
    "lambda": lambda base: RunnableLambda(lambda query, **given: base.invoke(query, **given)),
    "compression": lambda base: ContextualCompressionRetriever(base_retriever=base, base_compressor=KeepAll()),
    "configurable": lambda base: base.configurable_fields(search_kwargs=ConfigurableField(id="search_kwargs")),
    "alternatives": lambda base: base.configurable_alternatives(ConfigurableField(id="which"), other=base),
    "ensemble": lambda base: EnsembleRetriever(retrievers=[base]),
    "named": lambda base: Forwarding(base=base),
    "named-over-sequence": lambda base: Forwarding(base=WithField(filter={"n": 5})),
    "field": lambda base: WithField(filter={"n": 5}),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_l06_filter_that_the_host_put_into_a_retriever_is_never_replaced_whatever_wraps_it(wrapper: str) -> None:
    base = chroma(documents()).as_retriever(search_kwargs={"filter": {"n": 5}})
    vendor = WRAPPERS[wrapper](base)
    native = LangChainProvider(vendor, caller_filters="native")
    assert not native.describe().can("filters")
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(native, "lamp", filters={"n": 1})
    translated = LangChainProvider(vendor, translator=lambda wanted, context: {"filter": {"n": 1}})
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(translated, "lamp", filters={"type": "eq", "key": "n", "value": 1})


@pytest.mark.parametrize(
    "wrap",
    [
        lambda retriever: retriever,
        lambda retriever: retriever.with_config(tags=["x"]).with_retry(),
        lambda retriever: retriever.with_fallbacks([WithField()]),
        lambda retriever: WithField(),
    ],
)
def test_l06_filter_arrives_where_it_is_known_what_becomes_of_it(wrap: Any) -> None:
    provider = LangChainProvider(wrap(chroma(documents()).as_retriever()), caller_filters="native")
    assert provider.describe().can("filters")
    assert [result.metadata["n"] for result in found(provider, "lamp", filters={"n": 1})] == [1]


def test_l07_id_comes_from_wherever_the_store_keeps_it() -> None:
    ids = [document.id for document in documents()]
    for make in (in_memory, chroma, faiss, qdrant):
        assert sorted(result.id for result in found(LangChainProvider(make(documents())), "lamp")) == ids
    assert all("_id" not in result.metadata for result in found(LangChainProvider(qdrant(documents())), "lamp"))


def test_l07_id_of_a_retriever_without_ids_is_stable_and_not_the_rank() -> None:
    bare = [Document(page_content=text, metadata={"id": rank}) for rank, text in enumerate(WORDS)]
    first = found(LangChainProvider(Fixed(answer=bare)))
    turned = found(LangChainProvider(Fixed(answer=bare[::-1])))
    assert {result.content: result.id for result in first} == {result.content: result.id for result in turned}
    assert len({result.id for result in first}) == 5


def test_l08_document_without_content_is_dropped_and_more_are_fetched() -> None:
    """Points that LangChain did not write have no content under its payload key."""
    store = qdrant(documents())
    point = models.PointStruct(id=77, vector=store.embeddings.embed_query("lamp"), payload={"text": "lamp"})
    store.client.upsert(store.collection_name, [point])
    assert "" in {document.page_content for document in store.similarity_search("lamp", k=5)}
    assert len(found(LangChainProvider(store), "lamp", top_k=5)) == 5


@pytest.mark.parametrize("answer", [None, "text", iter(()), {"a": 1}, 5, Document(page_content="one")], ids=repr)
def test_l09_answer_that_is_no_list_cannot_be_read(answer: Any) -> None:
    with pytest.raises(KnowledgeInvalidResponse):
        ask(LangChainProvider(Fixed(answer=answer)))


def test_l09_plain_strings_are_content_and_what_is_neither_is_dropped() -> None:
    answer = ("plain text", None, 5, Document(page_content="document"), object(), (Document(page_content="pair"), 0.5))
    results = found(LangChainProvider(Fixed(answer=answer)))
    assert [result.content for result in results] == ["plain text", "document", "pair"]


@pytest.mark.parametrize("make", [bm25, faiss, in_memory])
def test_l10_what_the_store_holds_is_neither_changed_nor_handed_out(make: Any) -> None:
    vendor = make(documents(nested={"a": [1]}, tags=["x"]))
    retriever = vendor if isinstance(vendor, BaseRetriever) else vendor.as_retriever()
    before = copy.deepcopy(retriever.invoke("lamp"))
    for result in found(LangChainProvider(vendor, score="similarity"), "lamp"):
        result.metadata["n"] = "changed"
        result.metadata["owner"] = "changed"
    assert retriever.invoke("lamp") == before


def test_l11_bm25_finds_something_even_where_nothing_matches() -> None:
    results = found(LangChainProvider(bm25(documents()), score="similarity"), "zugzwang")
    assert len(results) == 4
    assert {result.score for result in results} == {None}


# L12 is in test_tracing.py.


def test_l13_calls_that_were_given_up_leave_the_default_threads_alone() -> None:
    release = threading.Event()
    names: list[str] = []

    def hang(query: str) -> list[Document]:
        names.append(threading.current_thread().name)
        release.wait(30)
        return []

    async def main() -> None:
        provider = LangChainProvider(RunnableLambda(hang), max_workers=2)
        try:
            async with KnowledgeRuntime(provider, timeout_s=0.2, max_in_flight_per_owner=64) as runtime:
                calls = [runtime.search("anything", owner_id="a") for _ in range(40)]
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                assert {type(outcome) for outcome in outcomes} == {KnowledgeTimeout}
                # The loop's own threads, where names are resolved, are free.
                assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
        finally:
            release.set()

    asyncio.run(main())
    assert len(names) == 2
    assert all(name.startswith("qak-langchain") for name in names)


def test_l14_numpy_scores_and_metadata_become_plain() -> None:
    document = Document(
        page_content="lamp",
        metadata={"n": np.int64(3), "x": np.float32(0.5), "vector": np.zeros(3), "array": np.zeros(2), "b": np.True_},
    )
    provider = LangChainProvider(
        Fixed(answer=[(document, np.float32(0.25)), ("next", np.float32("nan"))]), score="similarity"
    )
    first, second = found(provider)
    assert (first.score, second.score) == (0.25, None)
    assert first.metadata == {"n": 3, "x": 0.5, "b": True}
    assert {type(value) for value in (first.score, *first.metadata.values())} == {float, int, bool}


def test_l14_faiss_scores_are_numpy_and_do_not_get_out_as_such() -> None:
    store = faiss(documents())
    assert type(store.similarity_search_with_score("lamp", k=1)[0][1]) is np.float32
    (result,) = found(LangChainProvider(store, score="similarity"), "lamp", top_k=1)
    assert type(result.score) is float


@pytest.mark.parametrize("kind", [EnsembleRetriever, MergerRetriever])
def test_l15_merging_retrievers_get_no_arguments_and_keep_to_top_k(kind: Any) -> None:
    retriever = kind(retrievers=[bm25(documents()), in_memory(documents()).as_retriever()])
    provider = LangChainProvider(retriever)
    results = found(provider, "lamp", top_k=2)
    assert len(results) == 2
    everything = found(provider, "lamp", top_k=8)
    assert len({result.id for result in everything}) == len(everything)
    with pytest.raises(KnowledgeFiltersUnsupported):
        ask(LangChainProvider(retriever, translator=lambda wanted, _: {"filter": 1}), filters=FILTER)


FILTER = {"type": "eq", "key": "n", "value": 1}


def test_loop_is_asked_for_nothing_but_waiting() -> None:
    """Beside L5: the store's own async form would borrow the loop's default threads."""
    seen: list[str] = []

    class Watching(type(in_memory([]).embeddings)):  # type: ignore[misc]
        def embed_query(self, text: str) -> list[float]:
            seen.append(threading.current_thread().name)
            return super().embed_query(text)  # type: ignore[no-any-return]

    for make in (lambda: in_memory(documents(), Watching()), lambda: in_memory(documents(), Watching()).as_retriever()):
        provider = LangChainProvider(make())
        seen.clear()
        asyncio.run(retrieve(provider, "lamp"))
        assert [name.rpartition("-")[0] for name in seen] == ["qak-langchain"]
