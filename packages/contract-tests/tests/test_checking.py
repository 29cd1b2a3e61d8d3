"""The clauses that need no corpus, without pytest."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial

import pytest

from qak_contract_tests import CLAUSES, CORPUS, ReferenceProvider, check_provider
from qak_contract_tests._hits import read_hits
from qak_contract_tests.mutants import MUTANTS, Mutant


@asynccontextmanager
async def opened(provider, corpus=CORPUS):
    yield provider(corpus)


def test_right_provider_passes_every_clause_that_needs_no_corpus() -> None:
    findings = check_provider(partial(opened, ReferenceProvider))
    assert [finding for finding in findings if not finding.passed] == []
    assert [finding.clause_id for finding in findings] == [
        clause_id for clause_id, clause in CLAUSES.items() if not clause.needs_corpus
    ]
    assert len(findings) >= 25


def test_provider_without_any_document_passes() -> None:
    findings = check_provider(partial(opened, ReferenceProvider), owner_id="nobody")
    assert all(finding.passed for finding in findings), findings


@pytest.mark.parametrize("name", ["VersionIsText", "CancelledIsLate", "HealthIsOk", "ScoreIsText"])
def test_wrong_provider_is_found_with_a_line_on_why(name: str) -> None:
    mutant: type[Mutant] = next(mutant for mutant in MUTANTS if mutant.__name__ == name)
    failed = [finding for finding in check_provider(partial(opened, mutant)) if not finding.passed]
    assert {finding.clause_id for finding in failed} == mutant.breaks
    assert all(finding.detail and "\n" not in finding.detail for finding in failed)


def test_what_is_no_provider_fails_without_an_exception() -> None:
    findings = check_provider(partial(opened, lambda corpus: object()))
    assert {finding.clause_id for finding in findings if not finding.passed} >= {"provider.shape", "describe.version"}


@pytest.mark.parametrize("ending", [SystemExit(0), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_provider_that_would_end_the_program_breaks_clauses_instead(ending: BaseException) -> None:
    class Ending(ReferenceProvider):
        async def retrieve(self, request, context):
            raise ending

    failed = [finding for finding in check_provider(partial(opened, Ending)) if not finding.passed]
    assert failed
    assert any(type(ending).__name__ in finding.detail for finding in failed)


def test_answer_without_an_end_is_read_to_a_bound() -> None:
    assert len(read_hits({"id": str(number), "content": "x"} for number in itertools.count())) == 1000


def test_finding_shows_no_key_that_a_vendor_put_into_its_error() -> None:
    def broken(corpus: object) -> object:
        raise ValueError("no such api_key: 7Qm2xT9bWc4aaa, sent as Bearer 7Qm2xT9bWc4aaa")

    findings = check_provider(partial(opened, broken))
    assert not any(finding.passed for finding in findings)
    assert all(finding.detail.startswith("ValueError: no such") for finding in findings)
    assert not any("7Qm2xT9bWc4aaa" in finding.detail for finding in findings)


def test_check_needs_no_pytest() -> None:
    program = "import sys; from qak_contract_tests import check_provider; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
