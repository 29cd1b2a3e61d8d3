"""A hybrid Haystack pipeline behind protocol 1, and back into a Haystack pipeline; offline, no key.

Run it from anywhere: python examples/haystack/main.py
"""

import asyncio
import hashlib
import math
import os
from itertools import pairwise
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")  # Haystack reads it when it is imported

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from qak_adapter_haystack import HaystackProvider, as_retriever
from qak_core import KnowledgeRuntime, RetrievalContext

DOCUMENTS = (
    ("alice", "发布手册", "https://docs.example.com/releases", "发布需要两位审核人批准，其中一位是发布负责人。"),
    ("alice", "Release captain", "https://docs.example.com/captain", "The release captain approves at night alone."),
    ("alice", "Fees", None, "The annual fee is refunded within 14 days."),
    ("bob", "Salaries", "https://docs.example.com/salaries", "Release engineers get two salaries as a bonus."),
)


def embed(text: str) -> list[float]:
    """A toy: pairs of characters, hashed into places of a vector. It knows nothing of meaning."""
    vector = [0.0] * 256
    for pair in pairwise(text.lower()):
        vector[hashlib.blake2b("".join(pair).encode(), digest_size=1).digest()[0]] += 1.0
    length = math.hypot(*vector) or 1.0
    return [place / length for place in vector]


@component
class ToyTextEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": embed(text)}


def hybrid_pipeline() -> Pipeline:
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(content=text, embedding=embed(text), meta={"owner": owner, "title": title, "url": url})
            for owner, title, url, text in DOCUMENTS
        ]
    )
    pipeline = Pipeline()
    pipeline.add_component("embedder", ToyTextEmbedder())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("embedder.embedding", "vectors.query_embedding")
    pipeline.connect("vectors", "joiner")
    pipeline.connect("words", "joiner")
    return pipeline


def prompt_pipeline(runtime: KnowledgeRuntime, context: RetrievalContext) -> Pipeline:
    """A Haystack pipeline that asks any provider of protocol 1."""
    pipeline = Pipeline()
    pipeline.add_component("knowledge", as_retriever(runtime, context=context))
    template = "{% for document in documents %}[{{ document.meta.citation.id }}] {{ document.content }}\n{% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(template + "{{ question }}", required_variables="*"))
    pipeline.connect("knowledge.documents", "prompt.documents")
    return pipeline


async def main() -> None:
    provider = HaystackProvider(hybrid_pipeline(), key="team", label="Team documents", owner_key="owner")
    async with KnowledgeRuntime(provider) as runtime:
        for owner in ("alice", "bob"):
            answer = await runtime.search("Who approves a release at night?", owner_id=owner, top_k=2)
            print(f"--- {owner}")
            for result in answer.results:
                print(result.citation_id or "-", result.source and result.source.title, "|", result.content)
        print("--- prompt")
        pipeline = prompt_pipeline(runtime, RetrievalContext(owner_id="alice"))
        question = "发布需要谁批准？"
        inputs = {"knowledge": {"query": question, "top_k": 1}, "prompt": {"question": question}}
        print((await pipeline.run_async(inputs))["prompt"]["prompt"])


asyncio.run(main())
