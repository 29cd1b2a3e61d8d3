"""What the core adds to a retrieval, to an import and to a command."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import time
from statistics import median

from measure import Figure, paired

from qak_core import KnowledgeRuntime, RetrievalContext, RetrievalRequest, normalize_response

# As for a user, who compiles a module once and not at every start.
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def figures() -> list[Figure]:
    return [
        normalising_long_results(),
        normalising_many_candidates(),
        runtime_around_an_empty_provider(),
        import_of_the_core(),
        command("qak adapters", ["qak", "adapters"]),
        command("qak --help", ["qak", "--help"], limit_s=0.4),
    ]


def normalising_long_results() -> Figure:
    draw = random.Random(1)
    han = "".join(chr(draw.randrange(0x4E00, 0x9FA5)) for _ in range(4000))
    source = {"title": "发布手册", "uri": "https://docs.example.com/releases", "locator": "section=approvals"}
    response = {
        "results": [
            {
                "id": f"chunk-{n}",
                "content": han,
                "score": 0.9,
                "source": source,
                "metadata": {"department": "engineering"},
            }
            for n in range(8)
        ]
    }
    answer = normalize_response(response, query="发布审批规则是什么？", top_k=8).to_dict()
    ours, dumps = paired(
        lambda: normalize_response(response, query="发布审批规则是什么？", top_k=8).to_dict(),
        lambda: json.dumps(answer),
        calls=5,
    )
    return Figure(
        name="normalise 8 results of 4,000 Han characters",
        seconds=ours,
        against="json.dumps of the answer",
        against_seconds=dumps,
        limit="4 x",
        within=ours <= 4 * dumps,
    )


def normalising_many_candidates() -> Figure:
    metadata = {f"field_{n}": f"value {n} of a chunk" for n in range(16)}
    response = [{"id": f"chunk-{n % 7}", "content": "word " * 100, "metadata": metadata} for n in range(64)]
    ours, dumps = paired(
        lambda: normalize_response(response, query="words", top_k=8), lambda: json.dumps(response), calls=5
    )
    return Figure(
        name="normalise 64 candidates with metadata, 57 of them duplicates",
        seconds=ours,
        against="json.dumps of the candidates",
        against_seconds=dumps,
    )


class EmptyProvider:
    def describe(self) -> dict[str, object]:
        return {"protocolVersion": 1, "key": "empty", "label": "Empty"}

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> list[dict[str, object]]:
        return []


def runtime_around_an_empty_provider() -> Figure:
    async def measure() -> tuple[float, float]:
        provider = EmptyProvider()
        request, context = RetrievalRequest(query="anything"), RetrievalContext(owner_id="bench")
        times: tuple[list[float], list[float]] = ([], [])
        async with KnowledgeRuntime(provider) as runtime:
            for _ in range(30):
                start = time.perf_counter()
                for _ in range(50):
                    await runtime.search("anything", owner_id="bench")
                times[0].append((time.perf_counter() - start) / 50)
                start = time.perf_counter()
                for _ in range(50):
                    await provider.retrieve(request, context)
                times[1].append((time.perf_counter() - start) / 50)
        return median(times[0]), median(times[1])

    ours, bare = asyncio.run(measure())
    return Figure(
        name="runtime around an empty provider",
        seconds=ours,
        against="the bare call",
        against_seconds=bare,
        limit="0.3 ms more",
        within=ours - bare <= 0.0003,
    )


def import_of_the_core() -> Figure:
    ours, bare = paired(lambda: python("import asyncio, qak_core"), lambda: python("import asyncio"), rounds=15)
    return Figure(
        name="python -c 'import asyncio, qak_core'",
        seconds=ours,
        against="python -c 'import asyncio'",
        against_seconds=bare,
        limit="25 ms more",
        within=ours - bare <= 0.025,
    )


def command(name: str, arguments: list[str], *, limit_s: float | None = None) -> Figure:
    program = shutil.which(arguments[0])
    if program is None:
        raise SystemExit(f"{arguments[0]} is not installed; run this with `hatch run bench`")
    ours, bare = paired(lambda: run([program, *arguments[1:]]), lambda: python("pass"), rounds=10)
    return Figure(
        name=name,
        seconds=ours,
        against="python -c pass",
        against_seconds=bare,
        limit=f"{limit_s * 1000:.0f} ms" if limit_s else "",
        within=ours <= limit_s if limit_s else None,
    )


def python(code: str) -> None:
    run([sys.executable, "-c", code])


def run(arguments: list[str]) -> None:
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, env=COMPILED)
