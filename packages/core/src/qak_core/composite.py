"""Several providers as one (protocol section 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from qak_core.answers import KnowledgeAnswer
from qak_core.authoring.fan_out import fan_out
from qak_core.errors import KnowledgeBaseUnknown, ProviderContractError
from qak_core.protocol import (
    KnowledgeBase,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalResult,
)
from qak_core.runtime import KnowledgeRuntime

_ALL: tuple[str, ...] = ()


class CompositeProvider:
    """Asks several providers at once and interleaves what they find by rank, so that none can starve another.

    Each side has a runtime of its own, and with it a deadline, bounds and a circuit breaker: one that fails or hangs
    leaves a degraded answer. Result ids are prefixed with the side's name. The knowledge bases of all sides are
    published together; a side without any is one knowledge base, named like the side.

    Attributes:
        sides: name to the side's runtime, for its description, health and management.
    """

    def __init__(
        self,
        sides: Mapping[str, object],
        *,
        key: str = "composite",
        label: str = "Composite",
        **runtime_options: Any,
    ) -> None:
        """Compose the sides.

        Args:
            sides: name to provider; a name is at most 40 characters without a colon.
            key: of the composite's own description.
            label: of the composite's own description.
            runtime_options: for the runtime of every side, such as ``timeout_s`` and ``breaker_failures``.

        Raises:
            ProviderContractError: no side, a name or knowledge-base id that is unusable or taken twice, or a side that
                does not follow the protocol.
        """
        problems = [
            f"a side's name must be 1 to 40 characters without a colon, got {name[:80]!r}"
            for name in sides
            if not 0 < len(name) <= 40 or ":" in name or name != name.strip()
        ]
        if not sides:
            problems.append("a composite needs at least one side, got none")
        if problems:
            raise ProviderContractError(problems, subject="the composite")
        self.sides = {name: KnowledgeRuntime(side, **runtime_options) for name, side in sides.items()}
        self._key = key
        self._label = label
        self._routes = self._plan_routes()

    def describe(self) -> ProviderDescription:
        """Describe the composite: it can do what all sides can, except that scores of two sides do not compare."""
        return ProviderDescription(
            key=self._key,
            label=self._label,
            capabilities={
                "filters": all(self._described(name).can("filters") for name in self.sides),
                "citations": any(self._described(name).can("citations") for name in self.sides),
                "scores": False,
                "knowledge_bases": True,
            },
            knowledge_bases=[base for base, _ in self._routes.values()],
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> RetrievalResponse:
        """Ask the sides that the request's knowledge bases belong to, all of them if it names none."""
        asked = self._route(request.knowledge_base_ids)
        degraded: list[str] = []

        async def ask(name: str) -> list[RetrievalResult]:
            answer = await self._ask(name, asked[name], request, context)
            degraded.extend(f"{name}: {part}" for part in answer.degraded)
            # Scores of two sides do not compare.
            return [replace(result, id=f"{name}:{result.id}", score=None) for result in answer.results]

        found = await fan_out({name: partial(ask, name) for name in asked}, context.signal)
        return RetrievalResponse(results=found.items, degraded=(*found.degraded, *degraded))

    async def health(self) -> ProviderHealth:
        """Be ready when all sides are, unavailable when none is usable, else degraded with the sides to look at."""
        healths = await self.side_health()
        troubled = {name: health for name, health in healths.items() if health.status != "ready"}
        if not troubled:
            return ProviderHealth(status="ready")
        message = "; ".join(f"{name} is {health.status}: {health.message}" for name, health in troubled.items())
        usable = any(health.ok for health in healths.values())
        return ProviderHealth(status="degraded" if usable else "unavailable", message=message)

    async def side_health(self) -> dict[str, ProviderHealth]:
        """Return the health of each side."""
        healths = await asyncio.gather(*(side.health() for side in self.sides.values()))
        return dict(zip(self.sides, healths, strict=True))

    async def close(self) -> None:
        """Close all sides."""
        await asyncio.gather(*(side.close() for side in self.sides.values()))

    def _described(self, name: str) -> ProviderDescription:
        description = self.sides[name].description
        assert description is not None  # a side that is None was refused at composition
        return description

    def _plan_routes(self) -> dict[str, tuple[KnowledgeBase, str]]:
        """Map each published knowledge-base id to its side."""
        routes: dict[str, tuple[KnowledgeBase, str]] = {}
        problems = []
        for name, side in self.sides.items():
            if side.description is None:
                problems.append(f"side {name!r} must be a provider, got nothing")
                continue
            whole = KnowledgeBase(id=name, label=side.description.label)
            for base in side.description.knowledge_bases or [whole]:
                if base.id in routes:
                    problems.append(f"knowledge base {base.id!r} belongs to both {routes[base.id][1]!r} and {name!r}")
                routes[base.id] = (base, name)
        if problems:
            raise ProviderContractError(problems, subject="the composite")
        return routes

    def _route(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the sides to ask, each with its own knowledge bases; none for a side that is asked as a whole."""
        if not ids:
            return dict.fromkeys(self.sides, _ALL)
        if not set(ids) <= set(self._routes):
            raise KnowledgeBaseUnknown
        asked: dict[str, tuple[str, ...]] = {}
        for base_id in ids:
            _, name = self._routes[base_id]
            own = (base_id,) if self._described(name).knowledge_bases else _ALL
            asked[name] = asked.get(name, _ALL) + own
        return asked

    async def _ask(
        self, name: str, ids: Sequence[str], request: RetrievalRequest, context: RetrievalContext
    ) -> KnowledgeAnswer:
        return await self.sides[name].search(
            request.query,
            owner_id=context.owner_id,
            session_id=context.session_id,
            trace_id=context.trace_id,
            top_k=request.top_k,
            knowledge_base_ids=ids,
            filters=request.filters,
            signal=context.signal,
        )
