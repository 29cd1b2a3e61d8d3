"""Real objects of LangChain and its stores, over an embedding that needs no model."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import chromadb
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores.faiss import FAISS
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from qak_contract_tests import Corpus, toy_embedding
from qak_core import CancelSignal, RetrievalContext, RetrievalRequest

DIMENSIONS = 256
OWNER = "owner-a"
NAMES = map("collection-{}".format, count())


class ToyEmbeddings(Embeddings):
    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.dimensions = dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return toy_embedding(text, self.dimensions)


def corpus_documents(corpus: Corpus) -> list[Document]:
    return [
        Document(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, document.id)),
            page_content=document.text,
            metadata={
                **document.metadata,
                "owner_id": document.owner_id,
                "document_id": document.id,
                "title": document.title,
                "mime_type": document.mime_type,
                "locator": document.locator,
                **({"source": document.uri} if document.uri else {}),
            },
        )
        for document in corpus.documents
    ]


def in_memory(documents: Iterable[Document], embeddings: Embeddings | None = None) -> InMemoryVectorStore:
    store = InMemoryVectorStore(embeddings or ToyEmbeddings())
    _add(store, documents)
    return store


def chroma(documents: Iterable[Document], *, space: str = "cosine", dimensions: int = DIMENSIONS) -> Chroma:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    store = Chroma(next(NAMES), ToyEmbeddings(dimensions), client=client, collection_metadata={"hnsw:space": space})
    _add(store, documents)
    return store


def qdrant(
    documents: Iterable[Document], *, distance: models.Distance = models.Distance.COSINE, dimensions: int = DIMENSIONS
) -> QdrantVectorStore:
    client = QdrantClient(":memory:")
    name = next(NAMES)
    client.create_collection(name, vectors_config=models.VectorParams(size=dimensions, distance=distance))
    store = QdrantVectorStore(client, name, ToyEmbeddings(dimensions), distance=distance)
    _add(store, documents)
    return store


def faiss(documents: Iterable[Document], dimensions: int = DIMENSIONS) -> FAISS:
    return FAISS.from_documents(list(documents), ToyEmbeddings(dimensions))


def bm25(documents: Iterable[Document], k: int = 4) -> BM25Retriever:
    return BM25Retriever.from_documents(list(documents), k=k, preprocess_func=_words)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+|[^\W0-9a-z_]", text.lower())


def _add(store: Any, documents: Iterable[Document]) -> None:
    if documents := list(documents):
        store.add_documents(documents)


class Fixed(BaseRetriever):
    """Returns what it was given, whatever that is; its class has no ``k``."""

    answer: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        return self.answer


class Doing(BaseRetriever):
    """Does what it was given."""

    do: Callable[[str], Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        return self.do(query)


class NativelyAsync(BaseRetriever):
    """Awaits what it was given; its blocking form is refused."""

    do: Callable[[str], Any]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        raise AssertionError("the blocking form was called")

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        return await self.do(query)


def ask(
    provider: Any, query: str = "anything", *, owner_id: str = OWNER, timeout_s: float = 30.0, **request: Any
) -> Any:
    """Run one retrieval in a loop of its own and return the response."""
    return asyncio.run(retrieve(provider, query, owner_id=owner_id, timeout_s=timeout_s, **request))


async def retrieve(
    provider: Any, query: str = "anything", *, owner_id: str = OWNER, timeout_s: float = 30.0, **request: Any
) -> Any:
    context = RetrievalContext(owner_id=owner_id, signal=CancelSignal(timeout_s))
    return await provider.retrieve(RetrievalRequest(query=query, **request), context)


def found(provider: Any, query: str = "anything", **arguments: Any) -> list[Any]:
    return list(ask(provider, query, **arguments).results)
