"""From a command's coroutine to an exit code: 0 found, 1 nothing found, 2 usage or configuration, 3 provider failed."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from qak_core import CompositionError, KnowledgeError, QakError
from qak_core.authoring import redact
from qak_gateway._terminal import note, one_line

FOUND, NOTHING_FOUND, USAGE, PROVIDER_FAILED = 0, 1, 2, 3

_USAGE_ADVICE = {
    "knowledge_query_required": "say what to search for",
    "knowledge_owner_required": "give --owner a name",
    "knowledge_base_unknown": "qak doctor lists the knowledge bases",
    "knowledge_invalid_request": "see qak search --help",
    "knowledge_filters_unsupported": "search without filters",
    "knowledge_unconfigured": "",  # of many reasons
}
_FAILURE_ADVICE = {
    "knowledge_timeout": "try again, or raise timeout_s in the [runtime] table of qak.toml",
    "knowledge_unauthorized": "check the credentials that the [provider] table of qak.toml refers to",
    "knowledge_rate_limited": "try again later",
    "knowledge_busy": "try again later",
    "knowledge_invalid_response": "the adapter does not follow protocol 1: qak check shows where",
}


def run(command: Coroutine[Any, Any, int]) -> int:
    """Run a command and return its exit code; whatever goes wrong becomes one message and a code."""
    try:
        return asyncio.run(_guarded(command))
    except SystemExit as end:  # of a provider; its code says nothing about the command
        note(f"the provider tried to end the program (SystemExit: {one_line(redact(str(end)))[:300]})")
        return PROVIDER_FAILED


def exit_code(error: KnowledgeError) -> int:
    """Return whether a search was asked for wrongly, or failed at the provider."""
    return USAGE if error.code in _USAGE_ADVICE else PROVIDER_FAILED


def advice(error: KnowledgeError, *, otherwise: str = "qak doctor looks for the reason") -> str:
    """Return what to do about a failed search, or something else where the code alone does not tell."""
    return {**_USAGE_ADVICE, **_FAILURE_ADVICE}.get(error.code) or otherwise


def explain(error: KnowledgeError) -> str:
    """Return what went wrong and what to do about it."""
    return f"{error.code}: {error.message.rstrip('.')}; {advice(error)}"


async def _guarded(command: Coroutine[Any, Any, int]) -> int:
    """Await the command; messages are out before the loop closes, which a deaf provider may hold up."""
    asyncio.get_running_loop().set_default_executor(_ImpatientExecutor(thread_name_prefix="qak-default"))
    try:
        return await command
    except CompositionError as error:
        note(str(error))
        return USAGE
    except KnowledgeError as error:
        note(explain(error))
        return exit_code(error)
    except QakError as error:
        note(str(error))
        return PROVIDER_FAILED
    except Exception as error:  # noqa: BLE001 - a user gets a sentence, never a traceback
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = one_line(redact(str(error)))[:300]
        note(f"unexpected {type(error).__name__}: {text} ({Path(where.filename).name}, line {where.lineno})")
        return PROVIDER_FAILED


class _ImpatientExecutor(ThreadPoolExecutor):
    """The event loop's default threads, for which the loop does not wait when it closes.

    A provider may have called a vendor in one of them that never returns; its search was given up long ago.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)
