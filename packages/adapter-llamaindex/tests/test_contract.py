"""The contract of protocol 1, on real retrievers and indices of LlamaIndex.

Each is made once and shared by all clauses: providers come and go around it, and must leave it as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.retrievers.bm25 import BM25Retriever

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_contract_tests import CORPUS, Corpus, Document, KnowledgeProviderContract


def nodes(documents: Iterable[Document] = CORPUS.documents) -> list[TextNode]:
    return [
        TextNode(
            id_=f"{document.id}#1",
            text=document.text,
            metadata={
                **document.metadata,
                "owner_id": document.owner_id,
                "title": document.title,
                "file_type": document.mime_type,
                "locator": document.locator,
                **({"permanent_url": document.uri} if document.uri else {}),
            },
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.id)},
        )
        for document in documents
    ]


@pytest.fixture(scope="module")
def index(make_index: Callable[..., VectorStoreIndex], embedding: Any) -> VectorStoreIndex:
    embedding.api_key = CORPUS.secret
    return make_index(nodes())


@pytest.fixture(scope="module")
def bm25() -> BM25Retriever:
    # Words of two letters and more, or single characters of scripts that are written without blanks.
    return BM25Retriever.from_defaults(nodes=nodes(), token_pattern=r"(?u)[a-z0-9]{2,}|[^\W\x00-\x7f]")


@pytest.fixture(scope="module")
def bases(make_index: Callable[..., VectorStoreIndex]) -> dict[str, VectorStoreIndex]:
    return {
        base_id: make_index(nodes(d for d in CORPUS.documents if d.knowledge_base_id == base_id))
        for base_id in CORPUS.knowledge_base_ids
    }


class LlamaIndexContract(KnowledgeProviderContract):
    target: Any = None
    options: ClassVar[dict[str, Any]] = {"score": "similarity"}

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[LlamaIndexProvider]:
        keys: dict[str, Any] = {"owner_key": "owner_id", "citation_keys": {"uri": "permanent_url"}}
        provider = LlamaIndexProvider(self.target, **keys, **self.options)
        yield provider
        await provider.close()


class TestIndex(LlamaIndexContract):
    @pytest.fixture(autouse=True)
    def _target(self, index: VectorStoreIndex) -> None:
        self.target = index


class TestNativeAsync(LlamaIndexContract):
    options: ClassVar[dict[str, Any]] = {"native_async": True}

    @pytest.fixture(autouse=True)
    def _target(self, index: VectorStoreIndex) -> None:
        self.target = index.as_retriever()


class TestNativeFilters(LlamaIndexContract):
    options: ClassVar[dict[str, Any]] = {"caller_filters": "native"}
    filters: ClassVar[dict[str, Any]] = {
        "filters": [{"key": "department", "value": CORPUS.department, "operator": "=="}]
    }

    @pytest.fixture(autouse=True)
    def _target(self, index: VectorStoreIndex) -> None:
        self.target = index


class TestKnowledgeBases(LlamaIndexContract):
    @pytest.fixture(autouse=True)
    def _target(self, index: VectorStoreIndex, bases: dict[str, VectorStoreIndex]) -> None:
        self.target = index
        self.options = {"knowledge_bases": bases}


class TestBM25(LlamaIndexContract):
    @pytest.fixture(autouse=True)
    def _target(self, bm25: BM25Retriever) -> None:
        self.target = bm25


class TestFusion(LlamaIndexContract):
    @pytest.fixture(autouse=True)
    def _target(self, index: VectorStoreIndex, bm25: BM25Retriever) -> None:
        # The language model repeats its prompt, so the generated query is the question with a word before it.
        self.target = QueryFusionRetriever(
            [index.as_retriever(), bm25],
            llm=MockLLM(),
            query_gen_prompt="find {query}",
            num_queries=2,
            mode="reciprocal_rerank",
            similarity_top_k=2,
        )
