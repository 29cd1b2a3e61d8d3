"""What the LangChain adapter adds to a call, what blocking retrievers do to the loop, and what importing it costs."""

import asyncio
import time
from typing import Any

from adapter_figures import BLOCKED_S, REQUEST, WORKERS, blocking_retrievals, import_of, overhead
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from measure import Figure

from qak_adapter_langchain import LangChainProvider

DOCUMENTS = [
    Document(
        id=f"d{n}",
        page_content=f"passage {n} " + "word " * 100,
        metadata={"source": f"https://docs.example.com/{n}", "page": n, "department": "engineering", "year": 2026},
    )
    for n in range(5)
]


class Blocking(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        time.sleep(BLOCKED_S)
        return DOCUMENTS


async def native(query: str) -> list[Document]:
    return DOCUMENTS


def figures() -> list[Figure]:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=256))
    store.add_documents([Document(id=f"x{n}", page_content=f"passage {n}") for n in range(200)])
    retriever = RunnableLambda(native)
    return [
        overhead(
            "LangChain: a native async retriever",
            LangChainProvider(retriever),
            lambda: retriever.ainvoke(REQUEST.query),
        ),
        overhead(
            "LangChain: a vector store of 200, in a thread",
            LangChainProvider(store),
            lambda: asyncio.to_thread(store.similarity_search, REQUEST.query, k=5),
        ),
        *blocking_retrievals("LangChain", lambda: LangChainProvider(Blocking(), max_workers=WORKERS)),
        import_of("qak_adapter_langchain"),
    ]
