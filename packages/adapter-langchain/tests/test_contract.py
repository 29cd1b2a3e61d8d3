"""The contract of protocol 1 on real stores and retrievers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document

from qak_adapter_langchain import LangChainProvider
from qak_contract_tests import Corpus, KnowledgeProviderContract

from ._vendors import bm25, chroma, corpus_documents, faiss, in_memory, qdrant

Open = Callable[[Iterable[Document]], Any]


def by_base(corpus: Corpus, make: Open) -> dict[str, Any]:
    """Return a store for each knowledge base of the corpus."""
    pairs = list(zip(corpus.documents, corpus_documents(corpus), strict=True))
    return {
        base: make(document for original, document in pairs if original.knowledge_base_id == base)
        for base in corpus.knowledge_base_ids
    }


class TestInMemoryVectorStore(KnowledgeProviderContract):
    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[Any]:
        yield LangChainProvider(in_memory(corpus_documents(corpus)), score="similarity", owner_key="owner_id")


class TestKnowledgeBases(KnowledgeProviderContract):
    """One store a knowledge base; scores of two stores don't compare, so none are given."""

    waivers: ClassVar = {
        "response.order": "two stores are interleaved by rank, so the best of the second stands behind the first's best"
    }

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[Any]:
        yield LangChainProvider(knowledge_bases=by_base(corpus, in_memory), score="similarity", owner_key="owner_id")


class _SeededOnce(KnowledgeProviderContract):
    """Stores that take their time to be filled are filled once a class."""

    __test__ = False
    make: ClassVar[Any]
    seeded: ClassVar[Any]
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _seed(cls) -> None:
        cls.seeded = cls.make(corpus_documents(cls.corpus))

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[Any]:
        yield LangChainProvider(self.seeded, owner_key="owner_id", **self.options)


class TestChroma(_SeededOnce):
    make = staticmethod(chroma)
    options: ClassVar = {"score": "distance"}


class TestChromaWithItsOwnFilters(_SeededOnce):
    make = staticmethod(chroma)
    options: ClassVar = {"caller_filters": "native"}
    filters: ClassVar = {"department": {"$eq": "finance"}}


class TestQdrant(_SeededOnce):
    make = staticmethod(qdrant)
    options: ClassVar = {"score": "similarity"}


class TestFaiss(_SeededOnce):
    """A store without a translator: owner and filter are applied to what was found."""

    make = staticmethod(faiss)
    options: ClassVar = {"score": "distance", "caller_filters": "results"}


class TestVectorStoreRetriever(_SeededOnce):
    make = staticmethod(lambda documents: qdrant(documents).as_retriever())


class TestBm25(_SeededOnce):
    make = staticmethod(lambda documents: bm25(documents, k=15))
    options: ClassVar = {"caller_filters": "results"}


class TestEnsemble(_SeededOnce):
    make = staticmethod(
        lambda documents: EnsembleRetriever(
            retrievers=[bm25(documents, k=15), in_memory(documents).as_retriever(search_kwargs={"k": 15})]
        )
    )
