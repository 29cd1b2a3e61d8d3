"""What the contract class asks of those who subclass it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, nullcontext

import pytest

from qak_contract_tests import (
    CLAUSES,
    ContractViolation,
    Corpus,
    KnowledgeProviderContract,
    ReferenceProvider,
    _running,
)
from qak_contract_tests._mutants.describing import KeyIsATitle
from qak_contract_tests._running import ClauseTimeout, StaleWaiver
from qak_contract_tests.contract import TESTS


class Reference(KnowledgeProviderContract):
    def open_provider(self, corpus: Corpus):
        return ReferenceProvider.open(corpus)


class WrongKey(KnowledgeProviderContract):
    def open_provider(self, corpus: Corpus):
        return KeyIsATitle.open(corpus)


def test_clauses_and_tests_are_bound_one_to_one() -> None:
    tests = {
        name: member
        for name in dir(KnowledgeProviderContract)
        if name.startswith("test") and callable(member := getattr(KnowledgeProviderContract, name))
    }
    assert {test.qak_clause.id: name for name, test in tests.items()} == TESTS
    assert set(TESTS) == set(CLAUSES)
    assert len(tests) == len(CLAUSES) >= 40


def test_clause_says_where_it_comes_from() -> None:
    for clause_id, clause in CLAUSES.items():
        assert clause.id == clause_id
        assert clause.title
        assert clause.protocol_section.isdigit()


def test_contract_itself_is_no_test_class() -> None:
    assert KnowledgeProviderContract.__test__ is False
    assert Reference.__test__ is False


def test_test_class_must_open_a_provider() -> None:
    with pytest.raises(TypeError, match="open_provider must be overridden"):
        type("TestMine", (KnowledgeProviderContract,), {})


def test_base_class_between_need_not_open_a_provider() -> None:
    base = type("VendorContract", (KnowledgeProviderContract,), {"timeout_s": 60.0})
    mine = type("TestMine", (base,), {"open_provider": Reference.open_provider})
    assert (base.__test__, mine.__test__) == (False, True)


def test_test_of_the_contract_cannot_be_overridden() -> None:
    members = {"open_provider": Reference.open_provider, TESTS["describe.key"]: lambda self: None}
    with pytest.raises(TypeError, match=r"waive 'describe\.key'"):
        type("TestMine", (KnowledgeProviderContract,), members)


def test_test_of_the_contract_cannot_be_overridden_by_a_mixin() -> None:
    mixin = type("Mixin", (), {TESTS["describe.key"]: None})
    with pytest.raises(TypeError, match="may not be overridden"):
        type("TestMine", (mixin, Reference), {})


@pytest.mark.parametrize(
    ("waivers", "problem"),
    [({"describe.colour": "no"}, "is no clause"), ({"describe.key": " "}, "needs a reason")],
)
def test_waiver_must_name_a_clause_and_a_reason(waivers: dict[str, str], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        type("TestMine", (Reference,), {"waivers": waivers})


def run(contract: type[KnowledgeProviderContract], clause_id: str) -> KnowledgeProviderContract:
    instance = contract()
    getattr(instance, TESTS[clause_id])()
    return instance


def test_violation_says_what_was_got_and_expected() -> None:
    with pytest.raises(ContractViolation, match=r"lower-case letters.*got 'Reference Provider'"):
        run(WrongKey, "describe.key")


def test_waived_clause_runs_and_is_reported_as_waived() -> None:
    waived = type("Waived", (WrongKey,), {"waivers": {"describe.key": "the key is older than the rule"}})
    outcome = run(waived, "describe.key").qak_outcome
    assert outcome is not None
    assert (outcome.outcome, outcome.detail) == ("waived", "the key is older than the rule")
    assert outcome.provider["label"] == "Reference provider"


def test_stale_waiver_fails() -> None:
    stale = type("Stale", (Reference,), {"waivers": {"describe.key": "the key is older than the rule"}})
    with pytest.raises(StaleWaiver, match="remove the waiver"):
        run(stale, "describe.key")


class Hanging(ReferenceProvider):
    async def retrieve(self, request, context):
        await asyncio.Event().wait()


class Blocking(ReferenceProvider):
    async def retrieve(self, request, context):
        time.sleep(1.0)  # noqa: ASYNC251 - this is the fault


@pytest.mark.parametrize(
    ("provider", "reason"), [(Hanging, "did not end within 0.1 s"), (Blocking, "the provider blocks it")]
)
def test_hanging_provider_fails_instead_of_hanging_the_run(monkeypatch, provider, reason) -> None:
    monkeypatch.setattr(_running, "_GRACE_S", 0.2)
    contract = type(
        "Contract", (KnowledgeProviderContract,), {"timeout_s": 0.1, "open_provider": lambda _, c: provider.open(c)}
    )
    with pytest.raises(ClauseTimeout, match=reason):
        run(contract, "response.order")


def test_violation_is_not_thrown_into_the_authors_context_manager() -> None:
    closed = []

    class Careless(KnowledgeProviderContract):
        @asynccontextmanager
        async def open_provider(self, corpus: Corpus):
            yield KeyIsATitle(corpus)
            closed.append(True)  # not in a finally clause

    with pytest.raises(ContractViolation):
        run(Careless, "describe.key")
    assert closed == [True]


def test_failing_to_open_is_a_failure_with_its_own_error() -> None:
    contract = type("Contract", (KnowledgeProviderContract,), {"open_provider": lambda _, __: nullcontext()})
    with pytest.raises(ContractViolation, match="describe must be a method, got NoneType"):
        run(contract, "provider.shape")

    undecorated = type("Undecorated", (KnowledgeProviderContract,), {"open_provider": lambda _, __: ReferenceProvider})
    with pytest.raises(TypeError, match=r"write it with @contextlib\.asynccontextmanager"):
        run(undecorated, "describe.key")

    class Broken(KnowledgeProviderContract):
        @asynccontextmanager
        async def open_provider(self, corpus: Corpus):
            raise ConnectionRefusedError("no server")
            yield

    with pytest.raises(ConnectionRefusedError):
        run(Broken, "describe.key")
