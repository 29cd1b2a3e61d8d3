"""What every wrong provider is: the reference provider with one fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from qak_contract_tests.corpus import Corpus
from qak_contract_tests.reference import CAPABILITIES, ReferenceProvider


class Mutant(ReferenceProvider):
    """A provider with one fault.

    Attributes:
        breaks: ids of the clauses that find the fault; more than one only where it is by nature several.
        offers: the capabilities it has.
        process: what its module would keep globally; the tests give each clause a fresh one.
    """

    breaks: ClassVar[frozenset[str]]
    offers: ClassVar[frozenset[str]] = CAPABILITIES
    process: ClassVar[dict[str, Any]]

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus, capabilities=self.offers)


_M = TypeVar("_M", bound=type[Mutant])

MUTANTS: list[type[Mutant]] = []


def breaks(*clause_ids: str) -> Callable[[_M], _M]:
    """Say which clauses a mutant breaks, and list it."""

    def mark(mutant: _M) -> _M:
        mutant.breaks = frozenset(clause_ids)
        MUTANTS.append(mutant)
        return mutant

    return mark
