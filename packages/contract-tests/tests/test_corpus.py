"""The corpus holds the answers that the clauses rely on."""

from __future__ import annotations

import json
import unicodedata

import pytest

from qak_contract_tests import CORPUS, Document, toy_embedding
from qak_core import public_url

DOCUMENTS = pytest.mark.parametrize("document", CORPUS.documents, ids=lambda document: document.id)


@DOCUMENTS
def test_words_of_a_document_stand_in_no_other(document: Document) -> None:
    for word in document.words:
        holders = [other.id for other in CORPUS.documents if word.casefold() in other.text.casefold()]
        assert holders == [document.id]


@DOCUMENTS
def test_document_holds_its_title_and_all_of_its_question(document: Document) -> None:
    assert document.text.startswith(f"{document.title}\n\n")
    assert all(word.casefold() in document.text.casefold() for word in document.question.split())
    assert sum(document.title in other.text for other in CORPUS.documents) == 1


@DOCUMENTS
def test_public_address_is_the_canonical_one(document: Document) -> None:
    assert public_url(document.uri) == document.public_url


@DOCUMENTS
def test_document_can_be_seeded_anywhere(document: Document) -> None:
    assert json.loads(json.dumps(dict(document.metadata))) == document.metadata
    document.text.encode()
    assert "\0" not in document.text  # databases and text files can't hold it
    assert CORPUS.secret not in document.text


@pytest.mark.parametrize("dimensions", [512, 768, 1024])
@pytest.mark.parametrize("owner_id", [CORPUS.owner_id, CORPUS.other_owner_id])
def test_toy_embedding_finds_each_document_first_by_far(owner_id: str, dimensions: int) -> None:
    own = [document for document in CORPUS.documents if document.owner_id == owner_id]
    vectors = {document.id: toy_embedding(document.text, dimensions) for document in own}
    for document in own:
        question = toy_embedding(document.question, dimensions)
        similarity = {key: sum(a * b for a, b in zip(question, vector, strict=True)) for key, vector in vectors.items()}
        assert similarity.pop(document.id) > 1.2 * max(similarity.values()), document.id


def test_toy_embedding_is_a_unit_vector_of_any_text() -> None:
    for text in ("", "lamp", "年费", "\ud800 \U0001f600"):
        vector = toy_embedding(text, dimensions=512)
        assert len(vector) == 512
        assert sum(component**2 for component in vector) == pytest.approx(1.0)


def test_common_query_matches_more_than_any_answer_holds() -> None:
    assert all(CORPUS.common_query in document.text for document in CORPUS.documents)
    assert len(CORPUS.of(CORPUS.owner_id)) + len(CORPUS.of(CORPUS.owner_id, hostile=True)) > 8


def test_missing_query_matches_nothing() -> None:
    texts = " ".join(document.text.casefold() for document in CORPUS.documents)
    assert not any(word in texts for word in CORPUS.missing_query.split())


def test_corpus_has_both_owners_in_both_knowledge_bases_and_both_languages() -> None:
    assert len(CORPUS.knowledge_base_ids) == 2
    for owner_id in (CORPUS.owner_id, CORPUS.other_owner_id):
        documents = CORPUS.of(owner_id)
        assert {document.knowledge_base_id for document in documents} == set(CORPUS.knowledge_base_ids)
        assert any("\u4e00" <= char <= "\u9fff" for document in documents for char in document.text)
        assert {document.metadata["department"] for document in documents} > {CORPUS.department}


def test_hostile_documents_are_hostile() -> None:
    texts = [document.text for document in CORPUS.documents if document.hostile]
    joined = "".join(texts)
    assert max(map(len, texts)) > 4000
    assert {"\u202e", "\u2066", "\u200b", "\u200d"} <= set(joined)
    assert any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in joined)
    assert '"results"' in joined
    assert any(document.uri and "@" in document.uri for document in CORPUS.documents)
