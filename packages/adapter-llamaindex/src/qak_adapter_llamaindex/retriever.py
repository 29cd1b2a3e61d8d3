"""The other direction: a runtime or provider of protocol 1 as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from qak_core import (
    AnswerResult,
    KnowledgeAnswer,
    KnowledgeClosed,
    KnowledgeRuntime,
    KnowledgeTimeout,
    RetrievalContext,
)
from qak_core.authoring import passage_metadata

ContextSource = RetrievalContext | Callable[[], RetrievalContext]

_T = TypeVar("_T")


class KnowledgeRetriever(BaseRetriever):
    """A LlamaIndex retriever over a knowledge runtime: its safety, in LlamaIndex's nodes; see :func:`as_retriever`."""

    def __init__(
        self,
        runtime: KnowledgeRuntime,
        *,
        context: ContextSource,
        top_k: int = 5,
        knowledge_base_ids: Sequence[str] = (),
        filters: Mapping[str, Any] | None = None,
        timeout_s: float = 30.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.similarity_top_k = top_k
        self._runtime = runtime
        self._context = context
        self._knowledge_base_ids = tuple(knowledge_base_ids)
        self._knowledge_filters = filters
        self._home = _Home(timeout_s)

    def close(self) -> None:
        """End the thread that this retriever may have started; the runtime is its owner's to close."""
        self._home.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._home.run(self._search(query_bundle.query_str)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(await self._home.arun(self._search(query_bundle.query_str)))

    async def _search(self, query: str) -> KnowledgeAnswer:
        context = self._context if isinstance(self._context, RetrievalContext) else self._context()
        return await self._runtime.search(
            query,
            owner_id=context.owner_id,
            session_id=context.session_id,
            turn_id=context.turn_id,
            trace_id=context.trace_id,
            top_k=self.similarity_top_k,
            knowledge_base_ids=self._knowledge_base_ids,
            filters=self._knowledge_filters,
            signal=context.signal,
        )

    def _nodes(self, answer: KnowledgeAnswer) -> list[NodeWithScore]:
        return [NodeWithScore(node=_node(result, answer), score=result.score) for result in answer.results]


def as_retriever(runtime_or_provider: Any, *, context: ContextSource, **options: Any) -> KnowledgeRetriever:
    """Make a LlamaIndex retriever, which raises what the runtime raises.

    A node's metadata holds the result's own and, where known, ``title``, ``url``, ``mime_type``, ``locator``,
    ``source_id``, ``citation_id``, the ``citation`` itself as a mapping, and the untrusted-data ``notice``. None of it
    is embedded, and a language model sees all but the mapping.

    A runtime belongs to one event loop: the one in which this is called, or else that of a thread of the retriever's
    own. ``retrieve`` and ``aretrieve`` then work from any thread and loop, except that ``retrieve`` is refused in the
    runtime's own loop, which could not answer while it waits.

    Args:
        runtime_or_provider: a ``KnowledgeRuntime``, or a provider, around which one is made.
        context: on whose behalf; a function where that changes from call to call.
        options: ``top_k`` (5; ``similarity_top_k`` may be set later), ``knowledge_base_ids``, ``filters``,
            ``timeout_s`` (30 s, for calls from other threads; the runtime has a deadline of its own), and what
            ``BaseRetriever`` takes, such as ``callback_manager``.
    """
    if not isinstance(runtime_or_provider, KnowledgeRuntime):
        runtime_or_provider = KnowledgeRuntime(runtime_or_provider)
    return KnowledgeRetriever(runtime_or_provider, context=context, **options)


class _Home:
    """The event loop that a runtime lives in."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = _running_loop()
        self._own = self._loop is None

    def run(self, call: Coroutine[Any, Any, _T]) -> _T:
        """Run a call in the home loop and wait for it."""
        if self._loop is not None and _running_loop() is self._loop:
            call.close()
            raise RuntimeError("retrieve() would block the event loop that has to answer it; await aretrieve() instead")
        future = self._submit(call)
        try:
            return future.result(self._timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise
        finally:
            future.cancel()
        raise KnowledgeTimeout

    async def arun(self, call: Coroutine[Any, Any, _T]) -> _T:
        """Run a call in the home loop, whichever loop this one is."""
        if self._loop is not None and asyncio.get_running_loop() is self._loop:
            return await call
        future = asyncio.wrap_future(self._submit(call))
        try:
            await asyncio.wait({future}, timeout=self._timeout_s)
            if future.done():
                return future.result()
        finally:
            future.cancel()
        raise KnowledgeTimeout

    def close(self) -> None:
        """Stop the loop if it is this object's own."""
        with self._lock:
            if self._own and self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._own = False

    def _submit(self, call: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        with self._lock:
            if self._loop is None and self._own:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_live, args=(self._loop,), name="qak-llamaindex-loop", daemon=True).start()
            if self._loop is not None and not self._loop.is_closed():
                return asyncio.run_coroutine_threadsafe(call, self._loop)
        call.close()
        raise KnowledgeClosed


def _node(result: AnswerResult, answer: KnowledgeAnswer) -> TextNode:
    metadata = passage_metadata(result, answer)
    document = RelatedNodeInfo(node_id=result.source.id) if result.source is not None and result.source.id else None
    return TextNode(
        id_=result.id,
        text=result.content,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=["citation"],
        relationships={NodeRelationship.SOURCE: document} if document else {},
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _live(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    if left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.wait(left, timeout=1.0))
    loop.close()
