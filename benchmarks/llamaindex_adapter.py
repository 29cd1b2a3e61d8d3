"""What the LlamaIndex adapter adds to a retrieval, how it takes many at once, and what its import costs."""

import asyncio
import math
import subprocess
import sys
import time

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from measure import Figure, paired, percentile

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_core import RetrievalContext, RetrievalRequest

WORKERS = 8
CALLS = 50
BLOCKED_S = 0.05

CONTEXT = RetrievalContext(owner_id="bench")
REQUEST = RetrievalRequest(query="anything", top_k=5)


def figures() -> list[Figure]:
    return [
        around_a_retriever(native_async=False),
        around_a_retriever(native_async=True),
        *many_blocking_retrievals(),
        import_of_the_adapter(),
    ]


class Prompt(BaseRetriever):
    """Has its five nodes ready, so that little but the adapter is measured."""

    def __init__(self) -> None:
        metadata = {"title": "Handbook", "url": "https://docs.example.com/handbook", "page_label": "3", "team": "bench"}
        self.nodes = [NodeWithScore(node=TextNode(text="word " * 100, metadata=metadata), score=0.5) for _ in range(5)]
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


def around_a_retriever(*, native_async: bool) -> Figure:
    async def measure() -> tuple[float, float]:
        retriever = Prompt()
        provider = LlamaIndexProvider(retriever, score="similarity", native_async=native_async)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(300):
            start = time.perf_counter()
            await provider.retrieve(REQUEST, CONTEXT)
            times[0].append(time.perf_counter() - start)
            start = time.perf_counter()
            if native_async:
                await retriever.aretrieve(REQUEST.query)
            else:  # as every asyncio program has to call what blocks
                await asyncio.to_thread(retriever.retrieve, REQUEST.query)
            times[1].append(time.perf_counter() - start)
        await provider.close()
        return percentile(times[0], 10), percentile(times[1], 10)  # a busy machine is not what is measured

    ours, bare = asyncio.run(measure())
    return Figure(
        name=f"LlamaIndex provider around a retriever, 5 nodes, {'on the loop' if native_async else 'in a thread'}",
        seconds=ours,
        against="the bare retriever there",
        against_seconds=bare,
        limit="10 % or 0.3 ms more",
        within=ours - bare <= max(0.1 * bare, 0.0003),
    )


class Blocking(BaseRetriever):
    """As slow as a remote store, and as deaf."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        time.sleep(BLOCKED_S)
        return [NodeWithScore(node=TextNode(text="late"), score=1.0)]


def many_blocking_retrievals() -> list[Figure]:
    async def measure() -> tuple[float, float]:
        provider = LlamaIndexProvider(Blocking(), max_workers=WORKERS)
        gaps: list[float] = []
        watching = asyncio.ensure_future(watch(gaps))
        await asyncio.sleep(0)
        start = time.perf_counter()
        await asyncio.gather(*(provider.retrieve(REQUEST, CONTEXT) for _ in range(CALLS)))
        wall = time.perf_counter() - start
        watching.cancel()
        await provider.close()
        return wall, max(gaps)

    wall, gap = asyncio.run(measure())
    ideal = math.ceil(CALLS / WORKERS) * BLOCKED_S
    return [
        Figure(
            name=f"{CALLS} LlamaIndex retrievals at once that block for 50 ms, {WORKERS} threads",
            seconds=wall,
            against="their rounds",
            against_seconds=ideal,
            limit="1.5 x",
            within=wall <= 1.5 * ideal,
        ),
        Figure(name="longest gap of the event loop meanwhile", seconds=gap, limit="50 ms", within=gap < 0.05),
    ]


async def watch(gaps: list[float]) -> None:
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.002)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now


def import_of_the_adapter() -> Figure:
    ours, bare = paired(
        lambda: python("import asyncio, qak_core.authoring, qak_adapter_llamaindex"),
        lambda: python("import asyncio, qak_core.authoring"),
        rounds=10,
    )
    return Figure(
        name="python -c 'import qak_adapter_llamaindex'",
        seconds=ours,
        against="python -c 'import qak_core.authoring'",
        against_seconds=bare,
        limit="25 ms more",
        within=ours - bare <= 0.025,
    )


def python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
