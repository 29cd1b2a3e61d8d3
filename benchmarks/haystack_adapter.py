"""What the Haystack adapter adds to a component's call and to an import, and how it stands blocking retrievers."""

import os
import time
from typing import Any

from adapter_figures import BLOCKED_S, REQUEST, WORKERS, blocking_retrievals, import_of, overhead
from measure import Figure

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")  # Haystack reads it when it is imported

from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from qak_adapter_haystack import HaystackProvider


def figures() -> list[Figure]:
    retriever = InMemoryBM25Retriever(store())
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store()))
    inputs: dict[str, Any] = {
        "query": REQUEST.query,
        "top_k": 5,
        "filters": {"field": "meta.owner", "operator": "==", "value": "bench"},
    }
    return [
        overhead(
            "Haystack: a native component",
            HaystackProvider(retriever, score="similarity", owner_key="owner"),
            lambda: retriever.run_async(**inputs),
        ),
        overhead(
            "Haystack: a native pipeline",
            HaystackProvider(pipeline, score="similarity", owner_key="owner"),
            lambda: pipeline.run_async({"words": dict(inputs)}),
        ),
        *blocking_retrievals("Haystack", lambda: HaystackProvider(Blocking(), max_workers=WORKERS)),
        import_of("qak_adapter_haystack"),
    ]


@component
class Blocking:
    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        time.sleep(BLOCKED_S)
        return {"documents": [Document(id="a", content="text")]}


def store() -> InMemoryDocumentStore:
    made = InMemoryDocumentStore(shared=False)
    words = "lamp red green blue shade bulb light switch".split()
    made.write_documents(
        [
            Document(content=f"Lamp {n}: " + " ".join(words[n % 8 :] * 20), meta={"owner": "bench", "title": str(n)})
            for n in range(50)
        ]
    )
    return made
