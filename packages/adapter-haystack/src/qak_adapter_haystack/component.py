"""A knowledge provider as a component of Haystack; importing this module imports Haystack."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.core.errors import SerializationError
from haystack.utils import deserialize_callable, serialize_callable

from qak_adapter_haystack._filters import from_haystack, is_native
from qak_core import AnswerResult, KnowledgeAnswer, KnowledgeClosed, KnowledgeRuntime, RetrievalContext
from qak_core.authoring import passage_metadata

_DEFAULT_TOP_K = 5

ContextSource = RetrievalContext | Callable[[], RetrievalContext]


@component
class KnowledgeComponent:
    """Asks a knowledge provider: ``query``, ``top_k`` and ``filters`` in, ``documents`` out; see :func:`as_retriever`.

    A document's ``meta`` holds the result's metadata and, where known, ``title``, ``url``, ``mime_type``, ``locator``,
    ``source_id``, ``citation_id`` and ``citation`` of a public source, and the ``notice`` that results are untrusted.
    """

    def __init__(self, source: Any, context: Any, knowledge_base_ids: Sequence[str] = ()) -> None:
        """Connect the component to ``source``; nothing is asked yet."""
        self.source = source
        self.context = context
        self.knowledge_base_ids = list(knowledge_base_ids)
        self._runtime: KnowledgeRuntime | None = None
        self._starting = threading.Lock()
        self._home = _running_loop()
        self._own_loop: asyncio.AbstractEventLoop | None = None

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Search, and block this thread meanwhile.

        The event loop in which the component was made does the work, since a runtime belongs to one loop; where that
        does not run, or would have to wait for itself, a loop of the component's own does.

        Args:
            query: 1 to 500 characters are used.
            top_k: 1 to 8 documents, 5 by default.
            filters: on metadata, in Haystack's grammar or the neutral one.

        Raises:
            KnowledgeError: with a fixed text and nothing of the provider's.
        """
        search = self._search(query, top_k, filters, self._trusted())
        home = self._home
        loop = home if home and home.is_running() and home is not _running_loop() else self._started_loop()
        try:
            return {"documents": asyncio.run_coroutine_threadsafe(search, loop).result()}
        except CancelledError:
            raise KnowledgeClosed from None

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Search without blocking; otherwise as :meth:`run`.

        The event loop in which the component was made, or first awaited, does the work while it runs, and then the next
        that awaits it; once :meth:`run` has needed a loop of the component's own, that one does.
        """
        search = self._search(query, top_k, filters, self._trusted())
        loop = self._awaited_loop()
        if loop is asyncio.get_running_loop():
            return {"documents": await search}
        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(search, loop))
        try:
            await asyncio.wait({future})
            if future.cancelled():  # by the other loop, at its end
                raise KnowledgeClosed
            return {"documents": future.result()}
        finally:
            future.cancel()

    def close(self) -> None:
        """End the component's own loop; provider and runtime are closed by their owner."""
        with self._starting:
            loop, self._own_loop = self._own_loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def to_dict(self) -> dict[str, Any]:
        """Write down which functions give source and context, for a pipeline that is saved.

        Raises:
            SerializationError: they were given as objects, which can't be written down.
        """
        written: dict[str, Any] = {"knowledge_base_ids": self.knowledge_base_ids}
        for name in ("source", "context"):
            given = getattr(self, name)
            if not inspect.isfunction(given):
                raise SerializationError(
                    f"KnowledgeComponent can be saved only if {name} is a function of a module that returns it, got "
                    f"{type(given).__name__}; pass such a function instead of the object"
                )
            written[name] = serialize_callable(given)
        return default_to_dict(self, **written)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KnowledgeComponent:
        """Read what :meth:`to_dict` wrote; the functions' modules must be on Haystack's allowlist."""
        parameters = dict(data["init_parameters"])
        for name in ("source", "context"):
            parameters[name] = deserialize_callable(parameters[name])
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    def _trusted(self) -> RetrievalContext:
        """Return the context of this call, asked for in the caller's thread."""
        context: RetrievalContext = self.context() if callable(self.context) else self.context
        return context

    async def _search(
        self, query: str, top_k: int | None, filters: dict[str, Any] | None, context: RetrievalContext
    ) -> list[Document]:
        answer = await self._asked().search(
            query,
            owner_id=context.owner_id,
            session_id=context.session_id,
            turn_id=context.turn_id,
            trace_id=context.trace_id,
            top_k=_DEFAULT_TOP_K if top_k is None else top_k,
            knowledge_base_ids=self.knowledge_base_ids,
            filters=from_haystack(filters) if is_native(filters) else filters or None,
            signal=context.signal,
        )
        return [_document(result, answer) for result in answer.results]

    def _asked(self) -> KnowledgeRuntime:
        with self._starting:
            if self._runtime is None:
                source = self.source() if inspect.isfunction(self.source) else self.source
                self._runtime = source if isinstance(source, KnowledgeRuntime) else KnowledgeRuntime(source)
            return self._runtime

    def _awaited_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._home is None or not self._home.is_running():
                if self._own_loop is not None:
                    return self._own_loop
                self._home = asyncio.get_running_loop()
            return self._home

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._own_loop is None:
                self._own_loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(self._own_loop,), name="qak-haystack-loop", daemon=True).start()
            return self._own_loop


def as_retriever(
    runtime_or_provider: Any, *, context: ContextSource, knowledge_base_ids: Sequence[str] = ()
) -> KnowledgeComponent:
    """Return a component that asks a provider, with the safety of a runtime around it.

    Args:
        runtime_or_provider: closed by its owner; or a function that returns one, called at the first search.
        context: on whose behalf, or a function that says so for each call; no input of a pipeline can.
        knowledge_base_ids: where to look; by default everywhere.
    """
    return KnowledgeComponent(runtime_or_provider, context, knowledge_base_ids)


def _document(result: AnswerResult, answer: KnowledgeAnswer) -> Document:
    return Document(id=result.id, content=result.content, score=result.score, meta=passage_metadata(result, answer))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(_end_all())
        loop.close()


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
