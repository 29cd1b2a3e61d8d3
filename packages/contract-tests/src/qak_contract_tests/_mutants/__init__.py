"""The wrong providers, one module for each side of the contract; :mod:`qak_contract_tests.mutants` has them all."""
