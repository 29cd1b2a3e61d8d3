"""Providers that wait, stop, block or close wrongly."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from qak_contract_tests._mutants.base import Mutant, breaks
from qak_contract_tests.corpus import Corpus
from qak_core import KnowledgeCancelled, KnowledgeClosed, KnowledgeTimeout, RetrievalContext, RetrievalRequest


@breaks("context.signal.cancelled")
class CancelledIsLate(Mutant):
    """Takes every end of the signal for its deadline."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if context.signal.remaining() == 0.0 and not self._closed:
            raise KnowledgeTimeout
        return await super().retrieve(request, context)


@breaks("context.signal.cancelled")
class CancelledIsAnswered(Mutant):
    """Does not look at the signal before it has worked."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if context.signal.error() is not None and not context.signal.timed_out:
            context = RetrievalContext(owner_id=context.owner_id)
        return await super().retrieve(request, context)


@breaks("context.signal.late")
class LateIsAnswered(Mutant):
    """Looks whether it was cancelled, and not at the clock."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if context.signal.cancelled and not context.signal.timed_out:
            raise KnowledgeCancelled
        return await super().retrieve(request, RetrievalContext(owner_id=context.owner_id))


@breaks("context.signal.during")
class CancelledIsEmpty(Mutant):
    """Ends a cancelled retrieval with an empty answer."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        was_cancelled = context.signal.cancelled
        try:
            return await super().retrieve(request, context)
        except KnowledgeCancelled:
            if was_cancelled:
                raise
            return []


@breaks("context.signal.during")
class CancelledIsRetried(Mutant):
    """Takes being cancelled for one more failure to try again after."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        context.signal.raise_if_cancelled()
        while True:
            try:
                return await super().retrieve(request, context)
            except KnowledgeCancelled:
                await asyncio.sleep(0.01)


@breaks("context.signal.deadline")
class LateIsEmpty(Mutant):
    """Ends a late retrieval with an empty answer; its vendor needs a second."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        context.signal.raise_if_cancelled()
        if context.signal.remaining() < 1.0:
            await context.signal.wait()
            return []
        return await super().retrieve(request, context)


@breaks("context.signal.deadline")
class DeafToDeadlines(Mutant):
    """Waits for its vendor as long as that takes."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        context.signal.raise_if_cancelled()
        if context.signal.remaining() < 1.0:
            await asyncio.Event().wait()
        return await super().retrieve(request, context)


@breaks("context.signal.task")
class CancellationIsSwallowed(Mutant):
    """Catches everything, its own cancellation with it."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        try:
            return await super().retrieve(request, context)
        except asyncio.CancelledError:
            return []


@breaks("retrieve.concurrent")
class ContextIsShared(Mutant):
    """Keeps the retrieval it is at in itself, as if there were only one."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        self._request, self._context = request, context
        context.signal.raise_if_cancelled()
        await asyncio.sleep(0)
        return await super().retrieve(self._request, self._context)


@breaks("retrieve.nonblocking")
class LongQueriesBlock(Mutant):
    """Analyses a long query in the event loop."""

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if len(request.query) > 400:
            time.sleep(0.12)  # noqa: ASYNC251 - this is the fault
        return await super().retrieve(request, context)


@breaks("retrieve.nonblocking")
class HealthBlocks(Mutant):
    """Asks its server in the event loop how it is."""

    async def health(self) -> Any:
        time.sleep(0.12)  # noqa: ASYNC251 - this is the fault
        return await super().health()


@breaks("health.states")
class HealthIsOk(Mutant):
    """Uses a word of its own for ready."""

    async def health(self) -> Any:
        return {"status": "ok"}


@breaks("health.states")
class HealthIsAnEssay(Mutant):
    """Puts the whole status page into the message."""

    async def health(self) -> Any:
        return {"status": "ready", "message": "all systems work; " * 50}


@breaks("close.once")
class ClosesOnlyOnce(Mutant):
    """Fails when it is closed again."""

    async def close(self) -> None:
        if self._closed:
            raise RuntimeError("the client is closed")
        await super().close()


@breaks("close.refuses")
class AnswersAfterClosing(Mutant):
    """Does not mind being closed."""

    async def close(self) -> None:
        """Close nothing."""


@breaks("close.in_flight")
class ClosingStrandsRetrievals(Mutant):
    """Stops the worker for whose answer a retrieval waits."""

    async def _wait_for_vendor(self) -> None:
        await super()._wait_for_vendor()
        if self._closed:
            await asyncio.Event().wait()


@breaks("close.alone")
class ClientIsGlobal(Mutant):
    """Keeps its client in the module, and closes whichever is there."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.process["client"] = {"closed": False}

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Any:
        if self.process["client"]["closed"]:
            raise KnowledgeClosed
        return await super().retrieve(request, context)

    async def close(self) -> None:
        await super().close()
        self.process["client"]["closed"] = True


@breaks("close.leaves_nothing")
class LeavesATask(Mutant):
    """Never stops looking for news."""

    async def _wait_for_vendor(self) -> None:
        self._poller = asyncio.ensure_future(asyncio.Event().wait())
        await super()._wait_for_vendor()


@breaks("close.leaves_nothing")
class LeavesAThread(Mutant):
    """Has a thread of its own, and never ends it."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        # The fault is that nothing sets this event; the timeout only spares the tests that thread.
        threading.Thread(target=threading.Event().wait, args=(5.0,), daemon=True).start()


@breaks("provider.loops")
class ConnectionIsOfTheFirstLoop(Mutant):
    """Keeps a connection in the module that works in one event loop only."""

    async def _wait_for_vendor(self) -> None:
        loop = asyncio.get_running_loop()
        if self.process.setdefault("loop", loop) is not loop:
            raise RuntimeError("the connection is attached to a different loop")
        await super()._wait_for_vendor()
