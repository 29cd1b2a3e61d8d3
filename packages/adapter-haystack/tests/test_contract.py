"""The contract of protocol 1 on real components, pipelines and stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from haystack import Pipeline, SuperComponent
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever

from qak_adapter_haystack import HaystackProvider
from qak_contract_tests import KnowledgeProviderContract
from qak_contract_tests.corpus import Corpus


class _Contract(KnowledgeProviderContract):
    @pytest.fixture(autouse=True)
    def _parts(self, parts: SimpleNamespace) -> None:
        self.parts = parts

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[HaystackProvider]:
        store = self.parts.make_store(self.parts.of_corpus(corpus))
        provider = HaystackProvider(owner_key="owner_id", **self.arguments(store, corpus))
        yield provider
        await provider.close()
        store.shutdown()

    def arguments(self, store: Any, corpus: Corpus) -> dict[str, Any]:
        raise AssertionError("each class has its own")


class TestBM25Retriever(_Contract):
    """Native: the component has ``run_async``."""

    def arguments(self, store: Any, corpus: Corpus) -> dict[str, Any]:
        return {"retriever": InMemoryBM25Retriever(store), "score": "similarity"}


class TestHybridPipeline(_Contract):
    """In threads: the joiner is not async."""

    def arguments(self, store: Any, corpus: Corpus) -> dict[str, Any]:
        pipeline = self.parts.hybrid(store, self.parts.ToyTextEmbedder(api_key=corpus.secret))
        return {"retriever": pipeline, "score": "similarity"}


class TestAsyncPipeline(_Contract):
    """Native: every component of the pipeline has ``run_async``. Filters as Haystack writes them."""

    filters: ClassVar = {"field": "meta.department", "operator": "==", "value": "finance"}

    def arguments(self, store: Any, corpus: Corpus) -> dict[str, Any]:
        pipeline = Pipeline()
        pipeline.add_component("embedder", self.parts.AsyncToyTextEmbedder())
        pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
        pipeline.connect("embedder.embedding", "vectors.query_embedding")
        return {"retriever": pipeline, "score": "distance", "caller_filters": "native"}


class TestSuperComponentThatTakesNoFilters(_Contract):
    """Owners are kept apart by what is checked afterwards alone."""

    def arguments(self, store: Any, corpus: Corpus) -> dict[str, Any]:
        wrapped = SuperComponent(
            pipeline=self.parts.hybrid(store),
            input_mapping={"question": ["words.query", "embedder.text"], "limit": ["joiner.top_k"]},
            output_mapping={"joiner.documents": "passages"},
        )
        return {"retriever": wrapped, "query_inputs": ["question"], "top_k_inputs": ["limit"]}


class TestKnowledgeBases(_Contract):
    """A component for all, a component and an embedding retriever with its embedder for one base each."""

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[HaystackProvider]:
        stores = {
            base_id: self.parts.make_store(self.parts.of_corpus(corpus, base_id))
            for base_id in (None, *corpus.knowledge_base_ids)
        }
        provider = HaystackProvider(
            InMemoryBM25Retriever(stores[None]),
            knowledge_bases={
                "handbook": InMemoryBM25Retriever(stores["handbook"]),
                "products": (InMemoryEmbeddingRetriever(stores["products"]), self.parts.ToyTextEmbedder()),
            },
            owner_key="owner_id",
            score="similarity",
        )
        yield provider
        await provider.close()
        for store in stores.values():
            store.shutdown()
