"""Translating a vendor's exceptions by a table (protocol section 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from qak_core._exact import attempt
from qak_core.errors import KnowledgeError, KnowledgeFailed, KnowledgeTimeout, KnowledgeUnavailable

_T = TypeVar("_T")
_log = logging.getLogger("qak_core")


class ErrorTable:
    """Maps exceptions to errors of the protocol, by class or by the class's full name.

    Names (``"openai.RateLimitError"``) let an adapter describe its vendor without importing it. The most derived class
    of the exception that is in the table decides. Timeouts and lost connections of the standard library are known.
    """

    def __init__(
        self,
        table: Mapping[type[Exception] | str, type[KnowledgeError]],
        *,
        default: type[KnowledgeError] = KnowledgeFailed,
    ) -> None:
        self._table: dict[type | str, type[KnowledgeError]] = {
            TimeoutError: KnowledgeTimeout,
            ConnectionError: KnowledgeUnavailable,
            **table,
        }
        self._default = default

    def translate(self, error: BaseException) -> KnowledgeError:
        """Return a fresh error with a fixed text, holding nothing of ``error``."""
        return (self.find(error) or self._default)()

    def find(self, error: BaseException) -> type[KnowledgeError] | None:
        """Return what the table says of an error's class, or ``None``."""
        for kind in type(error).__mro__:
            found = self._table.get(kind) or self._table.get(f"{kind.__module__}.{kind.__qualname__}")
            if found is not None:
                return found
        return None

    async def guard(self, call: Awaitable[_T]) -> _T:
        """Await a vendor's call; what it raises leaves as an error of the protocol, and its class in the log.

        The new error is raised after the vendor's has been let go, so that it holds it neither as cause nor context. A
        cancellation passes only where this task is being cancelled; a vendor may raise one of its own.

        Raises:
            KnowledgeError: the translated error, or the one that the call itself raised.
        """
        try:
            return await call
        except KnowledgeError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = self._report(error)
        except Exception as error:  # noqa: BLE001 - any exception of a vendor is translated
            failure = self._report(error)
        raise failure

    def _report(self, error: BaseException) -> KnowledgeError:
        """Translate an exception, which may raise when it is looked at, and log its class."""
        failure = attempt(lambda: self.translate(error), default=self._default(), what="an exception")
        # An operator has to know what happened, and the class is all that surely holds no secret.
        _log.warning("%s stands for %s.%s", failure.code, type(error).__module__, type(error).__qualname__)
        return failure
