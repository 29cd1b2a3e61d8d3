"""``qak check``: the clauses of protocol 1 that can be judged without the suite's own documents."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from qak_core import CompositionError
from qak_gateway._terminal import busy, note, write_table
from qak_gateway.configuration import find_configuration, importable_from, open_runtime, read_configuration
from qak_gateway.outcome import FOUND, PROVIDER_FAILED

_SUITE = "qak_contract_tests"  # not a dependency: it needs pytest


async def check(target: str | None, *, owner_id: str, config: Path | None) -> int:
    """Run the clauses, write a table of them and return the exit code.

    Args:
        target: an adapter's name or ``module:factory``, with the settings of the configuration if that names the same
            one and without settings otherwise; ``None`` for the configured provider.
        owner_id: on whose behalf to ask; the clauses on results judge what is found for this owner.
        config: the configuration file, if it was named.
    """
    try:
        suite = import_module(_SUITE)
    except ModuleNotFoundError as error:
        if error.name != _SUITE:
            raise
        raise CompositionError("the clauses are in another package: pip install qak-contract-tests") from None

    configuration = read_configuration(find_configuration(config))
    if target is not None:
        importable_from(Path.cwd())
        settings = configuration.settings if target == configuration.adapter else {}
        configuration = replace(configuration, adapter=target, settings=settings)

    @contextlib.asynccontextmanager
    async def open_provider() -> AsyncIterator[Any]:
        provider = configuration.make_provider()
        try:
            yield provider
        finally:
            if close := getattr(provider, "close", None):
                await close()

    async with open_runtime(configuration) as runtime:
        health = await runtime.health()  # what is wrong is said here once, not by every clause
    with configuration.directory(), contextlib.redirect_stdout(sys.stderr), busy("checking"):
        findings = await asyncio.to_thread(suite.check_provider, open_provider, owner_id=owner_id)
    rows = [(finding.clause_id, "kept" if finding.passed else "broken", finding.detail) for finding in findings]
    write_table(("clause", "outcome", "detail"), rows)
    broken = sum(not finding.passed for finding in findings)
    note(f"{len(findings)} clauses checked, {broken} broken")
    if broken and not health.ok:
        note(f"clauses that need an answer had none: the provider is {health.status}. {health.message}".rstrip())
    return PROVIDER_FAILED if broken else FOUND
