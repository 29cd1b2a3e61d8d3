"""The retrievers and indices that users have: fusion, routing, recursion, merging, keywords, summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import SimpleKeywordTableIndex, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import MetadataInfo, VectorStoreInfo
from llama_index.retrievers.bm25 import BM25Retriever

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_adapter_llamaindex._filters import StoreScope
from qak_adapter_llamaindex._retrievers import prepared
from qak_core import KnowledgeUnavailable

Find = Callable[..., list[Any]]
MakeIndex = Callable[..., VectorStoreIndex]

OWNED = StoreScope(owner_key="owner", owner_id="alice")


@pytest.fixture(scope="module")
def nodes() -> list[TextNode]:
    return [
        TextNode(id_=f"{owner}-{n}", text=f"lamp number {n} of {owner}", metadata={"owner": owner, "of": owner})
        for n in range(10)
        for owner in ("alice", "bob")
    ]


@pytest.fixture(scope="module")
def index(make_index: MakeIndex, nodes: list[TextNode]) -> VectorStoreIndex:
    return make_index(nodes)


def fusion(*retrievers: BaseRetriever, **options: Any) -> QueryFusionRetriever:
    options = {"num_queries": 1, "similarity_top_k": 2, **options}
    return QueryFusionRetriever(list(retrievers), llm=MockLLM(), **options)


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
@pytest.mark.parametrize("use_async", [False, True])
def test_fusion_gives_top_k_results_of_the_owner_in_every_mode(
    index: VectorStoreIndex, nodes: list[TextNode], find: Find, mode: str, use_async: bool
) -> None:
    bm25 = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=2)
    vector = index.as_retriever(similarity_top_k=2)
    retriever = fusion(vector, bm25, mode=mode, use_async=use_async)
    found = find(retriever, "lamp number 7", top_k=6, owner_key="owner", score="similarity")
    assert len(found) == 6
    assert found[0].content == "lamp number 7 of alice"
    assert {result.metadata["of"] for result in found} == {"alice"}
    assert (retriever.similarity_top_k, vector.similarity_top_k, bm25.similarity_top_k) == (2, 2, 2)
    assert vector._filters is None
    assert bm25.corpus_weight_mask is None


def test_fusion_asks_its_language_model_for_queries(index: VectorStoreIndex, find: Find) -> None:
    class Seen(BaseRetriever):
        queries: list[str] = []  # noqa: RUF012 - shared with the copies on purpose

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            self.queries.append(query_bundle.query_str)
            return index.as_retriever().retrieve(query_bundle)

    retriever = fusion(Seen(), num_queries=2, query_gen_prompt="other words for {query}")
    assert find(retriever, "lamp")
    assert sorted(Seen.queries) == ["lamp", "other words for lamp"]


def test_native_fusion_works_on_the_loop(index: VectorStoreIndex, find: Find) -> None:
    found = find(fusion(index.as_retriever(), index.as_retriever()), "lamp number 3 of alice", native_async=True)
    assert found[0].content == "lamp number 3 of alice"
    assert len(found) == 5


def test_fusion_inside_fusion_is_reached(index: VectorStoreIndex, find: Find) -> None:
    inner = fusion(index.as_retriever())
    found = find(fusion(inner, fusion(inner)), top_k=8, owner_key="owner")
    assert len(found) == 8
    assert {result.metadata["of"] for result in found} == {"alice"}


def test_retriever_that_holds_itself_ends(index: VectorStoreIndex) -> None:
    loop = fusion(index.as_retriever())
    loop._retrievers.append(loop)
    assert prepared(loop, 5, OWNED)[0] is not loop


def test_index_node_leads_to_the_retriever_of_another_index(make_index: MakeIndex, find: Find) -> None:
    tables = make_index([TextNode(id_=f"t{n}", text=f"row {n}: lamp price {n}") for n in range(6)])
    inner = tables.as_retriever(similarity_top_k=2)
    pointer = IndexNode(text="lamp prices by row", index_id="prices", obj=inner)
    upper = VectorStoreIndex(
        nodes=[TextNode(id_="intro", text="an introduction to chairs")],
        objects=[pointer],
        embed_model=tables._embed_model,
    )
    found = find(upper, "lamp prices by row", top_k=5)
    assert len([result for result in found if result.content.startswith("row")]) == 2  # as deep as the host wants it
    assert inner.similarity_top_k == 2


def test_recursive_retriever_gives_top_k_results_and_keeps_the_owner(make_index: MakeIndex, find: Find) -> None:
    rows = [
        TextNode(id_=f"{owner}{n}", text=f"row {n} of {owner}", metadata={"owner": owner, "of": owner})
        for n in range(9)
        for owner in ("alice", "bob")
    ]
    first = [
        *rows,
        IndexNode(id_="link", text="lamp rows", index_id="rows", metadata={"owner": "alice", "of": "alice"}),
    ]
    retriever = RecursiveRetriever(
        "root",
        retriever_dict={
            "root": make_index(first).as_retriever(similarity_top_k=1),
            "rows": make_index(rows).as_retriever(similarity_top_k=2),
        },
    )
    found = find(retriever, "row", top_k=7, owner_key="owner")
    assert len(found) == 7
    assert {result.metadata["of"] for result in found} == {"alice"}
    linked = find(retriever, "lamp rows", top_k=7, owner_key="owner")
    assert {result.metadata["of"] for result in linked} == {"alice"}
    assert retriever._retriever_dict["root"].similarity_top_k == 1


def test_query_engine_behind_an_index_node_shows_no_other_owner(
    index: VectorStoreIndex, make_index: MakeIndex, find: Find
) -> None:
    link = IndexNode(text="lamp engine", index_id="engine", metadata={"owner": "alice"})
    engine = index.as_query_engine(llm=MockLLM())
    retriever = RecursiveRetriever(
        "root",
        retriever_dict={"root": make_index([link]).as_retriever()},
        query_engine_dict={"engine": engine},
    )
    assert "bob" in str(find(retriever, "lamp engine"))
    assert "bob" not in str(find(retriever, "lamp engine", owner_key="owner"))


def test_merging_retriever_returns_parents_of_the_owner_alone(make_index: MakeIndex, find: Find) -> None:
    children, parents = [], []
    for owner in ("alice", "bob"):
        parent = TextNode(id_=f"parent-{owner}", text=f"all lamps of {owner}", metadata={"owner": owner, "of": owner})
        parts = [
            TextNode(id_=f"{owner}{n}", text=f"lamp {n}", metadata={"owner": owner, "of": owner}) for n in range(3)
        ]
        for part in parts:
            part.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=parent.node_id)
        parent.relationships[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id=part.node_id) for part in parts]
        children += parts
        parents.append(parent)
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents([*parents, *children])
    index = make_index(children, storage_context=storage)
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=3), storage)
    assert [result.content for result in find(retriever, owner_key="owner")] == ["all lamps of alice"]


def test_router_and_transform_reach_the_retriever_inside(index: VectorStoreIndex, find: Find) -> None:
    class First(LLMSingleSelector):
        def _select(self, choices: Any, query: QueryBundle) -> Any:
            from llama_index.core.base.base_selector import SelectorResult, SingleSelection

            return SelectorResult(selections=[SingleSelection(index=0, reason="")])

    tool = RetrieverTool.from_defaults(index.as_retriever(), description="lamps")
    router = RouterRetriever(selector=First.from_defaults(llm=MockLLM()), retriever_tools=[tool], llm=MockLLM())
    transform = TransformRetriever(index.as_retriever(), query_transform=IdentityQueryTransform())
    for retriever in (router, transform):
        found = find(retriever, top_k=7, owner_key="owner")
        assert len(found) == 7
        assert {result.metadata["of"] for result in found} == {"alice"}


def test_auto_retriever_gets_the_owner_as_an_extra_filter(index: VectorStoreIndex, find: Find) -> None:
    from llama_index.core.retrievers import VectorIndexAutoRetriever

    info = VectorStoreInfo(content_info="lamps", metadata_info=[MetadataInfo(name="n", type="int", description="n")])
    retriever = VectorIndexAutoRetriever(index, vector_store_info=info, llm=MockLLM())
    found = find(retriever, top_k=7, owner_key="owner")
    assert len(found) == 7
    assert {result.metadata["of"] for result in found} == {"alice"}
    assert retriever._extra_filters.filters == []


@pytest.mark.parametrize("kind", [SummaryIndex, SimpleKeywordTableIndex])
def test_other_indices_answer_too(kind: type[BaseIndex], nodes: list[TextNode], find: Find) -> None:
    found = find(kind(nodes=nodes, llm=MockLLM()), "number lamp", top_k=4, owner_key="owner")
    assert len(found) == 4
    assert {result.metadata["of"] for result in found} == {"alice"}


def test_index_that_grows_is_searched_as_it_is(make_index: MakeIndex, find: Find) -> None:
    index = make_index([TextNode(text="chair")])
    provider = LlamaIndexProvider(index)
    index.insert_nodes([TextNode(text="lamp")])
    assert provider.describe().key == "llamaindex"
    assert "lamp" in [result.content for result in find(index)]


def test_index_out_of_step_with_its_docstore_is_unavailable(make_index: MakeIndex, find: Find) -> None:
    index = make_index([TextNode(id_="a", text="lamp")])
    index.docstore.delete_document("a")
    with pytest.raises(KnowledgeUnavailable):
        find(index)


def test_retriever_with_nothing_to_set_is_asked_itself(fixed: Any) -> None:
    retriever = fixed([])
    assert prepared(retriever, 3, OWNED) == (retriever, None)


def test_prepared_retriever_is_a_copy_of_the_same_kind(index: VectorStoreIndex) -> None:
    retriever = index.as_retriever(similarity_top_k=2)
    copied, count = prepared(retriever, 3, OWNED)
    assert count == 3
    assert type(copied) is VectorIndexRetriever
    assert (copied.similarity_top_k, retriever.similarity_top_k) == (3, 2)
    assert retriever._filters is None
