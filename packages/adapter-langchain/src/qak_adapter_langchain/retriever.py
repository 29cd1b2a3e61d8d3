"""The other direction: a knowledge provider as a LangChain retriever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from qak_core import AnswerResult, KnowledgeAnswer, KnowledgeRuntime, RetrievalContext
from qak_core.authoring import passage_metadata
from qak_core.protocol import DEFAULT_TOP_K, MAX_TOP_K

_T = TypeVar("_T")


class LangChainRetriever(BaseRetriever):
    """What a knowledge runtime finds, as LangChain's documents.

    Each document's metadata holds the result's own and, where known, ``title``, ``url`` (as ``source`` too),
    ``mime_type``, ``locator``, ``source_id``, ``relevance_score``, ``citation_id`` and ``citation`` of a public source,
    and the ``notice`` that results are untrusted. What goes wrong is a :class:`~qak_core.KnowledgeError`.

    Attributes:
        runtime: asked in the owner's name.
        context: on whose behalf; a function where that differs from call to call.
        k: documents wanted, 1 to 8; ``invoke(query, k=3)`` wants another number once.
        knowledge_base_ids: where to look; everywhere if empty.
        filters: in the provider's grammar.
    """

    runtime: KnowledgeRuntime = Field(repr=False, exclude=True)
    context: RetrievalContext | Callable[[], RetrievalContext] = Field(repr=False, exclude=True)
    k: int = Field(default=DEFAULT_TOP_K, ge=1, le=MAX_TOP_K)
    knowledge_base_ids: tuple[str, ...] = ()
    filters: dict[str, Any] | None = None
    _loop: asyncio.AbstractEventLoop | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Remember the loop that the runtime belongs to, if one is running."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        loop = self._home(_shared_loop)
        if loop is _running_loop():
            loop = _shared_loop()  # its own thread can't wait for it
        return _wait_for(self._search(query, k), loop)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        loop = self._home(asyncio.get_running_loop)
        if loop is asyncio.get_running_loop():
            return await self._search(query, k)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._search(query, k), loop))

    def _home(self, choose: Callable[[], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
        """Return the loop of the runtime: where this was made, else where it is asked first, for as long as it runs."""
        with _homing:
            if self._loop is None or not self._loop.is_running():
                self._loop = choose()
            return self._loop

    async def _search(self, query: str, k: int | None) -> list[Document]:
        context = self.context() if callable(self.context) else self.context
        answer = await self.runtime.search(
            query,
            owner_id=context.owner_id,
            session_id=context.session_id,
            turn_id=context.turn_id,
            trace_id=context.trace_id,
            top_k=self.k if k is None else k,
            knowledge_base_ids=self.knowledge_base_ids,
            filters=self.filters,
            signal=context.signal,
        )
        return [_document(result, answer) for result in answer.results]


def as_retriever(
    runtime_or_provider: object,
    *,
    context: RetrievalContext | Callable[[], RetrievalContext],
    k: int = DEFAULT_TOP_K,
    knowledge_base_ids: tuple[str, ...] = (),
    filters: Mapping[str, Any] | None = None,
) -> LangChainRetriever:
    """Return a LangChain retriever over a runtime, or over a provider in a runtime of its own.

    Call it in the event loop that the runtime belongs to: ``invoke`` from other threads and ``ainvoke`` from other
    loops then use that loop. Otherwise the runtime belongs to the loop of the first ``ainvoke`` or, if ``invoke`` comes
    first, to one in a thread that all such retrievers share, which ``invoke`` in the loop's own thread uses too.

    Args:
        runtime_or_provider: closed by its owner, not by the retriever.
        context: on whose behalf, or a function that says so at each call.
        k: documents wanted, 1 to 8.
        knowledge_base_ids: where to look.
        filters: in the provider's grammar.

    Raises:
        ProviderContractError: it is no provider.
    """
    asked = runtime_or_provider
    return LangChainRetriever(
        runtime=asked if isinstance(asked, KnowledgeRuntime) else KnowledgeRuntime(asked),
        context=context,
        k=k,
        knowledge_base_ids=tuple(knowledge_base_ids),
        filters=None if filters is None else dict(filters),
    )


def _document(result: AnswerResult, answer: KnowledgeAnswer) -> Document:
    metadata = passage_metadata(result, answer)
    if result.source is not None and result.source.uri is not None:
        metadata["source"] = result.source.uri  # where LangChain's chains look for it
    if result.score is not None:
        metadata["relevance_score"] = result.score  # a document has no other place for it
    return Document(id=result.id, page_content=result.content, metadata=metadata)


def _wait_for(search: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop) -> _T:
    """Run a search to its end from a thread that may block."""
    if loop is _running_loop():
        search.close()
        raise RuntimeError("invoke() would wait for its own event loop; use ainvoke() there")
    future = asyncio.run_coroutine_threadsafe(search, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_shared: asyncio.AbstractEventLoop | None = None
_sharing = threading.Lock()
_homing = threading.Lock()


def _shared_loop() -> asyncio.AbstractEventLoop:
    """Return the loop for callers without one; one for all, since async clients live in the loop they began in."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = asyncio.new_event_loop()
            threading.Thread(target=_shared.run_forever, name="qak-langchain-invoke", daemon=True).start()
        return _shared
