"""What the Haystack adapter adds to a component's call and to an import, and how it stands blocking retrievers."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any

from measure import Figure, paired

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")  # Haystack reads it when it is imported

from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from qak_adapter_haystack import HaystackProvider
from qak_core import RetrievalContext, RetrievalRequest

BLOCKING_S = 0.05
WORKERS = 8
CALLS = 50


def figures() -> list[Figure]:
    return [component_overhead(), pipeline_overhead(), *blocking_retrievals(), import_of_the_adapter()]


def component_overhead() -> Figure:
    retriever = InMemoryBM25Retriever(store())
    provider = HaystackProvider(retriever, score="similarity", owner_key="owner")
    filters = {"field": "meta.owner", "operator": "==", "value": "bench"}
    return overhead("native component", provider, lambda: retriever.run_async(query="lamp", top_k=5, filters=filters))


def pipeline_overhead() -> Figure:
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store()))
    provider = HaystackProvider(pipeline, score="similarity", owner_key="owner")
    filters = {"field": "meta.owner", "operator": "==", "value": "bench"}
    inputs = {"query": "lamp", "top_k": 5, "filters": filters}
    return overhead("native pipeline", provider, lambda: pipeline.run_async({"words": dict(inputs)}))


def overhead(name: str, provider: HaystackProvider, bare: Callable[[], Awaitable[Any]]) -> Figure:
    request, context = RetrievalRequest(query="lamp"), RetrievalContext(owner_id="bench")

    async def measure() -> tuple[float, float]:
        assert len((await provider.retrieve(request, context)).results) == 5
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(40):
            for call, taken in ((lambda: provider.retrieve(request, context), times[0]), (bare, times[1])):
                start = time.perf_counter()
                for _ in range(10):
                    await call()
                taken.append((time.perf_counter() - start) / 10)
        return min(times[0]), min(times[1])  # a busy machine only ever adds, and adds more where threads are woken

    ours, vendors = asyncio.run(measure())
    return Figure(
        name=f"Haystack adapter around a {name}",
        seconds=ours,
        against="the bare call",
        against_seconds=vendors,
        limit="10 % or 0.3 ms more",
        within=ours - vendors <= max(0.1 * vendors, 0.0003),
    )


def blocking_retrievals() -> list[Figure]:
    @component
    class Blocking:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            time.sleep(BLOCKING_S)
            return {"documents": [Document(id="a", content="text")]}

    async def measure() -> tuple[float, float]:
        provider = HaystackProvider(Blocking(), max_workers=WORKERS)
        request, context = RetrievalRequest(query="lamp"), RetrievalContext(owner_id="bench")
        await provider.retrieve(request, context)
        gap, last = 0.0, time.perf_counter()

        async def beat() -> None:
            nonlocal gap, last
            while True:
                await asyncio.sleep(0.005)
                now = time.perf_counter()
                gap, last = max(gap, now - last), now

        heart = asyncio.ensure_future(beat())
        start = time.perf_counter()
        await asyncio.gather(*(provider.retrieve(request, context) for _ in range(CALLS)))
        taken = time.perf_counter() - start
        heart.cancel()
        await provider.close()
        return taken, gap

    runs = [asyncio.run(measure()) for _ in range(3)]
    taken, gap = (min(column) for column in zip(*runs, strict=True))
    ideal = ceil(CALLS / WORKERS) * BLOCKING_S
    return [
        Figure(
            name=f"{CALLS} retrievals at once of a component that blocks {BLOCKING_S * 1000:.0f} ms",
            seconds=taken,
            against=f"{ceil(CALLS / WORKERS)} rounds of {WORKERS} threads",
            against_seconds=ideal,
            limit="1.2 x",
            within=taken <= 1.2 * ideal,
        ),
        Figure(name="longest gap of the event loop meanwhile", seconds=gap, limit="50 ms", within=gap < 0.05),
    ]


def import_of_the_adapter() -> Figure:
    ours, core = paired(
        lambda: python("import qak_core, qak_adapter_haystack"), lambda: python("import qak_core"), rounds=15
    )
    return Figure(
        name="python -c 'import qak_core, qak_adapter_haystack'",
        seconds=ours,
        against="python -c 'import qak_core'",
        against_seconds=core,
        limit="25 ms more",
        within=ours - core <= 0.025,
    )


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


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
