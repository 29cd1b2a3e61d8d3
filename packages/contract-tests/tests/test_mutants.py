"""Every clause catches a provider that is wrong in just its way, and no other clause does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from qak_contract_tests import CLAUSES, Corpus, KnowledgeProviderContract
from qak_contract_tests.checking import find
from qak_contract_tests.mutants import MUTANTS, Mutant


def contract_of(mutant: type[Mutant]) -> KnowledgeProviderContract:
    class Contract(KnowledgeProviderContract):
        @asynccontextmanager
        async def open_provider(self, corpus: Corpus) -> AsyncIterator[Mutant]:
            yield mutant(corpus)

    mutant.process = {}
    return Contract()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutant_is_caught_by_just_the_clauses_meant(mutant: type[Mutant]) -> None:
    findings = [find(contract_of(mutant), clause_id) for clause_id in CLAUSES]
    broken = {finding.clause_id: finding.detail for finding in findings if not finding.passed}
    assert set(broken) == mutant.breaks, broken
    assert all(detail and "\n" not in detail for detail in broken.values())


def test_every_clause_catches_a_mutant_of_its_own() -> None:
    assert {clause_id for mutant in MUTANTS if len(mutant.breaks) == 1 for clause_id in mutant.breaks} >= (
        set(CLAUSES) - {"response.shape"}  # an answer of no known shape is by nature lost in the runtime too
    )
    assert {clause_id for mutant in MUTANTS for clause_id in mutant.breaks} == set(CLAUSES)


def test_every_mutant_says_what_is_wrong_with_it() -> None:
    assert all(mutant.__doc__ and mutant.__doc__ != Mutant.__doc__ for mutant in MUTANTS)
    assert len({mutant.__name__ for mutant in MUTANTS}) == len(MUTANTS)
