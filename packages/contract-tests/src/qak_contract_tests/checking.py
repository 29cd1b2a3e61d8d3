"""The clauses that need no seeding, for a provider that is already there; without pytest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from qak_contract_tests.clauses import CLAUSES
from qak_contract_tests.contract import TESTS, KnowledgeProviderContract
from qak_contract_tests.corpus import CORPUS, Corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What came of one clause.

    Attributes:
        clause_id: key of :data:`~qak_contract_tests.CLAUSES`.
        passed: whether the provider keeps the clause.
        detail: one line, what was got and what was expected; empty when passed.
    """

    clause_id: str
    passed: bool
    detail: str = ""


def check_provider(
    open_provider: Callable[[], AbstractAsyncContextManager[Any]],
    *,
    owner_id: str = CORPUS.owner_id,
    timeout_s: float = 30.0,
) -> list[Finding]:
    """Run the clauses that need no corpus against a provider, each in an event loop of its own.

    The queries are those of the corpus. Where the provider finds nothing for them, the clauses on results have nothing
    to object to.

    Args:
        open_provider: opens the provider anew, once or more for each clause.
        owner_id: in whose name to ask.
        timeout_s: seconds that one clause may take.

    Returns:
        One finding a clause, in the order of the registry.
    """
    checked = type(
        "CheckedProvider",
        (KnowledgeProviderContract,),
        {"corpus": _asked_by(owner_id), "timeout_s": timeout_s, "open_provider": lambda _, __: open_provider()},
    )
    return [find(checked(), clause_id) for clause_id, clause in CLAUSES.items() if not clause.needs_corpus]


def find(contract: KnowledgeProviderContract, clause_id: str) -> Finding:
    """Run one clause of a contract, and say what came of it."""
    try:
        getattr(contract, TESTS[clause_id])()
    except Exception:  # noqa: BLE001 - the contract keeps what it was
        assert contract.qak_outcome is not None
        return Finding(clause_id=clause_id, passed=False, detail=contract.qak_outcome.detail)
    return Finding(clause_id=clause_id, passed=True)


def _asked_by(owner_id: str) -> Corpus:
    documents = (
        replace(document, owner_id=owner_id) if document.owner_id == CORPUS.owner_id else document
        for document in CORPUS.documents
    )
    return replace(CORPUS, owner_id=owner_id, documents=tuple(documents))
