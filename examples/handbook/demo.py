"""Ask the handbook three questions, as a voice agent would: no key, no network.

    python demo.py

Adapter registry, provider, runtime, standard results. `PublicPages` is what a host may add where it composes its
provider: the documents are private files, and the host knows which of them have a public page as well.
"""

import asyncio
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from qak_core import (
    KnowledgeAnswer,
    KnowledgeRuntime,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    create_provider,
)
from qak_gateway.search import query_words, show

HERE = Path(__file__).resolve().parent
DOCUMENTS = HERE / "documents"
QUESTIONS = ("发布需要几个人批准？", "年费什么时候退？", "How fast must on-call answer a page?")


class PublicPages:
    """A provider of local documents that names their public pages, so that answers can cite them."""

    def __init__(self, provider: Any, pages: Mapping[str, Mapping[str, str]]) -> None:
        self._provider = provider
        self._pages = pages  # file name to title and url

    def describe(self) -> ProviderDescription:
        described: ProviderDescription = self._provider.describe()
        return replace(described, capabilities={**described.capabilities, "citations": True})

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Sequence[RetrievalResult]:
        return [self._with_page(result) for result in await self._provider.retrieve(request, context)]

    async def health(self) -> ProviderHealth:
        health: ProviderHealth = await self._provider.health()
        return health

    async def close(self) -> None:
        await self._provider.close()

    def _with_page(self, result: RetrievalResult) -> RetrievalResult:
        if result.source is None or result.source.locator is None:
            return result
        file = PurePath(result.source.locator.partition("#")[0]).name  # the locator is a path, maybe with a page
        page = self._pages.get(file)
        return replace(result, source=replace(result.source, uri=page["url"], title=page["title"])) if page else result


async def main() -> None:
    pages = tomllib.loads((HERE / "sources.toml").read_text(encoding="utf-8"))
    print(f"Handbook: {len(list(DOCUMENTS.iterdir()))} documents, {len(pages)} of them with a public page.")
    print("Shown of a passage: lines that share words with the question. A model gets all.")
    with tempfile.TemporaryDirectory() as index:
        settings = {"folder": str(DOCUMENTS), "index_directory": index}

        passages = PublicPages(create_provider("local", {**settings, "excerpts": True}), pages)
        async with KnowledgeRuntime(passages, timeout_s=60) as runtime:
            for question in QUESTIONS:
                answer = await runtime.search(question, owner_id="demo", turn_id=question, top_k=2)
                print(f"\n--- {question}\n")
                show(in_short(answer))

        async with KnowledgeRuntime(create_provider("local", settings), timeout_s=60) as runtime:
            answer = await runtime.search(QUESTIONS[1], owner_id="demo", top_k=1)
            print(f"\n--- {QUESTIONS[1]} Without excerpts: where to read, however long it is\n")
            show(answer)


def in_short(answer: KnowledgeAnswer) -> KnowledgeAnswer:
    words = query_words(answer.query)
    results = []
    for result in answer.results:
        lines = [line for line in result.content.splitlines() if any(word.search(line) for word in words)]
        results.append(replace(result, content="\n".join(lines)))
    return replace(answer, results=results)


if __name__ == "__main__":
    asyncio.run(main())
