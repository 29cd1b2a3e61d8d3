"""The class that an adapter's author subclasses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from qak_contract_tests._suite.answering import AnsweringClauses
from qak_contract_tests._suite.asking import AskingClauses
from qak_contract_tests._suite.describing import DescribingClauses
from qak_contract_tests._suite.guarding import GuardingClauses
from qak_contract_tests._suite.living import LivingClauses
from qak_contract_tests._suite.owning import OwningClauses
from qak_contract_tests._suite.signalling import SignallingClauses
from qak_contract_tests.clauses import CLAUSES


class KnowledgeProviderContract(
    DescribingClauses,
    AnsweringClauses,
    AskingClauses,
    OwningClauses,
    SignallingClauses,
    LivingClauses,
    GuardingClauses,
):
    """Every clause of protocol 1 that a provider can keep or break, as plain tests.

    Subclass it in a test module under a name that starts with ``Test`` and override :meth:`open_provider`; pytest does
    the rest. Fixtures may be used through autouse fixtures of the subclass. No test can be overridden: what a provider
    cannot keep is waived, with the reason.

    Attributes:
        waivers: clause id to the reason why this provider does not keep it. The clause still runs: a provider that
            keeps a waived clause fails, so that no waiver outlives its reason.
        filters: how the host writes "department is finance" for this vendor, where ``filters`` is declared; by default
            in the grammar of :mod:`qak_core.authoring`.
        timeout_s: seconds that one clause may take, opening and closing included.
    """

    __test__ = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Check the subclass when it is made.

        Raises:
            TypeError: it overrides a test, waives what is no clause or gives no reason, or is a test class that does
                not open a provider.
        """
        super().__init_subclass__(**arguments)
        problems = [
            f"{name} may not be overridden; waive {clause_id!r} with a reason instead"
            for clause_id, name in TESTS.items()
            if getattr(cls, name, None) is not getattr(KnowledgeProviderContract, name)
        ]
        problems += [
            f"{clause_id!r} is waived but is no clause" for clause_id in cls.waivers if clause_id not in CLAUSES
        ]
        problems += [
            f"the waiver of {clause_id!r} needs a reason"
            for clause_id, reason in cls.waivers.items()
            if not isinstance(reason, str) or not reason.strip()
        ]
        opens = cls.open_provider is not KnowledgeProviderContract.open_provider
        if cls.__name__.startswith("Test") and not opens:
            problems.append("open_provider must be overridden: an async context manager that gives the seeded provider")
        if problems:
            raise TypeError(f"{cls.__name__}: {'; '.join(problems)}")
        cls.__test__ = opens and cls.__name__.startswith("Test")


TESTS: Mapping[str, str] = MappingProxyType(
    {
        member.qak_clause.id: name
        for name in dir(KnowledgeProviderContract)
        if hasattr(member := getattr(KnowledgeProviderContract, name), "qak_clause")
    }
)
"""Clause id to the name of its test."""
