"""From the first retrieval of a provider to its end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qak_core.authoring.blocking import BlockingPool
from qak_core.authoring.error_table import ErrorTable
from qak_core.errors import KnowledgeCancelled, KnowledgeClosed
from qak_core.protocol import ProviderHealth
from qak_core.signals import CancelSignal

Health = ProviderHealth | Mapping[str, Any] | None
HealthCheck = Callable[[], Health | Awaitable[Health]]

_HEALTH_TIMEOUT_S = 5.0


class Lifetime:
    """What runs in a provider, the host's health check, and the end of both.

    Attributes:
        pool: the provider's threads, closed with it.
    """

    def __init__(
        self,
        pool: BlockingPool,
        errors: ErrorTable,
        *,
        health: HealthCheck | None = None,
        aclose: Callable[[], object] | None = None,
    ) -> None:
        """Begin.

        Args:
            pool: where a health check is called, so that one that blocks holds nobody up.
            errors: translates what ``aclose`` raises.
            health: the host's own check, which may be async or block; ``None``, or an answer of ``None``, is ready.
            aclose: called once at the end; may be async.
        """
        self.pool = pool
        self._errors = errors
        self._health = health
        self._aclose = aclose
        self._running: set[CancelSignal] = set()
        self._closed = False

    @contextmanager
    def retrieval(self, signal: CancelSignal) -> Iterator[CancelSignal]:
        """Give a retrieval the signal to follow, which ends with the caller's and when the provider is closed.

        Raises:
            KnowledgeClosed: the provider is closed, or was while the retrieval ran.
            KnowledgeError: the caller's signal has ended.
        """
        self._check_open()
        signal.raise_if_cancelled()
        child = signal.child()
        self._running.add(child)
        try:
            yield child
        except KnowledgeCancelled:
            signal.raise_if_cancelled()
            self._check_open()  # it was close() that ended it
            raise
        finally:
            self._running.discard(child)
            child.detach()

    async def health(self) -> ProviderHealth | Mapping[str, Any]:
        """Return what the host's check says; of one that fails, the class of what it raised."""
        if self._closed:
            return ProviderHealth(status="unavailable", message="The provider is closed.")
        if self._health is None:
            return ProviderHealth(status="ready")
        try:
            answer = await self.pool.run(CancelSignal(_HEALTH_TIMEOUT_S), self._health)
            said = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the host's check; its text may hold anything
            return ProviderHealth(status="unavailable", message=f"The health check raised {type(error).__name__}.")
        return ProviderHealth(status="ready") if said is None else said

    async def close(self) -> None:
        """End what runs, take nothing more, and let the host close what is its own; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for signal in list(self._running):
            signal.cancel()
        self.pool.close()
        if self._aclose is not None:
            await self._errors.guard(_called(self._aclose))

    def _check_open(self) -> None:
        if self._closed:
            raise KnowledgeClosed from None


async def _called(function: Callable[[], object]) -> None:
    value = function()
    if inspect.isawaitable(value):
        await value
