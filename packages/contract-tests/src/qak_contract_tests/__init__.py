"""The contract of knowledge-provider protocol 1, as tests for those who write a provider."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qak_contract_tests.checking import Finding, check_provider
    from qak_contract_tests.clauses import CLAUSES, Clause, ContractViolation
    from qak_contract_tests.contract import KnowledgeProviderContract
    from qak_contract_tests.corpus import CORPUS, Corpus, Document
    from qak_contract_tests.embedding import toy_embedding
    from qak_contract_tests.reference import ReferenceProvider

__all__ = [
    "CLAUSES",
    "CORPUS",
    "Clause",
    "ContractViolation",
    "Corpus",
    "Document",
    "Finding",
    "KnowledgeProviderContract",
    "ReferenceProvider",
    "check_provider",
    "toy_embedding",
]

_HOMES = {
    "checking": ("Finding", "check_provider"),
    "clauses": ("CLAUSES", "Clause", "ContractViolation"),
    "contract": ("KnowledgeProviderContract",),
    "corpus": ("CORPUS", "Corpus", "Document"),
    "embedding": ("toy_embedding",),
    "reference": ("ReferenceProvider",),
}


def __getattr__(name: str) -> object:
    # pytest imports this package in every run of an environment, for its plugin: nothing else may come with it.
    for module, members in _HOMES.items():
        if name in members:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
