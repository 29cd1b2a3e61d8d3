"""What LlamaIndex's own tracing hears of a retrieval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode

from qak_adapter_llamaindex import LlamaIndexProvider
from qak_core import RetrievalContext, RetrievalRequest

HEARD: list[str] = []


class Listening(BaseEventHandler):
    def handle(self, event: Any, **options: Any) -> None:
        HEARD.append(f"{event.class_name()} {event.model_dump_json()}")


class Spans(SimpleSpanHandler):
    def new_span(self, id_: str, bound_args: Any, *args: Any, **options: Any) -> Any:
        HEARD.append(f"{id_} {bound_args}")
        return super().new_span(id_, bound_args, *args, **options)


class Callbacks(LlamaDebugHandler):
    def __init__(self) -> None:
        super().__init__(print_trace_on_end=False)

    def on_event_start(self, event_type: Any, payload: Any = None, **options: Any) -> str:
        HEARD.append(f"{event_type} {payload}")
        return super().on_event_start(event_type, payload, **options)

    def start_trace(self, trace_id: str | None = None) -> None:
        HEARD.append(f"trace {trace_id}")
        super().start_trace(trace_id)


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """What the host's event handler, span handler and callback handler get to know."""
    root = get_dispatcher()
    handlers = root.event_handlers, root.span_handlers
    root.event_handlers, root.span_handlers = [*handlers[0], Listening()], [*handlers[1], Spans()]
    manager = Settings._callback_manager
    Settings.callback_manager = CallbackManager([Callbacks()])
    HEARD.clear()
    yield HEARD
    root.event_handlers, root.span_handlers = handlers
    Settings._callback_manager = manager


@pytest.fixture
def fusion(heard: list[str], make_index: Callable[..., VectorStoreIndex], embedding: Any) -> Iterator[Any]:
    """Everything that reports: embedding, language model, retriever, a loop in a loop."""
    manager, embedding.callback_manager = embedding.callback_manager, Settings.callback_manager
    index = make_index([TextNode(text="lamp of the vault")])
    llm = MockLLM(callback_manager=Settings.callback_manager)
    yield QueryFusionRetriever([index.as_retriever()], llm=llm, num_queries=2, use_async=True)
    embedding.callback_manager = manager


def ask(retriever: Any, **options: Any) -> int:
    provider = LlamaIndexProvider(retriever, **options)
    request, context = RetrievalRequest(query="a private question"), RetrievalContext(owner_id="alice")
    return len(asyncio.run(provider.retrieve(request, context)).results)


@pytest.mark.parametrize("native_async", [False, True])
def test_nothing_of_a_retrieval_is_reported_by_default(fusion: Any, heard: list[str], native_async: bool) -> None:
    heard.clear()
    assert ask(fusion, native_async=native_async) == 1
    assert heard == []


def test_a_failed_retrieval_is_not_reported_either(fixed: Any, heard: list[str]) -> None:
    with pytest.raises(Exception, match="not available"):
        ask(fixed(RuntimeError("a private question")))
    assert heard == []


def test_retrievals_are_reported_where_the_host_wants_it(fusion: Any, heard: list[str]) -> None:
    heard.clear()
    assert ask(fusion, disable_tracing=False) == 1
    for reporter in ("RetrievalStartEvent", "QueryFusionRetriever.retrieve", "CBEventType.RETRIEVE", "trace query"):
        assert any(reporter in text for text in heard), reporter
    assert any("a private question" in text for text in heard)


def test_the_hosts_own_tracing_goes_on_before_during_and_after(fusion: Any, heard: list[str]) -> None:
    async def main() -> None:
        provider = LlamaIndexProvider(fusion)
        request, context = RetrievalRequest(query="a private question"), RetrievalContext(owner_id="alice")
        quiet = asyncio.ensure_future(provider.retrieve(request, context))
        await fusion.aretrieve("a public question")
        await quiet

    heard.clear()
    fusion.retrieve("the first question")
    asyncio.run(main())
    fusion.retrieve("the last question")
    text = "\n".join(heard)
    assert all(question in text for question in ("the first question", "a public question", "the last question"))
    assert "a private question" not in text
    assert isinstance(get_dispatcher().event_handlers[-1], Listening)


def test_asynchronous_events_of_others_are_silent_too(heard: list[str]) -> None:
    from llama_index.core.instrumentation.events.retrieval import RetrievalStartEvent

    from qak_adapter_llamaindex._tracing import untraced

    class Late(Listening):
        async def ahandle(self, event: Any, **options: Any) -> None:
            self.handle(event)

    get_dispatcher().event_handlers.append(Late())

    async def main() -> None:
        event = RetrievalStartEvent(str_or_query_bundle="a question")
        with untraced():
            await get_dispatcher().aevent(event)
        assert heard == []
        await get_dispatcher().aevent(event)

    asyncio.run(main())
    assert "a question" in heard[0]
