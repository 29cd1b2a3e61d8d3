"""A small provider that keeps every clause: the yardstick of the suite's own tests, and an example to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from qak_contract_tests.corpus import Corpus, Document
from qak_contract_tests.embedding import tokens
from qak_core import (
    KnowledgeBase,
    KnowledgeBaseUnknown,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    Source,
)
from qak_core.authoring import Filter, matches, parse_filter

CAPABILITIES = frozenset({"filters", "scores", "citations", "knowledge_bases", "management"})


class ReferenceProvider:
    """Finds documents in memory by the share of the query's words they hold.

    Args:
        corpus: the documents; its secret plays the vendor's API key.
        capabilities: which of the five to offer. What is left out is refused, not ignored.
    """

    def __init__(self, corpus: Corpus, *, capabilities: frozenset[str] = CAPABILITIES) -> None:
        self._documents = {document.id: document for document in corpus.documents}
        self._api_key = corpus.secret
        self._capabilities = capabilities
        self._knowledge_base_ids = corpus.knowledge_base_ids if "knowledge_bases" in capabilities else ()
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(cls, corpus: Corpus) -> AsyncIterator[ReferenceProvider]:
        """Open a provider over the corpus and close it afterwards."""
        provider = cls(corpus)
        try:
            yield provider
        finally:
            await provider.close()

    def describe(self) -> ProviderDescription:
        """Say who this is."""
        return ProviderDescription(
            key="reference",
            label="Reference provider",
            capabilities={name: name in self._capabilities for name in sorted(CAPABILITIES)},
            knowledge_bases=tuple(KnowledgeBase(id=base_id) for base_id in self._knowledge_base_ids),
        )

    async def health(self) -> ProviderHealth:
        """Say how this is."""
        return (
            ProviderHealth(status="unavailable", message="closed") if self._closed else ProviderHealth(status="ready")
        )

    async def close(self) -> None:
        """Answer nothing any more."""
        self._closed = True

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        """Find the owner's documents that share a word with the query, best first."""
        if self._closed:
            raise KnowledgeClosed
        context.signal.raise_if_cancelled()
        scope = self._scope(request, context)
        await self._wait_for_vendor()
        context.signal.raise_if_cancelled()
        if self._closed:
            raise KnowledgeClosed
        return self._results(self._ranked(request, scope)[: request.top_k])

    async def ingest(self, source: Document, context: RetrievalContext) -> Mapping[str, Any]:
        """Take in one document of the owner's."""
        if source.owner_id == context.owner_id:
            self._documents[source.id] = source
        return {"id": source.id}

    async def list_documents(self, context: RetrievalContext) -> Sequence[Mapping[str, Any]]:
        """Describe the owner's documents."""
        return [{"id": document.id} for document in self._documents.values() if document.owner_id == context.owner_id]

    async def remove_document(self, document_id: str, context: RetrievalContext) -> bool:
        """Remove one of the owner's documents."""
        document = self._documents.get(document_id)
        if document is None or document.owner_id != context.owner_id:
            return False
        del self._documents[document_id]
        return True

    def _scope(self, request: RetrievalRequest, context: RetrievalContext) -> list[Document]:
        """Return the documents that this request may search."""
        if not set(self._knowledge_base_ids).issuperset(request.knowledge_base_ids):
            raise KnowledgeBaseUnknown
        wanted = self._filter(request)
        return [
            document
            for document in self._documents.values()
            if document.owner_id == context.owner_id
            and (not request.knowledge_base_ids or document.knowledge_base_id in request.knowledge_base_ids)
            and (wanted is None or matches(wanted, document.metadata))
        ]

    def _filter(self, request: RetrievalRequest) -> Filter | None:
        if request.filters is None:
            return None
        if "filters" not in self._capabilities:
            raise KnowledgeFiltersUnsupported
        return parse_filter(request.filters)

    async def _wait_for_vendor(self) -> None:
        await asyncio.sleep(0)

    def _ranked(self, request: RetrievalRequest, documents: Sequence[Document]) -> list[tuple[float, Document]]:
        wanted = _words(request.query)
        scored = [(len(wanted & _words(document.text)) / max(1, len(wanted)), document) for document in documents]
        return sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        return [self._result(document, score) for score, document in ranked]

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return RetrievalResult(
            id=f"{document.id}#1",
            content=document.text,
            score=score if "scores" in self._capabilities else None,
            source=Source(
                id=document.id,
                title=document.title,
                uri=document.uri if "citations" in self._capabilities else None,
                mime_type=document.mime_type,
                locator=document.locator,
            ),
            metadata=dict(document.metadata),
        )


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(tokens(text))
