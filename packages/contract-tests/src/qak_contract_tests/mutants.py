"""Wrong providers, at least one for each clause: each is the reference provider with a fault that happens in practice.

They prove that the suite finds what it says it finds, and show an author what a failing clause is about:
``MUTANTS`` lists the classes, ``breaks`` names the clauses that catch them.
"""

from qak_contract_tests._mutants import answering, asking, describing, guarding, working
from qak_contract_tests._mutants.base import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant", "answering", "asking", "describing", "guarding", "working"]
