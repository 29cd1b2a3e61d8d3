"""The names that authors and tools rely on."""

from __future__ import annotations

import pytest

import qak_contract_tests


def test_exported_names_are_these_and_can_be_had() -> None:
    assert qak_contract_tests.__all__ == [
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
    for name in qak_contract_tests.__all__:
        assert getattr(qak_contract_tests, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = qak_contract_tests.nothing
