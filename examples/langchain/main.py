"""A LangChain vector store behind a voice agent, and back in a LangChain chain: no key, no network.

python main.py
"""

import asyncio
import hashlib
import re

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from qak_adapter_langchain import LangChainProvider, as_retriever
from qak_core import KnowledgeRuntime, KnowledgeTool, RetrievalContext

DOCUMENTS = [
    Document(
        id="releases-1",
        page_content="A production release needs two approvers, one of them the release captain.",
        metadata={"owner": "alice", "team": "engineering", "source": "https://docs.example.com/releases", "page": 0},
    ),
    Document(
        id="travel-1",
        page_content="Travel expenses are refunded when receipts arrive within thirty days.",
        metadata={"owner": "alice", "team": "finance", "source": "/srv/handbook/travel.pdf", "page": 2},
    ),
    Document(
        id="salaries-1",
        page_content="Salary bands are reviewed by two approvers of the board.",
        metadata={"owner": "bob", "team": "finance", "title": "Salary bands"},
    ),
]


class WordEmbeddings(Embeddings):
    """Counts words at places that their hash gives; good enough to find what shares words with a question."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * 256
        for word in re.findall(r"\w+", text.lower()):
            vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
        return vector if any(vector) else [1.0] * 256


async def main() -> None:
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(DOCUMENTS)
    provider = LangChainProvider(store, key="handbook", label="Handbook", score="similarity", owner_key="owner")
    async with KnowledgeRuntime(provider) as runtime:
        print("What the model's tool returns for Alice, who never sees what is Bob's:")
        tool = KnowledgeTool(runtime)
        outcome = await tool.call({"query": "How many approvers?", "top_k": 2}, owner_id="alice")
        for result in outcome["results"]:
            print(f"  {result['id']} ({result['score']:.2f}): {result['content']} {result['source']}")
        print("  citations:", outcome["citations"])

        print("With a filter of the host program:")
        finance = {"type": "eq", "key": "team", "value": "finance"}
        answer = await runtime.search("How many approvers?", owner_id="alice", filters=finance)
        print("  ", [result.id for result in answer.results])

        print("And as a LangChain retriever, for a chain or an agent:")
        retriever = as_retriever(runtime, context=RetrievalContext(owner_id="alice"), k=1)
        for document in await retriever.ainvoke("receipts for travel expenses"):
            print("  ", document.page_content, document.metadata["title"], document.metadata["locator"])


if __name__ == "__main__":
    asyncio.run(main())
