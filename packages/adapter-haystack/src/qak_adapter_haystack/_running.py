"""Running components and pipelines: natively where every part is async, in the adapter's own threads elsewhere."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any
from weakref import WeakSet

from qak_adapter_haystack._sockets import components, is_pipeline
from qak_core import CancelSignal
from qak_core.authoring import BlockingPool, follow

_log = logging.getLogger("qak_adapter_haystack")


class Runnable:
    """A component or pipeline, and how it is run.

    What is not async in every part runs whole in the pool, because Haystack would run such parts in the event loop's
    default threads. Components are warmed up once, before their first call; what binds its client to an event loop,
    once in each. A warming up belongs to no call: those that wait for it may go, and the next find it done.
    """

    def __init__(self, thing: Any, pool: BlockingPool, *, in_thread: bool | None = None) -> None:
        self._thing = thing
        self._pool = pool
        self._is_pipeline = is_pipeline(thing)
        self._components = [component for _, component in thing.walk()] if self._is_pipeline else [thing]
        if in_thread is None:
            in_thread = not all(getattr(part, "__haystack_supports_async__", False) for part in components(thing))
        self._native = not in_thread
        self._in_pool = [part for part in self._components if hasattr(part, "warm_up") and not self._in_loop(part)]
        self._warm = not self._in_pool
        self._lock = threading.Lock()
        self._warm_loops = WeakSet[asyncio.AbstractEventLoop]()
        self._warming: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._end = CancelSignal()

    async def run(self, signal: CancelSignal, inputs: dict[str, Any], *, include: str | None = None) -> Any:
        """Run with these inputs until the signal ends.

        Args:
            signal: ends it; what comes later is dropped.
            inputs: by socket, or by component and socket.
            include: a component of a pipeline whose outputs are wanted though others take them.

        Raises:
            KnowledgeError: the signal's; anything else is what the vendor raised.
        """
        if self._native:
            return await follow(signal, self._run_natively(inputs, include))
        return await self._pool.run(signal, self._run_blocking, inputs, include)

    def close(self) -> None:
        """End a warming up that is under way."""
        self._end.cancel()

    async def _run_natively(self, inputs: dict[str, Any], include: str | None) -> Any:
        await self._warmed_up()
        if self._is_pipeline:
            return await self._thing.run_async(inputs, include_outputs_from={include} if include else None)
        return await self._thing.run_async(**inputs)

    def _run_blocking(self, inputs: dict[str, Any], include: str | None) -> Any:
        self._warm_up_blocking()
        if self._is_pipeline:
            # A failing pipeline would write its inputs to disk where the environment asks for snapshots.
            included = {include} if include else None
            return self._thing.run(inputs, include_outputs_from=included, snapshot_callback=_keep_no_snapshot)
        return self._thing.run(**inputs)

    def _in_loop(self, component: Any) -> bool:
        return self._native and hasattr(component, "warm_up_async")

    async def _warmed_up(self) -> None:
        """Wait for the warming up of this event loop, and begin it if nobody has, or it has failed."""
        loop = asyncio.get_running_loop()
        if loop in self._warm_loops:
            return
        task = self._warming.get(loop)
        if task is None:
            task = self._warming[loop] = loop.create_task(self._warm_up())
            task.add_done_callback(self._look_at)
        await asyncio.wait({task})  # unlike the task itself, may be cancelled with this call alone
        task.result()

    def _look_at(self, task: asyncio.Task[None]) -> None:
        """Forget a warming up that is over, and look at what it raised: perhaps nobody waits for it any more."""
        self._warming.pop(task.get_loop(), None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("warming up failed with %s", type(error).__name__)

    async def _warm_up(self) -> None:
        if not self._warm:  # may load a model, which Haystack would do on the loop
            await self._pool.run(self._end, self._warm_up_blocking)
        for component in self._components:
            if self._in_loop(component):  # binds its client to this event loop
                await follow(self._end, component.warm_up_async())
        self._warm_loops.add(asyncio.get_running_loop())

    def _warm_up_blocking(self) -> None:
        if not self._warm:
            with self._lock:
                if not self._warm:
                    for component in self._in_pool:
                        component.warm_up()
                    self._warm = True


def _keep_no_snapshot(_: object) -> None:
    return None
