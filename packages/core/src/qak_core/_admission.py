"""Who may start a retrieval: bounds in flight, and the circuit breaker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from qak_core.errors import (
    KnowledgeBusy,
    KnowledgeError,
    KnowledgeFailed,
    KnowledgeInvalidResponse,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)

_PROVIDER_AT_FAULT = (
    KnowledgeFailed,
    KnowledgeInvalidResponse,
    KnowledgeRateLimited,
    KnowledgeTimeout,
    KnowledgeUnauthorized,
    KnowledgeUnavailable,
)


class InFlight:
    """Counts running retrievals, so that deaf providers cannot pile up (clause ``runtime.in_flight``)."""

    def __init__(self, *, total: int, per_owner: int) -> None:
        self._total = total
        self._per_owner = per_owner
        self._owners: Counter[str] = Counter()

    def enter(self, owner_id: str) -> Callable[[], None]:
        """Take a place and return the function that gives it back, to be called once.

        Raises:
            KnowledgeBusy: no place is free.
        """
        if self._owners.total() >= self._total or self._owners[owner_id] >= self._per_owner:
            raise KnowledgeBusy
        self._owners[owner_id] += 1

        def leave() -> None:
            self._owners[owner_id] -= 1
            if not self._owners[owner_id]:
                del self._owners[owner_id]

        return leave


class Breaker:
    """Skips a provider that keeps failing (clause ``runtime.breaker``).

    After ``failures`` consecutive faults of the provider calls are refused for ``cooldown_s`` seconds; then one call
    probes it while the others are still refused. ``failures=0`` turns it off.
    """

    def __init__(self, *, failures: int, cooldown_s: float) -> None:
        self._limit = failures
        self._cooldown_s = cooldown_s
        self._failures = 0
        self._open_until = 0.0

    @property
    def open(self) -> bool:
        """Whether calls are being refused."""
        return self._tripped and time.monotonic() < self._open_until

    @property
    def _tripped(self) -> bool:
        return 0 < self._limit <= self._failures

    def check(self) -> None:
        """Let a call through, or refuse it.

        Raises:
            KnowledgeUnavailable: the provider is being skipped.
        """
        if self.open:
            raise KnowledgeUnavailable
        if self._tripped:  # this call is the probe; the next one waits for its outcome
            self._open_until = time.monotonic() + self._cooldown_s

    def record(self, error: KnowledgeError | None) -> None:
        """Take note of how a call ended; what is not the provider's fault changes nothing."""
        if error is None:
            self._failures = 0
        elif isinstance(error, _PROVIDER_AT_FAULT):
            self._failures += 1
            self._open_until = time.monotonic() + self._cooldown_s
