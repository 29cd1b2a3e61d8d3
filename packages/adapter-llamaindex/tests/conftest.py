from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_contract_tests import toy_embedding
from qak_core import CancelSignal, RetrievalContext, RetrievalRequest, RetrievalResponse


class ToyEmbedding(BaseEmbedding):
    """A deterministic embedding model; ``api_key`` stands for the secret that real ones hold."""

    api_key: str = ""

    def _get_text_embedding(self, text: str) -> list[float]:
        return toy_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return toy_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return toy_embedding(query)


class Fixed(BaseRetriever):
    """A retriever of LlamaIndex's that returns what it was given, or raises it."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.calls: list[QueryBundle] = []
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.calls.append(query_bundle)
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found


@pytest.fixture(scope="session")
def embedding() -> ToyEmbedding:
    return ToyEmbedding()


@pytest.fixture(scope="session")
def make_index(embedding: ToyEmbedding) -> Callable[..., VectorStoreIndex]:
    """Makes an index over SimpleVectorStore; of text alone, so that metadata doesn't change what is found."""

    def make(nodes: Sequence[BaseNode], **options: Any) -> VectorStoreIndex:
        for node in nodes:
            node.excluded_embed_metadata_keys = list(node.metadata)
        return VectorStoreIndex(list(nodes), embed_model=embedding, **options)

    return make


@pytest.fixture(scope="session")
def fixed() -> type[Fixed]:
    return Fixed


@pytest.fixture(scope="session")
def node() -> Callable[..., TextNode]:
    def make(text: str, node_id: str | None = None, **metadata: Any) -> TextNode:
        return TextNode(text=text, metadata=metadata, **({"id_": node_id} if node_id else {}))

    return make


@pytest.fixture(scope="session")
def retrieve() -> Callable[..., RetrievalResponse]:
    """Asks a provider once, in an event loop of its own."""

    def ask(
        provider: Any,
        query: str = "lamp",
        *,
        owner_id: str = "alice",
        signal: CancelSignal | None = None,
        **request: Any,
    ) -> RetrievalResponse:
        context = RetrievalContext(owner_id=owner_id, signal=signal or CancelSignal(30.0))
        return asyncio.run(provider.retrieve(RetrievalRequest(query=query, **request), context))

    return ask


@pytest.fixture(scope="session")
def find(retrieve: Callable[..., RetrievalResponse]) -> Callable[..., list[Any]]:
    """Asks a retriever or index once, through a provider of its own."""

    def ask(
        target: Any,
        query: str = "lamp",
        *,
        owner_id: str = "alice",
        top_k: int = 5,
        filters: Any = None,
        **more: Any,
    ) -> list[Any]:
        provider = LlamaIndexProvider(target, **more)
        try:
            return list(retrieve(provider, query, owner_id=owner_id, top_k=top_k, filters=filters).results)
        finally:
            asyncio.run(provider.close())

    return ask
