"""One test for each pitfall of LlamaIndex that is known, on LlamaIndex's own objects; the number is that of the row."""

from __future__ import annotations

import asyncio
import copy
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_contract_tests import toy_embedding
from qak_core import (
    CancelSignal,
    KnowledgeFailed,
    KnowledgeInvalidResponse,
    KnowledgeQueryRequired,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    RetrievalContext,
    RetrievalRequest,
)

Find = Callable[..., list[Any]]
ALICE = RetrievalContext(owner_id="alice")


class Blocking(BaseRetriever):
    """A retriever as most are: only ``_retrieve`` is written, so ``aretrieve`` runs it on the event loop."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.threads: set[str] = set()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.threads.add(threading.current_thread().name)
        assert self.release.wait(20)
        return [NodeWithScore(node=TextNode(text="late"), score=1.0)]


def test_I01_blocking_retriever_leaves_the_loop_free_and_a_deadline_ends_it() -> None:
    retriever = Blocking()
    provider = LlamaIndexProvider(retriever)

    async def main() -> float:
        context = RetrievalContext(owner_id="alice", signal=CancelSignal(0.2))
        started = time.monotonic()
        with pytest.raises(KnowledgeTimeout):  # the loop's own timer could not even fire if it were blocked
            await provider.retrieve(RetrievalRequest(query="lamp"), context)
        return time.monotonic() - started

    took_s = asyncio.run(main())
    assert took_s < 10  # the retriever itself waits for twenty seconds
    assert all(name.startswith("qak-llamaindex") for name in retriever.threads)
    retriever.release.set()


def test_I01_native_aretrieve_is_awaited_and_cancelled_where_the_host_declares_it() -> None:
    class TrulyAsync(BaseRetriever):
        cancelled = False

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise AssertionError("only the asynchronous method is to be called")

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                TrulyAsync.cancelled = True
                raise
            return []

    provider = LlamaIndexProvider(TrulyAsync(), native_async=True)
    context = RetrievalContext(owner_id="alice", signal=CancelSignal(0.1))
    with pytest.raises(KnowledgeTimeout):
        asyncio.run(provider.retrieve(RetrievalRequest(query="lamp"), context))
    assert TrulyAsync.cancelled


@pytest.mark.parametrize("native_async", [False, True])
def test_I02_content_is_read_from_nodes_whose_text_property_raises(fixed: Any, find: Find, native_async: bool) -> None:
    nodes = [
        NodeWithScore(node=Node(text_resource=MediaResource(text="a node"), metadata={"title": "N"}), score=0.9),
        NodeWithScore(node=Document(text="a document", metadata={"title": "D"}), score=0.8),
        NodeWithScore(node=TextNode(text="a text node", metadata={"title": "T"}), score=0.7),
    ]
    with pytest.raises(ValueError, match="TextNode"):
        _ = nodes[0].text
    found = find(fixed(nodes), native_async=native_async)
    assert [result.content for result in found] == ["a node", "a document", "a text node"]  # and no metadata in it


def test_I03_image_and_media_nodes_without_text_are_dropped_and_harm_no_other(fixed: Any, find: Find) -> None:
    nodes = [
        NodeWithScore(node=ImageNode(image_url="https://example.com/a.png"), score=0.9),
        NodeWithScore(node=Node(image_resource=MediaResource(data=b"\x89PNG\r\n\x1a\n")), score=0.8),
        NodeWithScore(node=Node(), score=0.7),
        NodeWithScore(node=ImageNode(text="a caption", image_url="https://example.com/b.png"), score=0.6),
        NodeWithScore(node=TextNode(text=" \n"), score=0.5),
    ]
    assert [result.content for result in find(fixed(nodes))] == ["a caption"]


@pytest.mark.parametrize("top_k", [1, 2, 3, 8])
@pytest.mark.parametrize("native_async", [False, True])
@pytest.mark.parametrize("unusable", ["blank", "repeated", "other kind"])
def test_I03_top_k_is_exact_where_nodes_that_are_no_results_are_nearer(
    make_index: Callable[..., VectorStoreIndex], find: Find, unusable: str, native_async: bool, top_k: int
) -> None:
    near = [TextNode(text=" " if unusable == "blank" else "lamp", metadata={"kind": "x", "passage": "p"})] * 70
    nodes = [one.model_copy(update={"id_": f"near {place}"}) for place, one in enumerate(near)]
    nodes += [TextNode(text=f"lamp {n}", metadata={"kind": "y", "passage": f"p{n}"}) for n in range(8)]
    index = make_index(nodes)
    for one in nodes[:70]:  # nearest of all
        index._vector_store.data.embedding_dict[one.node_id] = toy_embedding("lamp")
    options: dict[str, Any] = {"id_key": "passage"} if unusable == "repeated" else {}
    # Without nested_filters, what LlamaIndex can't say in a flat list is applied to what was found.
    either = {"type": "or", "filters": [{"type": "eq", "key": "kind", "value": "y"}]}
    wanted = either if unusable == "other kind" else None
    for target in (index, index.as_retriever(similarity_top_k=1)):
        found = find(target, top_k=top_k, filters=wanted, native_async=native_async, **options)
        usable = [result.content for result in found if result.content.startswith("lamp ")]
        assert len(found) == top_k
        assert len(usable) == top_k - (unusable == "repeated")


def test_I03_no_more_is_asked_for_where_a_retriever_has_no_more_or_takes_no_number(
    make_index: Callable[..., VectorStoreIndex], fixed: Any, find: Find
) -> None:
    blank = [NodeWithScore(node=TextNode(text=" ")) for _ in range(9)]
    retriever = fixed(blank)
    assert find(retriever, top_k=3) == []
    assert len(retriever.calls) == 1
    asked: list[int] = []

    class Counting(SimpleVectorStore):
        def query(self, query: Any, **options: Any) -> Any:
            asked.append(query.similarity_top_k)
            return super().query(query, **options)

    index = make_index([TextNode(text=" "), TextNode(text="lamp")])
    index._vector_store.__class__ = Counting
    assert [result.content for result in find(index, top_k=3)] == ["lamp"]
    assert asked == [3]


def test_I03_what_was_found_is_kept_where_a_store_refuses_to_give_more(
    make_index: Callable[..., VectorStoreIndex], find: Find
) -> None:
    class Narrow(SimpleVectorStore):
        def query(self, query: Any, **options: Any) -> Any:
            if query.similarity_top_k > 10:
                raise ValueError("at most 10 results can be had")
            return super().query(query, **options)

    index = make_index([TextNode(text="lamp"), *(TextNode(text=" ") for _ in range(20))])
    index._vector_store.__class__ = Narrow
    assert [result.content for result in find(index, top_k=3)] == ["lamp"]


def test_I04_no_address_of_an_image_node_is_ever_fetched(
    fixed: Any, find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: connections.append(address))
    nodes = [
        NodeWithScore(node=ImageNode(text="caption", image_url="http://127.0.0.1:9/private.png"), score=0.9),
        NodeWithScore(
            node=Node(
                text_resource=MediaResource(text="words"), image_resource=MediaResource(url="http://127.0.0.1:9/b.png")
            )
        ),
    ]
    assert [result.content for result in find(fixed(nodes))] == ["caption", "words"]
    assert connections == []


def test_I05_missing_and_impossible_scores_are_absent_and_never_zero(fixed: Any, find: Find) -> None:
    scores = [0.5, None, math.nan, math.inf, 0.0]
    nodes = [NodeWithScore(node=TextNode(text=f"text {score}"), score=score) for score in scores]
    found = find(fixed(nodes), score="similarity")
    assert [result.score for result in found] == [0.5, None, None, None, 0.0]


def test_I05_distance_never_leaves_as_a_score(fixed: Any, find: Find) -> None:
    nodes = [NodeWithScore(node=TextNode(text="near"), score=0.1), NodeWithScore(node=TextNode(text="far"), score=0.9)]
    for kind in ("distance", "none"):
        found = find(fixed(nodes), score=kind)
        assert [(result.content, result.score) for result in found] == [("near", None), ("far", None)]


def bm25(node: Callable[..., TextNode], **options: Any) -> BM25Retriever:
    texts = ["lamp one", "lamp two", "lamp three", "chair four", "chair five"]
    nodes = [node(text, owner="alice" if place < 2 else "bob") for place, text in enumerate(texts)]
    return BM25Retriever.from_defaults(nodes=nodes, **options)


def test_I06_bm25_filter_lets_no_other_owner_through(node: Callable[..., TextNode], find: Find) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="owner", value="alice")])
    retriever = bm25(node, filters=filters, similarity_top_k=4)
    leaked = [found.node.metadata["owner"] for found in retriever.retrieve("lamp")]
    assert leaked.count("bob") == 2  # LlamaIndex itself returns them, with a score of zero
    found = find(retriever, owner_id="alice", owner_key="owner")
    assert {result.content for result in found} == {"lamp one", "lamp two"}
    found = find(retriever)  # without an owner_key there is nothing to check, yet what was weighed out stays out
    assert {result.content for result in found} == {"lamp one", "lamp two"}


def test_I06_bm25_searches_only_what_a_request_may_see(node: Callable[..., TextNode], find: Find) -> None:
    retriever = bm25(node, similarity_top_k=1)
    assert [result.content for result in find(retriever, owner_id="bob", owner_key="owner")] == ["lamp three"]
    assert find(retriever, owner_id="carol", owner_key="owner") == []
    assert retriever.corpus_weight_mask is None
    assert retriever.similarity_top_k == 1


def test_I06_bm25_that_was_saved_and_loaded_keeps_owners_apart(
    node: Callable[..., TextNode], find: Find, tmp_path: Path
) -> None:
    bm25(node).persist(str(tmp_path))
    loaded = BM25Retriever.from_persist_dir(str(tmp_path))
    found = find(loaded, owner_id="alice", owner_key="owner", top_k=4)
    assert {result.content for result in found} == {"lamp one", "lamp two"}


def test_I07_owners_are_kept_apart_by_metadata_where_doc_ids_would_be_ignored(
    node: Callable[..., TextNode], make_index: Callable[..., VectorStoreIndex], find: Find
) -> None:
    nodes = [node("lamp of alice", owner="alice"), node("lamp of bob", owner="bob")]
    for one in nodes:
        one.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=one.metadata["owner"])
    index = make_index(nodes)
    assert len(index.as_retriever(doc_ids=["alice"]).retrieve("lamp")) == 2
    assert [result.content for result in find(index, owner_id="alice", owner_key="owner")] == ["lamp of alice"]


@pytest.mark.parametrize("native_async", [False, True])
def test_I08_no_query_bundle_is_shared_between_bases_attempts_and_requests(native_async: bool) -> None:
    class Embedding(BaseRetriever):
        """Keeps the embedding in the bundle, as VectorIndexRetriever does; another model's would be used for it."""

        similarity_top_k = 2

        def __init__(self, seen: list[Any]) -> None:
            self.seen = seen
            super().__init__()

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            self.seen.append(query_bundle.embedding)
            query_bundle.embedding = [1.0]
            return [NodeWithScore(node=TextNode(text=" ")) for _ in range(self.similarity_top_k)]

    lamps: list[Any] = []
    chairs: list[Any] = []
    bases = {"lamps": Embedding(lamps), "chairs": Embedding(chairs)}
    provider = LlamaIndexProvider(knowledge_bases=bases, max_workers=1, native_async=native_async)
    for _ in range(2):
        asyncio.run(provider.retrieve(RetrievalRequest(query="lamp"), ALICE))
    assert lamps == chairs == [None] * 6  # for each of two requests, three attempts to find what is not blank


@pytest.mark.parametrize("blank", ["", " \n", "\u3000"])
def test_I09_empty_query_never_reaches_a_retriever(
    make_index: Callable[..., VectorStoreIndex], fixed: Any, blank: str
) -> None:
    with pytest.raises(TypeError):
        make_index([TextNode(text="lamp")]).as_retriever().retrieve("")
    retriever = fixed([])

    async def main() -> None:
        async with KnowledgeRuntime(LlamaIndexProvider(retriever)) as runtime:
            with pytest.raises(KnowledgeQueryRequired):
                await runtime.search(blank, owner_id="alice")
            await runtime.search(f"{blank}lamp{blank}", owner_id="alice")

    asyncio.run(main())
    assert [bundle.query_str.strip() for bundle in retriever.calls] == ["lamp"]


def test_I10_concurrent_requests_share_no_top_k_and_no_filter(
    node: Callable[..., TextNode], make_index: Callable[..., VectorStoreIndex]
) -> None:
    nodes = [node(f"lamp {n} of {owner}", owner=owner) for n in range(8) for owner in ("alice", "bob")]
    filters = MetadataFilters(filters=[MetadataFilter(key="owner", value="", operator="!=")])
    retriever = make_index(nodes).as_retriever(similarity_top_k=3, filters=filters)
    before = copy.copy(vars(retriever))
    provider = LlamaIndexProvider(retriever, owner_key="owner")

    async def ask(owner_id: str, top_k: int) -> bool:
        request = RetrievalRequest(query="lamp", top_k=top_k)
        found = (await provider.retrieve(request, RetrievalContext(owner_id=owner_id))).results
        return len(found) == top_k and all(result.content.endswith(owner_id) for result in found)

    async def main() -> list[bool]:
        calls = [ask(owner_id, top_k) for _ in range(5) for owner_id in ("alice", "bob") for top_k in range(1, 9)]
        return await asyncio.gather(*calls)

    assert all(asyncio.run(main()))
    assert vars(retriever) == before
    assert filters.filters == [MetadataFilter(key="owner", value="", operator="!=")]


@pytest.mark.parametrize("host_top_k", [0, 1, 50])
def test_I11_top_k_is_exact_whatever_the_host_gave_its_retriever(
    make_index: Callable[..., VectorStoreIndex], find: Find, host_top_k: int
) -> None:
    index = make_index([TextNode(text=f"lamp {n}") for n in range(10)])
    retriever = index.as_retriever(similarity_top_k=host_top_k)
    for top_k in (1, 3, 8):
        assert len(find(retriever, top_k=top_k)) == top_k
        assert len(find(index, top_k=top_k)) == top_k


def test_I11_top_k_cuts_what_a_retriever_without_one_returns(fixed: Any, find: Find) -> None:
    nodes = [NodeWithScore(node=TextNode(text=f"lamp {n}"), score=0.1 * n) for n in range(20)]
    found = find(fixed(nodes), top_k=3, score="similarity")
    assert [result.content for result in found] == ["lamp 0", "lamp 1", "lamp 2"]  # in the vendor's order


@pytest.mark.parametrize("returned", [None, 7, "text", [None], ["text"], [TextNode(text="bare")]])
@pytest.mark.parametrize("native_async", [False, True])
def test_I12_retriever_that_returns_something_else_is_unavailable(
    fixed: Any, find: Find, returned: Any, native_async: bool
) -> None:
    with pytest.raises(KnowledgeUnavailable):
        find(fixed(returned), native_async=native_async)


@pytest.mark.parametrize("returned", [None, 7, "text", b"bytes", {"a": 1}])
def test_I12_answer_of_a_lookalike_retriever_that_is_no_sequence_is_invalid(find: Find, returned: Any) -> None:
    class Lookalike:
        def retrieve(self, query: str) -> Any:
            return returned

    with pytest.raises(KnowledgeInvalidResponse):
        find(Lookalike())


def test_I13_provider_of_a_lookalike_retriever_needs_no_import_of_llamaindex() -> None:
    program = """
import asyncio, sys
from qak_adapter_llamaindex import LlamaIndexProvider
from qak_core import RetrievalContext, RetrievalRequest
class Node:
    node_id, metadata = "n1", {"title": "Lamps", "page_label": "3"}
    def get_content(self, metadata_mode):
        return "a lamp"
class Lookalike:
    def retrieve(self, query):
        return [Node()]
provider = LlamaIndexProvider(Lookalike())
answer = asyncio.run(provider.retrieve(RetrievalRequest(query="lamp"), RetrievalContext(owner_id="alice")))
result = answer.results[0]
print(result.id, result.content, result.source.title, result.source.locator)
print([name for name in sys.modules if name.startswith(("llama", "numpy", "nltk", "PIL", "sqlalchemy"))])
"""
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["n1 a lamp Lamps page 3", "[]"]


def test_I14_nodes_made_without_a_splitter_can_be_found_and_nltk_is_never_asked_for() -> None:
    program = """
import asyncio, sys
sys.modules["nltk"] = None  # as where it, or its data, is missing
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from qak_adapter_llamaindex import LlamaIndexProvider, as_retriever
from qak_core import RetrievalContext, RetrievalRequest
try:
    SentenceSplitter(chunk_size=20, chunk_overlap=0).split_text("A lamp. " * 50)
except ImportError as error:
    print((error.name or "").partition(".")[0])
index = VectorStoreIndex([TextNode(text="lamp", metadata={"owner": "a"})], embed_model=MockEmbedding(embed_dim=8))
provider = LlamaIndexProvider(index, owner_key="owner", score="similarity")
context = RetrievalContext(owner_id="a")
answer = asyncio.run(provider.retrieve(RetrievalRequest(query="lamp"), context))
print([result.content for result in answer.results])
retriever = as_retriever(provider, context=context)
print([found.text for found in retriever.retrieve("lamp")])
retriever.close()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["nltk", "['lamp']", "['lamp']"]


def test_I15_internal_metadata_and_missing_document_ids_stay_inside(fixed: Any, find: Find) -> None:
    metadata = {
        "_node_content": '{"text": "the whole node again"}',
        "_node_type": "TextNode",
        "document_id": "None",
        "doc_id": "None",
        "ref_doc_id": "None",
        "embedding": [0.1, 0.2],
        "tags": ["a", "b"],
        "window": "sentences around",
        "department": "sales",
    }
    (result,) = find(fixed([NodeWithScore(node=TextNode(text="lamp", metadata=metadata), score=1.0)]))
    assert result.metadata == {"department": "sales"}
    assert result.source is None


def test_I15_document_ids_are_read_from_the_node_and_else_from_metadata(fixed: Any, find: Find) -> None:
    related = RelatedNodeInfo(node_id="doc-7")
    nodes = [
        TextNode(text="related", relationships={NodeRelationship.SOURCE: related}, metadata={"doc_id": "None"}),
        TextNode(text="listed", relationships={NodeRelationship.SOURCE: [related, related]}),
        TextNode(text="metadata", metadata={"document_id": "doc-9"}),
    ]
    with pytest.raises(ValueError, match="Source object"):
        _ = nodes[1].ref_doc_id
    found = find(fixed([NodeWithScore(node=node) for node in nodes]))
    assert [result.source and result.source.id for result in found] == ["doc-7", None, "doc-9"]


# Reports of users, by their number in the list.


def test_R19_bm25_with_five_nodes_of_which_two_match_returns_two(node: Callable[..., TextNode], find: Find) -> None:
    retriever = bm25(node)
    wanted = {"type": "eq", "key": "owner", "value": "alice"}
    found = find(retriever, top_k=4, filters=wanted, score="similarity")
    assert {result.content for result in found} == {"lamp one", "lamp two"}
    assert all(result.score > 0 for result in found)


def test_R21_result_without_a_score_stays_in_its_place(fixed: Any, find: Find) -> None:
    nodes = [NodeWithScore(node=TextNode(text="keyword")), NodeWithScore(node=TextNode(text="vector"), score=0.9)]
    found = find(fixed(nodes), score="similarity")
    assert [(result.content, result.score) for result in found] == [("keyword", None), ("vector", 0.9)]


def test_R23_node_without_a_text_is_dropped_and_harms_no_other(fixed: Any, find: Find) -> None:
    without = TextNode.model_construct(id_="n1", text=None, metadata={})  # as a store filled by others may build it
    nodes = [NodeWithScore(node=without, score=0.9), NodeWithScore(node=TextNode(text="lamp"), score=0.8)]
    assert [result.content for result in find(fixed(nodes))] == ["lamp"]


def test_R25_distances_in_ascending_order_keep_their_order(
    make_index: Callable[..., VectorStoreIndex], find: Find
) -> None:
    class Ascending(SimpleVectorStore):
        """Gives distances under the name of similarities, as PGVector did."""

        def query(self, query: Any, **options: Any) -> Any:
            found = super().query(query, **options)
            found.similarities = [1 - score for score in found.similarities]
            return found

    index = make_index([TextNode(text="lamp"), TextNode(text="lamp shade of rattan"), TextNode(text="chair")])
    index._vector_store.__class__ = Ascending
    for declared in ("distance", "similarity"):  # the second in error, which the order gives away
        found = find(index, score=declared)
        assert [result.content for result in found] == ["lamp", "lamp shade of rattan", "chair"]
        assert {result.score for result in found} == {None}


def test_R27_each_bm25_score_belongs_to_its_node(find: Find) -> None:
    nodes = [
        TextNode(id_="b", text="chair"),
        TextNode(id_="a", text="lamp lamp lamp"),
        TextNode(id_="c", text="lamp x y"),
    ]
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    expected = {found.node.node_id: found.score for found in retriever.retrieve("lamp") if found.score}
    assert {result.id: result.score for result in find(retriever, score="similarity")} == expected
    assert list(expected) == ["a", "c"]


def test_index_node_that_leads_to_nothing_retrievable_is_unavailable(fixed: Any, find: Find) -> None:
    dead_end = IndexNode(text="table", index_id="t1", obj=object())
    assert dead_end.get_type() == ObjectType.INDEX
    with pytest.raises(KnowledgeUnavailable) as caught:
        find(fixed([NodeWithScore(node=dead_end, score=0.4)]))
    assert not isinstance(caught.value, KnowledgeFailed)
