"""What the LlamaIndex adapter adds to a call, what blocking retrievers do to the loop, and what importing it costs."""

import asyncio
import time

from adapter_figures import BLOCKED_S, REQUEST, WORKERS, blocking_retrievals, import_of, overhead
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from measure import Figure

from qak_adapter_llamaindex import LlamaIndexProvider


def figures() -> list[Figure]:
    retriever = Prompt()
    return [
        overhead(
            "LlamaIndex: a retriever of 5 nodes, in a thread",
            LlamaIndexProvider(retriever, score="similarity"),
            lambda: asyncio.to_thread(retriever.retrieve, REQUEST.query),
        ),
        overhead(
            "LlamaIndex: a retriever of 5 nodes, on the loop",
            LlamaIndexProvider(retriever, score="similarity", native_async=True),
            lambda: retriever.aretrieve(REQUEST.query),
        ),
        *blocking_retrievals("LlamaIndex", lambda: LlamaIndexProvider(Blocking(), max_workers=WORKERS)),
        import_of("qak_adapter_llamaindex"),
    ]


class Prompt(BaseRetriever):
    """Has its five nodes ready, so that little but the adapter is measured."""

    def __init__(self) -> None:
        metadata = {"title": "Handbook", "url": "https://docs.example.com/handbook", "page_label": "3", "team": "bench"}
        self.nodes = [NodeWithScore(node=TextNode(text="word " * 100, metadata=metadata), score=0.5) for _ in range(5)]
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


class Blocking(BaseRetriever):
    """As slow as a remote store, and as deaf."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        time.sleep(BLOCKED_S)
        return [NodeWithScore(node=TextNode(text="late"), score=1.0)]
