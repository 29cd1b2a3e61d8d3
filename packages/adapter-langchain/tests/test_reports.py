"""Public bug reports that break a naive adapter; numbers as in section 10 of the vendor notes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_classic.storage import InMemoryStore
from langchain_core.documents import Document
from langchain_text_splitters import CharacterTextSplitter
from qdrant_client import models

from qak_adapter_langchain import LangChainProvider
from qak_core import to_wire

from ._vendors import Fixed, bm25, chroma, found, in_memory, qdrant

NEAR = Document(id="00000000-0000-0000-0000-000000000001", page_content="lamp shade")
FAR = Document(id="00000000-0000-0000-0000-000000000002", page_content="saffron turmeric")


def test_report_01_inner_product_is_not_turned_round() -> None:
    store = qdrant([FAR, NEAR], distance=models.Distance.DOT)
    first, second = found(LangChainProvider(store, score="similarity"), "lamp shade")
    assert (first.content, second.content) == ("lamp shade", "saffron turmeric")
    assert first.score > second.score


def test_report_03_far_document_gets_no_negative_score() -> None:
    store = chroma([NEAR, FAR], space="l2")
    results = found(LangChainProvider(store, score="distance"), "lamp shade")
    assert [result.score for result in results] == [None, None]


def test_report_05_points_that_langchain_did_not_write_are_dropped() -> None:
    store = qdrant([NEAR])
    vector = store.embeddings.embed_query("lamp shade")
    foreign = models.PointStruct(id=5, vector=vector, payload={"text": "lamp shade", "metadata": None})
    store.client.upsert(store.collection_name, [foreign])
    assert [result.id for result in found(LangChainProvider(store), "lamp shade")] == [NEAR.id]


@pytest.mark.parametrize("content", [5, ["a"], {"a": 1}, None])
def test_report_07_content_that_is_no_text_is_dropped(content: Any) -> None:
    document = Document(page_content="x")
    document.page_content = content
    assert [result.content for result in found(LangChainProvider(Fixed(answer=[document, NEAR])))] == ["lamp shade"]


def test_report_09_chunks_that_share_the_id_of_their_file_are_each_one_result_in_order() -> None:
    chunks = [Document(page_content=f"chunk {n}", metadata={"file": "a.pdf"}) for n in range(3)]
    provider = LangChainProvider(Fixed(answer=[NEAR, *chunks]), id_key="file")
    assert [result.id for result in found(provider)] == [NEAR.id, "a.pdf", "a.pdf#2", "a.pdf#3"]


def test_report_11_vector_column_in_metadata_is_left_out() -> None:
    document = Document(page_content="x", metadata={"vector": np.zeros(4), "other": np.ones(4), "n": np.int64(1)})
    (result,) = found(LangChainProvider(Fixed(answer=[document])))
    assert json.loads(json.dumps(to_wire(result)))["metadata"] == {"n": 1}


def test_report_13_reranker_score_of_numpy_stays_a_number() -> None:
    document = Document(page_content="x", metadata={"id": 0, "relevance_score": np.float32(0.5)})
    (result,) = found(LangChainProvider(Fixed(answer=[document]), score="similarity"))
    assert (result.score, type(result.score)) == (0.5, float)
    assert result.id != "0"


def test_report_15_score_that_is_present_but_none_is_absent() -> None:
    scored = [Document(page_content=str(score), metadata={"relevance_score": score}) for score in (0.5, None, 0.25)]
    results = found(LangChainProvider(Fixed(answer=scored), score="similarity"))
    assert [result.score for result in results] == [0.5, None, 0.25]


def test_report_17_two_conditions_and_none_are_said_as_chroma_wants_them() -> None:
    store = chroma(
        [NEAR.model_copy(update={"metadata": {"a": 1, "b": 2}}), FAR.model_copy(update={"metadata": {"a": 1}})]
    )
    both = {"type": "and", "filters": [{"type": "eq", "key": key, "value": n} for key, n in (("a", 1), ("b", 2))]}
    one = {"type": "and", "filters": [{"type": "eq", "key": "a", "value": 1}]}
    provider = LangChainProvider(store)
    assert [len(found(provider, filters=filters)) for filters in (both, one, {}, None)] == [1, 2, 2, 2]
    owned = LangChainProvider(store, owner_key="b")
    assert found(owned, filters=one) == []


def test_parent_document_retriever_gives_the_parents() -> None:
    """Section 1.2: the chunk's id, score and page are lost, and fewer than k may come."""
    retriever = ParentDocumentRetriever(
        vectorstore=in_memory([]),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(chunk_size=20, chunk_overlap=0, separator=". "),
    )
    parents = [
        Document(page_content=f"lamp number {n}. shade number {n}", metadata={"title": f"L{n}"}) for n in range(3)
    ]
    retriever.add_documents(parents, ids=["a", "b", "c"])
    results = found(LangChainProvider(retriever, score="similarity"), "lamp number 1")
    assert results[0].content == "lamp number 1. shade number 1"
    assert results[0].source.title == "L1"
    assert all(result.score is None and len(result.id) == 32 for result in results)


def test_ensemble_fuses_and_gives_no_score() -> None:
    retriever = EnsembleRetriever(retrievers=[bm25([NEAR, FAR]), in_memory([NEAR, FAR]).as_retriever()])
    results = found(LangChainProvider(retriever, score="similarity"), "lamp shade")
    assert [result.content for result in results] == [one.page_content for one in retriever.invoke("lamp shade")]
    assert [result.score for result in results] == [None, None]
