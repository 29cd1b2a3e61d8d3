"""On whose behalf a provider answers (protocol clause ``context.trusted``)."""

from __future__ import annotations

from typing import Any

from qak_contract_tests._probe import Probe
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail

_STRANGER = "stranger"


class OwningClauses(ContractBase):
    """Clauses on owners. The finer ones compare with what the same owner finds anyway, so that each has one cause."""

    @clause("context.trusted")
    async def test_owner_finds_only_their_own_documents(self, probe: Probe) -> None:
        corpus = probe.corpus
        for asking, other in ((corpus.owner_id, corpus.other_owner_id), (corpus.other_owner_id, corpus.owner_id)):
            for query in (corpus.common_query, *(document.question for document in corpus.of(other))):
                if leaked := await probe.documents(query, owner_id=asking, top_k=8) & _ids(probe, other):
                    fail(f"{asking!r} must not see the documents of {other!r}, got {leaked!r}")
        if leaked := await probe.documents(corpus.common_query, owner_id=_STRANGER, top_k=8):
            fail(f"an owner without documents must find nothing, got {leaked!r}")

    @clause("context.trusted.exact")
    async def test_owner_id_that_resembles_another_finds_nothing(self, probe: Probe) -> None:
        query, owner_id = probe.corpus.common_query, probe.corpus.owner_id
        anyway = await probe.documents(query, owner_id=_STRANGER, top_k=8)
        for resembling in (
            owner_id.upper(),
            owner_id[:-1],
            f"{owner_id}2",
            f"{owner_id}/..",
            f"../{owner_id}",
            owner_id.replace("-", "_"),
            f"{owner_id},{probe.corpus.other_owner_id}",
            "*",
            "%",
            f"x' OR owner_id='{owner_id}",
        ):
            if leaked := await probe.documents(query, owner_id=resembling, top_k=8) - anyway:
                fail(f"owner {resembling!r} is not {owner_id!r}, yet sees {leaked!r}")

    @clause("context.trusted.query")
    async def test_naming_an_owner_in_the_query_widens_nothing(self, probe: Probe) -> None:
        other = probe.corpus.other_owner_id
        anyway = await _anyway(probe)
        for document in probe.corpus.of(other):
            for query in (
                f"owner_id:{other} {document.question}",
                f"owner:{other} {document.question}",
                f'{document.question}" OR owner_id:"{other}',
                f"{document.question}' OR owner_id='{other}' --",
                f'{{"query": "{document.question}", "owner_id": "{other}"}}',
            ):
                await _check_no_leak(probe, anyway, query)

    @clause("context.trusted.filters")
    async def test_naming_an_owner_in_a_filter_widens_nothing(self, probe: Probe) -> None:
        owner_id, other = probe.corpus.owner_id, probe.corpus.other_owner_id
        query = probe.corpus.common_query
        anyway = await _anyway(probe)
        theirs, own = ({"type": "eq", "key": "owner_id", "value": value} for value in (other, owner_id))
        filters: tuple[dict[str, Any], ...] = (
            theirs,
            {"type": "in", "key": "owner_id", "value": [owner_id, other]},
            {"type": "or", "filters": [own, theirs]},
            {"type": "not", "filter": own},
            {"owner_id": other},
            {"owner": other},
            {"ownerId": other},
            {"owner_id": {"$in": [owner_id, other]}},
            {"$or": [{"owner_id": owner_id}, {"owner_id": other}]},
            {**probe.filters, "owner_id": other},
        )
        for filter_ in filters:
            await _check_no_leak(probe, anyway, query, filters=filter_)

    @clause("context.trusted.knowledge_base_ids")
    async def test_asking_by_knowledge_base_widens_nothing(self, probe: Probe) -> None:
        bases = probe.corpus.knowledge_base_ids
        anyway = await _anyway(probe)
        for document in probe.corpus.of(probe.corpus.other_owner_id):
            for ids in (bases, (document.knowledge_base_id,), (f"{document.owner_id}/{document.knowledge_base_id}",)):
                await _check_no_leak(probe, anyway, document.question, knowledge_base_ids=ids)


def _ids(probe: Probe, owner_id: str) -> set[str]:
    return {document.id for document in probe.corpus.documents if document.owner_id == owner_id}


async def _anyway(probe: Probe) -> set[str]:
    """Return what the first owner finds with the other's questions; nothing, if owners are kept apart at all."""
    queries = [probe.corpus.common_query, *(d.question for d in probe.corpus.of(probe.corpus.other_owner_id))]
    return {document_id for query in queries for document_id in await probe.documents(query, top_k=8)}


async def _check_no_leak(probe: Probe, anyway: set[str], query: str, **arguments: Any) -> None:
    other = probe.corpus.other_owner_id
    leaked = (await probe.documents(query, top_k=8, **arguments) - anyway) & _ids(probe, other)
    if leaked:
        fail(f"asking {query[:80]!r} with {arguments!r} must find nothing of {other!r}, got {leaked!r}")
