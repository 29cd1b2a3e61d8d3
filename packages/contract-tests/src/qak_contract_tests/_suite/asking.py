"""What a request may ask for (protocol section 2)."""

from __future__ import annotations

from qak_contract_tests._hits import documents_of, snapshot
from qak_contract_tests._probe import HOSTILE_QUERIES, Probe
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_core import KnowledgeError, RetrievalRequest


class AskingClauses(ContractBase):
    """Clauses on requests."""

    @clause("request.query.hostile")
    async def test_any_text_is_answered(self, probe: Probe) -> None:
        for query in HOSTILE_QUERIES:
            error = await probe.refusal(query)
            if error is not None:
                fail(f"the query {query[:40]!r} must be answered as text, it raised {type(error).__name__}")

    @clause("request.top_k")
    async def test_answer_has_no_more_than_top_k_results(self, probe: Probe) -> None:
        for top_k in range(1, 9):
            found = len(await probe.find(probe.corpus.common_query, top_k=top_k))
            if found > top_k:
                fail(f"top_k={top_k} must give at most {top_k} results, got {found}")

    @clause("request.top_k.full")
    async def test_answer_has_top_k_results_when_more_match(self, probe: Probe) -> None:
        for top_k in range(1, 9):
            found = len(await probe.find(probe.corpus.common_query, top_k=top_k))
            if found < top_k:
                fail(f"top_k={top_k} must give {top_k} results when more documents match, got {found}")

    @clause("request.filters")
    async def test_filters_are_applied_or_refused(self, probe: Probe) -> None:
        query, corpus = probe.corpus.common_query, probe.corpus
        if not probe.declares("filters"):
            error = await probe.refusal(query, filters=probe.filters)
            if getattr(error, "code", None) != "knowledge_filters_unsupported":
                fail(f"undeclared filters must be refused with knowledge_filters_unsupported, got {_said(error)}")
            return
        wanted = {document.id for document in corpus.documents if document.metadata["department"] == corpus.department}
        hits = await probe.find(query, filters=probe.filters, top_k=8)
        if not hits:
            fail(f"the filter {dict(probe.filters)!r} must find the {corpus.department} documents, got none")
        for hit in hits:
            if strangers := documents_of(hit, corpus) - wanted:
                fail(f"the filter {dict(probe.filters)!r} must be applied, it let {strangers!r} through")

    @clause("request.knowledge_base_ids")
    async def test_only_the_knowledge_bases_asked_for_are_searched(self, probe: Probe) -> None:
        corpus = probe.corpus
        for base_id in corpus.knowledge_base_ids:
            outcome = await probe.outcome(corpus.common_query, knowledge_base_ids=(base_id,), top_k=8)
            if not probe.declares("knowledge_bases"):
                if outcome and getattr(outcome, "code", None) != "knowledge_base_unknown":
                    fail(f"knowledge bases are undeclared, so {base_id!r} must be refused with knowledge_base_unknown")
                continue
            if isinstance(outcome, Exception) or not outcome:
                fail(f"knowledge base {base_id!r} must be searched, got {_said(outcome)}")
            inside = {document.id for document in corpus.documents if document.knowledge_base_id == base_id}
            for hit in outcome if isinstance(outcome, list) else ():
                if strangers := documents_of(hit, corpus) - inside:
                    fail(f"only knowledge base {base_id!r} was asked for, got {strangers!r}")

    @clause("request.knowledge_base_ids.unknown")
    async def test_unknown_knowledge_base_never_widens_the_search(self, probe: Probe) -> None:
        corpus = probe.corpus
        known = corpus.knowledge_base_ids[0]
        inside = {document.id for document in corpus.documents if document.knowledge_base_id == known}
        for ids, allowed in (
            (("no-such-base",), set[str]()),
            (("*",), set()),
            (("%",), set()),
            (("no-such-base", known), inside),
        ):
            found = await probe.documents(corpus.common_query, knowledge_base_ids=ids, top_k=8)
            if found - allowed:
                fail(f"knowledge bases {ids!r} must be refused or find nothing else, got {found - allowed!r}")

    @clause("request.unchanged")
    async def test_request_and_context_stay_as_they_were(self, probe: Probe) -> None:
        request = RetrievalRequest(
            query=probe.corpus.common_query,
            filters=probe.filters if probe.declares("filters") else None,
            knowledge_base_ids=probe.corpus.knowledge_base_ids if probe.declares("knowledge_bases") else (),
        )
        context = probe.context()
        trusted = (context.owner_id, context.session_id, context.turn_id, context.trace_id, context.signal)
        before = snapshot(request)
        await probe.retrieve(request, context)
        if snapshot(request) != before:
            fail(f"a request must stay as it was, {before!r} became {snapshot(request)!r}")
        if (context.owner_id, context.session_id, context.turn_id, context.trace_id, context.signal) != trusted:
            fail("a context must stay as it was")


def _said(outcome: object) -> str:
    if isinstance(outcome, KnowledgeError):
        return outcome.code
    return type(outcome).__name__ if isinstance(outcome, Exception) else "an answer"
