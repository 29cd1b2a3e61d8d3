"""Ask a LlamaIndex index through the knowledge boundary, and the boundary from LlamaIndex: no key, no network.

    python main.py

The embedding model hashes words and pairs of characters, which is enough to find a passage by its wording. Put your own
index in its place; nothing else changes.
"""

import asyncio
import hashlib
import math
import re
from pathlib import Path
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

from qak_adapter_llamaindex import LlamaIndexProvider, as_retriever
from qak_core import KnowledgeRuntime, RetrievalContext

DOCUMENTS = Path(__file__).resolve().parents[1] / "handbook" / "documents"
PAGES = {"发布手册.md": "https://docs.example.com/releases", "code-review.md": "https://docs.example.com/code-review"}
QUESTIONS = ("发布需要几位审核人批准？", "How soon does a reviewer reply?")
DIMENSIONS = 512


class WordEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]{2}|(?<=[\u4e00-\u9fff])[\u4e00-\u9fff]", text.lower()):
            vector[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % DIMENSIONS] += 1.0
        length = math.hypot(*vector) or 1.0
        return [value / length for value in vector]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def sections(file: Path) -> list[TextNode]:
    """Cut a Markdown file at its headings."""
    nodes: list[TextNode] = []
    for part in re.split(r"^(?=#+ )", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        heading = part.partition("\n")[0].strip("# ")
        metadata = {"team": "platform", "file_name": file.name, "header_path": f"/{heading}/"}
        if file.name in PAGES:
            metadata["url"] = PAGES[file.name]
        if part.strip():
            nodes.append(TextNode(id_=f"{file.stem}#{len(nodes)}", text=part, metadata=metadata))
    return nodes


def index() -> VectorStoreIndex:
    nodes = [node for file in sorted(DOCUMENTS.glob("*.md")) for node in sections(file)]
    for node in nodes:
        node.excluded_embed_metadata_keys = list(node.metadata)
    return VectorStoreIndex(nodes, embed_model=WordEmbedding(model_name="words"))


async def main() -> None:
    # Whoever asks sees the nodes of their own team; the owner comes from the host, never from the model.
    provider = LlamaIndexProvider(index(), label="Handbook", score="similarity", owner_key="team")
    async with KnowledgeRuntime(provider) as runtime:
        for question in QUESTIONS:
            answer = await runtime.search(question, owner_id="platform", turn_id=question, top_k=2)
            print(f"--- {question}")
            for result in answer.results:
                source: Any = result.source
                print(f"{result.score:.2f} {source.title}, {source.locator}: {' '.join(result.content.split())[:80]}")
            print(f"cited: {[(citation.id, citation.url) for citation in answer.citations]}")
        stranger = await runtime.search(QUESTIONS[0], owner_id="marketing")
        print(f"--- of another team: {stranger.status}")

        retriever = as_retriever(runtime, context=RetrievalContext(owner_id="platform"), top_k=1)
        (found,) = await retriever.aretrieve(QUESTIONS[0])
        print(f"--- as a LlamaIndex retriever: {found.node.node_id} {found.metadata['citation_id']}")


if __name__ == "__main__":
    asyncio.run(main())
