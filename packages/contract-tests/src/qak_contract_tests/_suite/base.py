"""What every part of the contract stands on: a provider that can be opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, ClassVar

from qak_contract_tests._probe import Probe, read_description
from qak_contract_tests._running import ClauseOutcome
from qak_contract_tests.corpus import CORPUS, Corpus


class ContractBase:
    """The settings of a contract, and the one method that opens the provider."""

    waivers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    filters: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"type": "eq", "key": "department", "value": CORPUS.department}
    )
    timeout_s: ClassVar[float] = 30.0

    corpus: ClassVar[Corpus] = CORPUS
    qak_outcome: ClauseOutcome | None = None
    qak_identity: Mapping[str, str] = MappingProxyType({"key": "", "label": ""})

    def open_provider(self, corpus: Corpus) -> AbstractAsyncContextManager[Any]:
        """Open the provider, seeded with every document of the corpus; called anew for each clause.

        Args:
            corpus: what to seed. ``corpus.secret`` is to be the vendor's API key, password or token, if it takes one.

        Returns:
            An async context manager that gives the provider, and takes everything down again. The provider may have
            been closed by then.
        """
        raise TypeError(f"{type(self).__name__} must override open_provider")

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Probe]:
        """Open a provider for the clauses to ask."""
        manager = self.open_provider(self.corpus)
        if not isinstance(manager, AbstractAsyncContextManager):
            raise TypeError(
                f"open_provider must return an async context manager, got {type(manager).__name__}; "
                "write it with @contextlib.asynccontextmanager"
            )
        async with manager as provider:
            described = read_description(provider)
            self.qak_identity = {
                name: value if isinstance(value := described.get(name), str) else "" for name in ("key", "label")
            }
            yield Probe(provider, self.corpus, self.filters)
