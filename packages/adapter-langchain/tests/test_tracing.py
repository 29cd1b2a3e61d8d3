"""Pitfall L12: queries and documents of a private assistant stay out of tracing, the host's own goes on."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs, register_configure_hook

from qak_adapter_langchain import LangChainProvider

from ._vendors import Fixed, NativelyAsync, found, in_memory, retrieve

QUERY = "saffron turmeric"

PROGRAM = """
import asyncio, sys
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import wait_for_all_tracers
from qak_adapter_langchain import LangChainProvider
from qak_core import RetrievalContext, RetrievalRequest

class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="stored cardamom")]

async def native(query):
    return [Document(page_content="stored cardamom")]

RunnableLambda(lambda text: text).invoke("the host's own run")  # tracing is on, and read from the environment by now
for vendor in (Retriever(), Retriever().with_retry(), RunnableLambda(native)):
    provider = LangChainProvider(vendor, disable_tracing=sys.argv[1] == "off")
    request = RetrievalRequest(query="saffron turmeric")
    answer = asyncio.run(provider.retrieve(request, RetrievalContext(owner_id="a")))
    assert [result.content for result in answer.results] == ["stored cardamom"]
RunnableLambda(lambda text: text).invoke("the host's last run")
wait_for_all_tracers()
"""


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
        self.send_response(202)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def langsmith() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.bodies = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("disabled", ["off", "on"])
def test_l12_langsmith_gets_neither_query_nor_documents_when_disabled(langsmith: Any, disabled: str) -> None:
    env = os.environ | {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_API_KEY": "no-key",
        "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{langsmith.server_port}",
        "LANGSMITH_DISABLE_RUN_COMPRESSION": "true",
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, disabled], env=env, capture_output=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    sent = b"".join(langsmith.bodies)
    assert b"the host's own run" in sent
    assert b"the host's last run" in sent
    assert (b"saffron" in sent, b"cardamom" in sent) == ((False, False) if disabled == "off" else (True, True))


class Handler(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_retriever_start(self, serialized: Any, query: str, **_: Any) -> None:
        self.heard.append(query)

    def on_chain_start(self, serialized: Any, inputs: Any, **_: Any) -> None:
        self.heard.append(str(inputs))


@pytest.mark.parametrize("make", [lambda: Fixed(answer=[]), lambda: in_memory([]).as_retriever().with_retry()])
@pytest.mark.parametrize("disabled", [True, False])
def test_l12_callbacks_of_an_outer_run_hear_nothing_when_disabled(make: Any, disabled: bool) -> None:
    provider = LangChainProvider(make(), disable_tracing=disabled)

    async def agent(question: str) -> list[Document]:
        await retrieve(provider, QUERY)
        return await Fixed(answer=[]).ainvoke("the host's own")

    handler = Handler()
    asyncio.run(RunnableLambda(agent).ainvoke("question", config={"callbacks": [handler]}))
    assert (QUERY in handler.heard) is not disabled
    assert handler.heard[0] == "question"
    assert handler.heard[-1] == "the host's own"


HOOKED: contextvars.ContextVar[Any] = contextvars.ContextVar("hooked", default=None)
register_configure_hook(HOOKED, inheritable=True)


async def nothing(query: str) -> list[Document]:
    return []


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fixed(answer=[]),
        lambda: NativelyAsync(do=nothing),
        lambda: RunnableLambda(lambda query: []),
        lambda: in_memory([]).as_retriever().with_retry(),
    ],
)
@pytest.mark.parametrize("disabled", [True, False])
def test_l12_handlers_that_listen_to_every_run_hear_nothing_when_disabled(make: Any, disabled: bool) -> None:
    """Run collectors, and what counts usage and cost, hook themselves into all runs of a context."""
    provider = LangChainProvider(make(), disable_tracing=disabled)
    handler = Handler()
    token = HOOKED.set(handler)
    try:
        with collect_runs() as collected:
            assert found(provider, QUERY) == []
            RunnableLambda(lambda text: text).invoke("the host's own")
    finally:
        HOOKED.reset(token)
    assert (QUERY in handler.heard) is not disabled
    assert handler.heard[-1] == "the host's own"
    assert (len(collected.traced_runs) == 1) is disabled
