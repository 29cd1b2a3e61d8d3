"""Providers of every kind that the protocol allows keep the whole contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from qak_contract_tests import CORPUS, Corpus, Document, KnowledgeProviderContract, ReferenceProvider, toy_embedding
from qak_core import (
    KnowledgeBaseUnknown,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    RetrievalContext,
    RetrievalRequest,
)
from qak_core.authoring import BlockingPool


class TestReference(KnowledgeProviderContract):
    def open_provider(self, corpus: Corpus):
        return ReferenceProvider.open(corpus)


class TestReferenceThatDeclaresNothing(KnowledgeProviderContract):
    """What is not declared is refused; nothing is skipped."""

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[Any]:
        yield ReferenceProvider(corpus, capabilities=frozenset())


class BlockingVectorProvider:
    """Embeds, searches in threads, answers in the wire shape, and has a filter language of its own."""

    def __init__(self, corpus: Corpus) -> None:
        self._rows = [(toy_embedding(document.text, 512), document) for document in corpus.documents]
        self._pool = BlockingPool(4)
        self._closed = False

    def describe(self) -> dict[str, Any]:
        return {
            "protocolVersion": 1,
            "key": "blocking-vectors",
            "label": "阻塞的向量库",
            "capabilities": {"filters": True, "scores": True, "citations": True},
        }

    async def health(self, signal: Any) -> dict[str, Any]:
        assert signal.remaining() > 0
        return {"status": "degraded", "message": "only toy embeddings"}

    async def close(self) -> None:
        self._closed = True
        self._pool.close()

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> dict[str, Any]:
        if self._closed:
            raise KnowledgeClosed
        if request.knowledge_base_ids:
            raise KnowledgeBaseUnknown
        if request.filters and set(request.filters) != {"where"}:
            raise KnowledgeFiltersUnsupported
        return {"results": await self._pool.run(context.signal, self._search, request, context.owner_id)}

    def _search(self, request: RetrievalRequest, owner_id: str) -> list[dict[str, Any]]:
        question = toy_embedding(request.query, 512)
        wanted = (request.filters or {}).get("where")
        scored = [
            (sum(a * b for a, b in zip(question, vector, strict=True)), document)
            for vector, document in self._rows
            if document.owner_id == owner_id and wanted in {None, document.metadata["department"]}
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [self._row(score, document) for score, document in scored[: request.top_k]]

    def _row(self, score: float, document: Document) -> dict[str, Any]:
        return {
            "chunkId": document.id,
            "text": document.text,
            "score": score,
            "documentId": document.id,
            "title": document.title,
            "url": document.uri,
        }


class TestBlockingVectorProvider(KnowledgeProviderContract):
    filters = {"where": CORPUS.department}  # noqa: RUF012 - the base says what it is

    @asynccontextmanager
    async def open_provider(self, corpus: Corpus) -> AsyncIterator[Any]:
        provider = BlockingVectorProvider(corpus)
        try:
            yield provider
        finally:
            await provider.close()
