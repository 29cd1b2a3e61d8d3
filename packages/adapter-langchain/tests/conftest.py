"""Before any import: no telemetry. LangChain's own tests are async; they run without a plugin."""

from __future__ import annotations

import asyncio
import inspect
import os
import warnings
from typing import Any

import pytest

os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ.pop("LANGSMITH_TRACING", None)
os.environ.pop("LANGCHAIN_TRACING_V2", None)

with warnings.catch_warnings():
    # It says on import that it is being sunset; FAISS and BM25 live nowhere else yet.
    warnings.filterwarnings("ignore", message=".*langchain-community.*sunset", category=DeprecationWarning)
    import langchain_community.retrievers
    import langchain_community.vectorstores.faiss  # noqa: F401


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
