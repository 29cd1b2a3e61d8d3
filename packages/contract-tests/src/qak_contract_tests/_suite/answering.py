"""What a provider answers (protocol section 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qak_contract_tests._hits import Hit, documents_of, names, snapshot, vandalise
from qak_contract_tests._plain import field_problems, foreign_objects, metadata_problems, score_problem
from qak_contract_tests._probe import Probe
from qak_contract_tests._suite.base import ContractBase
from qak_contract_tests.clauses import clause, fail
from qak_core import RetrievalResult, from_wire, to_wire


class AnsweringClauses(ContractBase):
    """Clauses on answers and results."""

    @clause("response.shape")
    async def test_answer_is_or_holds_a_sequence(self, probe: Probe) -> None:
        answer = await probe.ask(probe.corpus.common_query)
        found = answer
        if not isinstance(answer, Sequence):
            found = answer.get("results") if isinstance(answer, Mapping) else getattr(answer, "results", None)
        if not isinstance(found, Sequence) or isinstance(found, str | bytes):
            fail(f"an answer must be a sequence of results or hold one as results, got {type(answer).__name__}")
        for result in found:
            if not isinstance(result, Mapping | RetrievalResult):
                fail(f"a result must be a mapping or a RetrievalResult, got {type(result).__name__}")

    @clause("response.fields")
    async def test_every_field_has_its_type(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                if not isinstance(hit.content, str) or not hit.content.strip():
                    fail(f"content must be text that is not blank, got {hit.content!r} in result {hit.id!r}")
                for problem in field_problems(hit):
                    fail(f"{problem}, in result {hit.id!r}")

    @clause("response.content")
    async def test_text_belongs_to_the_document_that_the_result_names(self, probe: Probe) -> None:
        corpus = probe.corpus
        for document in corpus.of(corpus.owner_id):
            hits = await probe.find(document.question)
            for hit in hits[:1]:
                text = str(hit.content).casefold()
                strangers = [
                    other.id
                    for other in corpus.documents
                    if not names(hit, other) and any(word.casefold() in text for word in other.words)
                ]
                if strangers and any(names(hit, other) for other in corpus.documents):
                    fail(f"result {hit.id!r} names {_named(hit, probe)} but its text is of {strangers[0]!r}")

    @clause("response.id")
    async def test_every_result_has_an_id(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                is_text = isinstance(hit.id, str) and bool(hit.id.strip())
                if not is_text and (isinstance(hit.id, bool) or not isinstance(hit.id, int)):
                    fail(
                        f"an id must be text or a whole number, got {hit.id!r}; derive one, as stable_id() of the core"
                    )

    @clause("response.id.unique")
    async def test_no_two_results_share_an_id(self, probe: Probe) -> None:
        for hits in await probe.answers():
            ids = [str(hit.id) for hit in hits if hit.id is not None]
            if len(set(ids)) < len(ids):
                fail(f"ids must differ within an answer, got {ids!r}; all but the first of equal ids would be dropped")

    @clause("response.id.stable")
    async def test_ids_are_the_same_at_the_next_call(self, probe: Probe) -> None:
        first, again = [[hit.id for hits in await probe.answers() for hit in hits] for _ in range(2)]
        if first != again:
            old, new = next(((old, new) for old, new in zip(first, again, strict=False) if old != new), (first, again))
            fail(f"the same question must get the same ids, got {old!r} and then {new!r}")

    @clause("response.order")
    async def test_best_document_comes_first(self, probe: Probe) -> None:
        for document in probe.corpus.of(probe.corpus.owner_id):
            hits = await probe.find(document.question)
            if not probe.holds(hits[:1], document):
                found = [sorted(documents_of(hit, probe.corpus)) or hit.id for hit in hits]
                fail(f"{document.question!r} must find {document.id!r} first, got {found!r}")

    @clause("response.score")
    async def test_scores_are_finite_numbers(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                if problem := score_problem(hit.score):
                    fail(f"{problem}, in result {hit.id!r}")

    @clause("response.score.declared")
    async def test_scores_are_there_exactly_where_declared(self, probe: Probe) -> None:
        declared = probe.declares("scores")
        for hits in await probe.answers():
            for hit in hits:
                if (hit.score is not None) is not declared:
                    fail(f"capability scores is {declared}, but result {hit.id!r} has the score {hit.score!r}")

    @clause("response.score.direction")
    async def test_scores_never_rise_along_an_answer(self, probe: Probe) -> None:
        for hits in await probe.answers():
            scores = [hit.score for hit in hits if hit.score is not None and score_problem(hit.score) is None]
            if scores != sorted(scores, reverse=True):
                fail(f"higher scores must be better, in order, got {scores!r}; turn distances round or leave them out")

    @clause("response.metadata")
    async def test_metadata_is_flat(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                for problem in metadata_problems(hit.metadata):
                    fail(f"{problem}, in result {hit.id!r}; flatten_metadata() of the core makes it so")

    @clause("response.plain")
    async def test_answer_holds_no_foreign_object(self, probe: Probe) -> None:
        for document in probe.corpus.of(probe.corpus.owner_id):
            for position, hit in enumerate(await probe.find(document.question)):
                for found in foreign_objects(hit.raw, f"results[{position}]"):
                    fail(f"{found}; only built-in values and those of the core may leave a provider")

    @clause("response.json")
    async def test_answer_survives_strict_json(self, probe: Probe) -> None:
        for hits in await probe.answers():
            for hit in hits:
                try:
                    _check_round_trip(hit)
                except (TypeError, ValueError) as error:
                    fail(f"result {hit.id!r} cannot be written as strict JSON: {type(error).__name__}: {error}")

    @clause("response.fresh")
    async def test_changing_an_answer_changes_nothing_else(self, probe: Probe) -> None:
        query = probe.corpus.common_query
        first = _contents(await probe.find(query))
        vandalise(await probe.ask(query))
        again = _contents(await probe.find(query))
        if first != again:
            fail("an answer that the caller changed came back changed; build each from fresh values")

    @clause("response.not_found")
    async def test_finding_nothing_is_an_empty_answer(self, probe: Probe) -> None:
        for query, owner_id in (
            (probe.corpus.missing_query, probe.corpus.owner_id),
            (probe.corpus.common_query, "owner-without-documents"),
        ):
            try:
                answer = await probe.ask(query, owner_id=owner_id)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong here
                fail(f"finding nothing must be an empty answer, it raised {type(error).__name__}")
            if answer is None:
                fail("finding nothing must be an empty answer, got None")


def _contents(hits: Sequence[Hit]) -> object:
    return snapshot([(hit.content, hit.source, hit.metadata) for hit in hits])


def _named(hit: Hit, probe: Probe) -> str:
    return ", ".join(repr(document.id) for document in probe.corpus.documents if names(hit, document))


def _check_round_trip(hit: Hit) -> None:
    raw: Any = hit.raw
    wire = to_wire(raw) if isinstance(raw, RetrievalResult) else raw
    read = json.loads(json.dumps(wire, ensure_ascii=False, allow_nan=False).encode())
    if read != snapshot(wire):
        fail(f"result {hit.id!r} does not read back from JSON as it was written: {wire!r}")
    sound = type(hit.id) is str and isinstance(hit.content, str) and score_problem(hit.score) is None
    if not sound or [*field_problems(hit), *metadata_problems(hit.metadata)]:
        return  # clauses of their own are about that
    again = from_wire(RetrievalResult, read)
    if isinstance(raw, RetrievalResult) and snapshot(again) != snapshot(raw):
        fail(f"result {hit.id!r} does not survive to_wire() and from_wire(): {raw!r}")
