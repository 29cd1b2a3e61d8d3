"""What the LangChain adapter adds to a call, what blocking retrievers do to the loop, and what importing it costs."""

import asyncio
import math
import subprocess
import sys
import time
from statistics import median
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from measure import Figure, paired

from qak_adapter_langchain import LangChainProvider
from qak_core import RetrievalContext, RetrievalRequest

CALLS, BLOCKING_S, WORKERS = 50, 0.05, 8
DOCUMENTS = [
    Document(
        id=f"d{n}",
        page_content=f"passage {n} " + "word " * 100,
        metadata={"source": f"https://docs.example.com/{n}", "page": n, "department": "engineering", "year": 2026},
    )
    for n in range(5)
]
REQUEST, CONTEXT = RetrievalRequest(query="anything"), RetrievalContext(owner_id="bench")


class Blocking(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        time.sleep(BLOCKING_S)
        return DOCUMENTS


async def native(query: str) -> list[Document]:
    return DOCUMENTS


def figures() -> list[Figure]:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=256))
    store.add_documents([Document(id=f"x{n}", page_content=f"passage {n}") for n in range(200)])
    retriever = RunnableLambda(native)
    return [
        overhead("a native async retriever", retriever, lambda: retriever.ainvoke("anything")),
        overhead("a vector store of 200", store, lambda: asyncio.to_thread(store.similarity_search, "anything", k=5)),
        *blocking_retrievals(),
        import_of_the_adapter(),
    ]


def overhead(name: str, vendor: Any, bare: Any) -> Figure:
    async def run() -> tuple[float, float]:
        provider = LangChainProvider(vendor)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(200):
            for call, taken in zip((lambda: provider.retrieve(REQUEST, CONTEXT), bare), times, strict=True):
                start = time.perf_counter()
                await call()
                taken.append(time.perf_counter() - start)
        await provider.close()
        return median(times[0]), median(times[1])

    ours, alone = asyncio.run(run())
    allowed_s = max(0.1 * alone, 0.0003)
    return Figure(
        name=f"LangChain: {name}",
        seconds=ours,
        against="the bare call, in a thread if it blocks",
        against_seconds=alone,
        limit=f"{allowed_s * 1000:.2f} ms more",
        within=ours - alone <= allowed_s,
    )


def blocking_retrievals() -> list[Figure]:
    async def run() -> tuple[float, float]:
        provider = LangChainProvider(Blocking(), max_workers=WORKERS)
        gaps: list[float] = []

        async def beat() -> None:
            while True:
                start = time.perf_counter()
                await asyncio.sleep(0.005)
                gaps.append(time.perf_counter() - start)

        heart = asyncio.ensure_future(beat())
        start = time.perf_counter()
        await asyncio.gather(*(provider.retrieve(REQUEST, CONTEXT) for _ in range(CALLS)))
        wall = time.perf_counter() - start
        heart.cancel()
        await provider.close()
        return wall, max(gaps)

    wall, gap = asyncio.run(run())
    ideal = math.ceil(CALLS / WORKERS) * BLOCKING_S
    what = f"LangChain: {CALLS} retrievals that block {BLOCKING_S * 1000:.0f} ms, {WORKERS} threads"
    return [
        Figure(
            name=what,
            seconds=wall,
            against="the threads' own time",
            against_seconds=ideal,
            limit="1.25 x",
            within=wall <= 1.25 * ideal,
        ),
        Figure(name=f"{what}: longest gap of the loop", seconds=gap, limit="50 ms", within=gap < 0.05),
    ]


def import_of_the_adapter() -> Figure:
    ours, core = paired(
        lambda: python("import qak_core, qak_adapter_langchain"), lambda: python("import qak_core"), rounds=15
    )
    return Figure(
        name="python -c 'import qak_core, qak_adapter_langchain'",
        seconds=ours,
        against="python -c 'import qak_core'",
        against_seconds=core,
        limit="25 ms more",
        within=ours - core <= 0.025,
    )


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
