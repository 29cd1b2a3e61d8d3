"""Running components and pipelines: natively where every part is async, in the adapter's own threads elsewhere."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from qak_adapter_haystack._sockets import components, is_pipeline
from qak_core import CancelSignal
from qak_core.authoring import BlockingPool, follow


class Runnable:
    """A component or pipeline, and how it is run.

    What is not async in every part runs whole in the pool, because Haystack would run such parts in the event loop's
    default threads. Components are warmed up once, before their first call.
    """

    def __init__(self, thing: Any, pool: BlockingPool, *, in_thread: bool | None = None) -> None:
        self._thing = thing
        self._pool = pool
        self._is_pipeline = is_pipeline(thing)
        self._components = [component for _, component in thing.walk()] if self._is_pipeline else [thing]
        if in_thread is None:
            in_thread = not all(getattr(part, "__haystack_supports_async__", False) for part in components(thing))
        self._native = not in_thread
        self._warm = False
        self._warming = threading.Lock()
        self._warming_natively = asyncio.Lock()

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
            return await follow(signal, self._run_natively(signal, inputs, include))
        return await self._pool.run(signal, self._run_blocking, inputs, include)

    async def _run_natively(self, signal: CancelSignal, inputs: dict[str, Any], include: str | None) -> Any:
        if not self._warm:
            async with self._warming_natively:
                if not self._warm:
                    for component in self._components:
                        if hasattr(component, "warm_up_async"):  # binds its client to this event loop
                            await component.warm_up_async()
                        elif hasattr(component, "warm_up"):  # may load a model, which Haystack would do on the loop
                            await self._pool.run(signal, component.warm_up)
                    self._warm = True
        if self._is_pipeline:
            return await self._thing.run_async(inputs, include_outputs_from={include} if include else None)
        return await self._thing.run_async(**inputs)

    def _run_blocking(self, inputs: dict[str, Any], include: str | None) -> Any:
        if not self._warm:
            with self._warming:
                if not self._warm:
                    for component in self._components:
                        if hasattr(component, "warm_up"):
                            component.warm_up()
                    self._warm = True
        if self._is_pipeline:
            # A failing pipeline would write its inputs to disk where the environment asks for snapshots.
            included = {include} if include else None
            return self._thing.run(inputs, include_outputs_from=included, snapshot_callback=_keep_no_snapshot)
        return self._thing.run(**inputs)


def _keep_no_snapshot(_: object) -> None:
    return None
