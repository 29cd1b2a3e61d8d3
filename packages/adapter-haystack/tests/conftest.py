"""What the tests share: real components over a real store, an own embedder, and a loop that reports complaints."""

from __future__ import annotations

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"  # read when Haystack is imported: no file in the home, no client

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from qak_contract_tests import embedding
from qak_contract_tests.corpus import Corpus
from qak_core import CancelSignal, RetrievalContext, RetrievalRequest


@functools.cache
def toy_embedding(text: str) -> list[float]:
    """Return a short vector: Haystack copies vectors with every document."""
    return embedding.toy_embedding(text, 256)


@component
class ToyTextEmbedder:
    """Embeds in the caller's thread, as a local model does."""

    def __init__(self, api_key: str = "") -> None:
        self.api_key = api_key
        self.warmed_up = 0

    def warm_up(self) -> None:
        self.warmed_up += 1

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        assert self.warmed_up
        return {"embedding": toy_embedding(text)}


@component
class AsyncToyTextEmbedder:
    """Embeds over the network, as hosted models do; here the network is the event loop."""

    def __init__(self) -> None:
        self.warmed_up = 0

    async def warm_up_async(self) -> None:
        self.warmed_up += 1

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        raise AssertionError("only the native way is wanted")

    @component.output_types(embedding=list[float])
    async def run_async(self, text: str) -> dict[str, Any]:
        assert self.warmed_up
        await asyncio.sleep(0)
        return {"embedding": toy_embedding(text)}


def make_store(documents: Iterable[Document]) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore(shared=False, embedding_similarity_function="cosine", return_embedding=False)
    store.write_documents(list(documents))
    return store


def of_corpus(corpus: Corpus, base_id: str | None = None) -> list[Document]:
    """The corpus as a host would have it: the owner and the source's fields in ``meta``."""
    return [
        Document(
            id=document.id,
            content=document.text,
            embedding=toy_embedding(document.text),
            meta={
                **document.metadata,
                "owner_id": document.owner_id,
                "title": document.title,
                "mime_type": document.mime_type,
                "locator": document.locator,
                **({"url": document.uri} if document.uri else {}),
            },
        )
        for document in corpus.documents
        if base_id in {None, document.knowledge_base_id}
    ]


def hybrid(store: InMemoryDocumentStore, embedder: Any = None, **joining: Any) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("embedder", embedder or ToyTextEmbedder())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner(**({"join_mode": "reciprocal_rank_fusion"} | joining)))
    pipeline.connect("embedder.embedding", "vectors.query_embedding")
    pipeline.connect("vectors", "joiner")
    pipeline.connect("words", "joiner")
    return pipeline


@pytest.fixture(scope="session")
def parts() -> SimpleNamespace:
    """What builds the components; test modules can't import each other."""
    return SimpleNamespace(
        ToyTextEmbedder=ToyTextEmbedder,
        AsyncToyTextEmbedder=AsyncToyTextEmbedder,
        make_store=make_store,
        of_corpus=of_corpus,
        hybrid=hybrid,
        embed=toy_embedding,
    )


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run a coroutine within a bounded time; nothing may be left behind that nobody looked at."""

    def run_and_look(coroutine: Coroutine[Any, Any, Any], *, limit_s: float = 30.0) -> Any:
        complaints: list[Any] = []

        async def main() -> Any:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            return await asyncio.wait_for(coroutine, limit_s)

        try:
            return asyncio.run(main())
        finally:
            gc.collect()
            assert complaints == []

    return run_and_look


@pytest.fixture
def ask(run: Callable[..., Any]) -> Callable[..., Any]:
    """Ask a provider one question in a loop of its own, and return the response."""

    def ask_once(
        provider: Any,
        query: str = "lamp",
        *,
        owner_id: str = "alice",
        signal: CancelSignal | None = None,
        **arguments: Any,
    ) -> Any:
        context = RetrievalContext(owner_id=owner_id, signal=signal or CancelSignal(20.0))
        return run(provider.retrieve(RetrievalRequest(query=query, **arguments), context))

    return ask_once


@pytest.fixture
def store() -> Iterator[InMemoryDocumentStore]:
    """Three texts of alice about lamps, one of bob."""
    store = make_store(
        Document(
            id=name,
            content=text,
            embedding=toy_embedding(text),
            meta={"owner_id": owner_id, "kind": kind, "year": year, "title": name.title()},
        )
        for name, owner_id, kind, year, text in (
            ("red", "alice", "article", 2024, "The red lamp hangs in the hall."),
            ("green", "alice", "blog", 2025, "A green lamp, a lamp for reading."),
            ("blue", "alice", "article", 2026, "Blue lamp, blue light, blue mood and a lamp."),
            ("secret", "bob", "article", 2026, "Bob's lamp lamp lamp is a secret."),
        )
    )
    yield store
    store.shutdown()
