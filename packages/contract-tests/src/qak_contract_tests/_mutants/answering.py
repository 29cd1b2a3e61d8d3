"""Providers whose answers are wrong."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qak_contract_tests._mutants.base import Mutant, breaks
from qak_contract_tests.corpus import Corpus, Document
from qak_contract_tests.reference import CAPABILITIES
from qak_core import KnowledgeUnavailable, RetrievalContext, RetrievalRequest, RetrievalResult, Source


@breaks("response.shape", "runtime.answer")
class AnswerIsAGenerator(Mutant):
    """Produces results one by one, which no caller can count."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        return (self._result(document, score) for score, document in ranked)


@breaks("response.fields")
class LocatorIsANumber(Mutant):
    """Gives the page as the vendor does."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        result = super()._result(document, score)
        assert result.source is not None
        return replace(result, source=replace(result.source, locator=1))  # type: ignore[arg-type]


@breaks("response.fields")
class ContentIsMissing(Mutant):
    """Passes on rows that have an id but no text."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        results = super()._results(ranked)
        return [*results[:1], *(replace(result, content=None) for result in results[1:])]


@breaks("response.content")
class ContentsAreShifted(Mutant):
    """Pairs the texts with the wrong ids."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        results = super()._results(ranked)
        shifted = [*results[1:], *results[:1]]
        return [replace(own, content=other.content) for own, other in zip(results, shifted, strict=True)]


@breaks("response.id")
class IdIsMissing(Mutant):
    """Has an id for the first chunk of a file only."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        results = super()._results(ranked)
        return [*results[:1], *(replace(result, id=None) for result in results[1:])]


@breaks("response.id.unique")
class IdIsOfTheFile(Mutant):
    """Gives every chunk the id of what it was cut from."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), id=f"file-of-{document.knowledge_base_id}")


@breaks("response.id.stable")
class IdIsRandom(Mutant):
    """Makes ids up at every call."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), id=uuid.uuid4().hex)


@breaks("response.order")
class WorstComesFirst(Mutant):
    """Sorts what it found the wrong way round."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        scores = [score for score, _ in ranked]
        documents = [document for _, document in reversed(ranked)]
        return super()._results(list(zip(scores, documents, strict=True)))


@breaks("response.score")
class ScoreIsText(Mutant):
    """Formats its scores."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), score=f"{score:.2f}")  # type: ignore[arg-type]


@breaks("response.score.declared")
class ScoresAreUndeclared(Mutant):
    """Says that it has no scores, and gives some."""

    offers = CAPABILITIES - {"scores"}

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), score=score)


@breaks("response.score.declared")
class ScoresAreMissing(Mutant):
    """Says that it has scores, and gives none."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), score=None)


@breaks("response.score.direction")
class ScoreIsADistance(Mutant):
    """Passes a distance on as a score: the best has the lowest."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), score=1.0 - score)


@breaks("response.metadata")
class MetadataIsNested(Mutant):
    """Passes the vendor's tree of metadata on."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), metadata={"document": dict(document.metadata)})  # type: ignore[dict-item]


class _VendorScore(float):
    __slots__ = ()


@breaks("response.plain")
class ScoreIsAVendorsObject(Mutant):
    """Passes the vendor's own kind of number on."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), score=_VendorScore(score))


@breaks("response.json")
class ContentIsNotUnicode(Mutant):
    """Decoded bytes without looking, and has half a character at the end."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), content=f"{document.text}\ud83d")


@breaks("response.fresh")
class MetadataIsTheStoredOne(Mutant):
    """Hands out the very dictionary that its index holds."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self._stored = {document.id: dict(document.metadata) for document in corpus.documents}

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return replace(super()._result(document, score), metadata=self._stored[document.id])


@breaks("response.fresh")
class AnswerIsTheCachedOne(Mutant):
    """Hands out the very list that its cache holds."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self._cache: dict[str, Any] = {}

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        return self._cache.setdefault(repr([document.id for _, document in ranked]), super()._results(ranked))


@breaks("response.not_found")
class NothingIsNone(Mutant):
    """Returns None when nothing matches."""

    def _results(self, ranked: Sequence[tuple[float, Document]]) -> Any:
        return super()._results(ranked) or None


@breaks("response.not_found")
class NothingIsAnError(Mutant):
    """Fails for an owner who has no documents yet."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if context.owner_id not in {document.owner_id for document in self._documents.values()}:
            raise KnowledgeUnavailable
        return await super().retrieve(request, context)


@breaks("uri.public_only")
class PrivateDocumentsGetAViewer(Mutant):
    """Makes a public link to what is not public."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        viewer = document.public_url or f"https://viewer.example.com/open?document={document.id}"
        return _with_uri(super()._result(document, score), viewer)


@breaks("citation.declared")
class AddressesAreLost(Mutant):
    """Declares citations, and drops the addresses."""

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return _with_uri(super()._result(document, score), None)


@breaks("citation.declared")
class AddressesAreUndeclared(Mutant):
    """Declares no citations, and gives addresses."""

    offers = CAPABILITIES - {"citations"}

    def _result(self, document: Document, score: float) -> RetrievalResult:
        return _with_uri(super()._result(document, score), document.uri)


def _with_uri(result: RetrievalResult, uri: str | None) -> RetrievalResult:
    return replace(result, source=replace(result.source or Source(), uri=uri))
