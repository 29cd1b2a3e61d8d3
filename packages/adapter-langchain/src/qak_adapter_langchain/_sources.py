"""How a retriever or vector store is called: by its own async or in a thread, with a number of documents or without."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from qak_adapter_langchain._convert import Hit, read_hits
from qak_adapter_langchain._filters import class_names, full_name
from qak_core import CancelSignal
from qak_core.authoring import BlockingPool, follow

_STORE_RETRIEVER = "langchain_core.vectorstores.base.VectorStoreRetriever"
_STORE = "langchain_core.vectorstores.base.VectorStore"
_IN_MEMORY = "langchain_core.vectorstores.in_memory.InMemoryVectorStore"
_FAISS = "langchain_community.vectorstores.faiss.FAISS"
_RETRIEVER = "langchain_core.retrievers.BaseRetriever"
_LAMBDA = "langchain_core.runnables.base.RunnableLambda"
_BINDINGS = frozenset(("langchain_core.runnables.base.RunnableBinding", "langchain_core.runnables.retry.RunnableRetry"))
_FALLBACKS = "langchain_core.runnables.fallbacks.RunnableWithFallbacks"

NOT_ASYNC = frozenset(
    (
        f"{_RETRIEVER}._aget_relevant_documents",
        f"{_RETRIEVER}.__init_subclass__.<locals>._aget_relevant_documents",
        f"{_STORE}.asimilarity_search",
        f"{_STORE}.asimilarity_search_with_score",
        f"{_IN_MEMORY}.asimilarity_search",
        f"{_IN_MEMORY}.asimilarity_search_with_score",
        f"{_FAISS}.asimilarity_search",
        f"{_FAISS}.asimilarity_search_with_score",
        "langchain_core.documents.compressor.BaseDocumentCompressor.acompress_documents",
        "langchain_core.embeddings.embeddings.Embeddings.aembed_query",
        "langchain_core.runnables.base.Runnable.ainvoke",
        "langchain_core.stores.BaseStore.amget",
    )
)
"""Async in name only: these borrow the event loop's default threads, or compute on the loop itself."""

_ASYNC_METHODS = tuple({name.rpartition(".")[2] for name in NOT_ASYNC})
_MAX_PARTS = 64


class VendorSource:
    """One retriever or vector store.

    Attributes:
        store: the vector store whose filters can be joined with ours; ``None`` where there is none, or where the host
            has put a filter into the retriever, which ours would replace.
        k_name: the argument for how many documents are wanted; ``None`` where there is none.
        in_thread: whether the blocking form is called, in the pool.
    """

    def __init__(
        self,
        vendor: Any,
        *,
        with_numbers: bool,
        run_in_thread: bool | None,
        disable_tracing: bool,
        pool: BlockingPool,
    ) -> None:
        self._pool = pool
        self._untraced = no_tracing() if disable_tracing else nullcontext
        self._is_store = not hasattr(vendor, "ainvoke") and hasattr(vendor, "similarity_search")
        self.store: Any = _joinable_store(vendor) if not self._is_store else vendor
        name = "invoke"
        if self._is_store:
            numbered = with_numbers and _is_own(vendor, "similarity_search_with_score")
            name = "similarity_search_with_score" if numbered else "similarity_search"
        self._blocking: Callable[..., Any] | None = getattr(vendor, name, None)
        self._async: Callable[..., Any] | None = getattr(vendor, f"a{name}", None)
        if not callable(self._blocking) and not callable(self._async):
            raise ValueError(  # noqa: TRY004 - as every other argument that can't be used
                f"expected a retriever with ainvoke or a vector store, got {type(vendor).__name__}"
            )
        self.in_thread = self._decide(vendor, run_in_thread)
        self.k_name = "k" if self._is_store else _k_name(vendor, "_get_relevant_documents")
        if self.k_name and not self._is_store and not self.in_thread:
            if _k_name(vendor, "_aget_relevant_documents") != self.k_name and run_in_thread is None:
                self.in_thread = True  # ainvoke would raise TypeError, or give a number of its own
            else:
                self.k_name = _k_name(vendor, "_aget_relevant_documents")
        call = self._blocking if self.in_thread else self._async
        assert call is not None
        self._call = call
        self._vendor = vendor
        self._fixed = frozenset[str]().union(*map(_fixed_names, _parts(vendor)))
        # An empty list of callbacks keeps the handlers of an outer LangChain run from inheriting this one.
        takes_config = not self._is_store and "config" in _parameters(call)
        self._config: dict[str, Any] = {"config": {"callbacks": []}} if disable_tracing and takes_config else {}

    def takes(self, names: Collection[str]) -> bool:
        """Whether further arguments are known to arrive in the search, and to replace none of the host's own.

        LangChain drops what a retriever does not name, and lets an argument of the call replace one that the host has
        fixed in the retriever, both silently; what a chain or a lambda does with one, nobody knows.
        """
        if not names or self._is_store:
            return True
        return self._fixed.isdisjoint(names) and _takes(self._vendor, frozenset(names), in_thread=self.in_thread)

    async def search(self, query: str, k: int, arguments: Mapping[str, Any], signal: CancelSignal) -> list[Hit]:
        """Ask for ``k`` documents; a source without such an argument gives as many as it likes."""
        wanted = {self.k_name: k} if self.k_name else {}
        with self._untraced():
            if self.in_thread:
                answer = await self._pool.run(signal, self._call, query, **self._config, **wanted, **arguments)
            else:
                answer = await follow(signal, self._call(query, **self._config, **wanted, **arguments))
        return read_hits(answer)

    def _decide(self, vendor: Any, run_in_thread: bool | None) -> bool:
        if not callable(self._blocking) or not callable(self._async):
            if run_in_thread is not None and run_in_thread is not callable(self._blocking):
                raise ValueError(f"run_in_thread={run_in_thread}: {type(vendor).__name__} has no such method")
            return callable(self._blocking)
        return is_blocking(vendor) if run_in_thread is None else run_in_thread


def is_blocking(vendor: object) -> bool:
    """Whether the async form of a vendor's object, or of a part of it, is one in name only.

    Not where a part has no blocking form at all: then the async form is the only one that works.
    """
    parts = list(_parts(vendor))
    lambdas = [part for part in parts if _LAMBDA in class_names(part)]
    if any(not hasattr(part, "func") for part in lambdas):
        return False
    return any(not hasattr(part, "afunc") for part in lambdas) or any(
        full_name(getattr(type(part), name, None)) in NOT_ASYNC for part in parts for name in _ASYNC_METHODS
    )


def no_tracing() -> Callable[[], AbstractContextManager[Any]]:
    """Return what switches tracing off within a ``with``.

    That is LangSmith, whose environment variables are read once and kept, and the handlers that LangChain adds to every
    run of a context by itself, such as run collectors.
    """
    try:
        from langsmith import tracing_context
    except ImportError:
        return partial(_untraced, nullcontext)
    return partial(_untraced, partial(tracing_context, enabled=False))


@contextmanager
def _untraced(no_langsmith: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    hooks = getattr(sys.modules.get("langchain_core.tracers.context"), "_configure_hooks", ())
    given = [(hook[0], hook[0].set(None)) for hook in hooks]
    try:
        with no_langsmith():
            yield
    finally:
        for variable, token in given:
            variable.reset(token)


def _parts(vendor: object) -> Iterator[object]:
    """Walk over what a retriever is made of: other runnables, stores, embeddings; a retriever over a store aside."""
    waiting, seen = [vendor], set[int]()
    while waiting and len(seen) < _MAX_PARTS:
        part = waiting.pop()
        if id(part) in seen or not any(callable(getattr(part, name, None)) for name in ("ainvoke", *_ASYNC_METHODS)):
            continue
        seen.add(id(part))
        yield part
        waiting.append(getattr(part, "embeddings", None))
        for value in vars(part).values() if hasattr(part, "__dict__") else ():
            waiting += value if isinstance(value, list | tuple) else [value]


def _joinable_store(vendor: object) -> object | None:
    if _STORE_RETRIEVER in class_names(vendor) and "filter" not in vendor.search_kwargs:  # type: ignore[attr-defined]
        return vendor.vectorstore  # type: ignore[attr-defined, no-any-return]
    return None


def _is_own(store: object, method: str) -> bool:
    return full_name(getattr(type(store), method, None)) != f"{_STORE}.{method}"


def _k_name(vendor: Any, method: str) -> str | None:
    """Return the argument by which a retriever, or what wraps one, is told how many documents are wanted."""
    if _STORE_RETRIEVER in class_names(vendor):
        return "k"
    if (bound := getattr(vendor, "bound", None)) is not None:
        return _k_name(bound, method)
    if isinstance(fallbacks := getattr(vendor, "fallbacks", None), list | tuple):
        names = {_k_name(runnable, method) for runnable in (getattr(vendor, "runnable", None), *fallbacks)}
        return names.pop() if len(names) == 1 else None
    parameters = _parameters(getattr(type(vendor), method, None))
    return next((name for name in ("k", "top_k") if name in parameters), None)


def _takes(vendor: Any, names: frozenset[str], *, in_thread: bool) -> bool:
    kind = full_name(type(vendor))
    if kind in _BINDINGS:
        return _takes(vendor.bound, names, in_thread=in_thread)
    if kind == _FALLBACKS:
        return all(_takes(runnable, names, in_thread=in_thread) for runnable in vendor.runnables)
    if not getattr(type(vendor), "_expects_other_args", True):
        return False
    method = getattr(type(vendor), "_get_relevant_documents" if in_thread else "_aget_relevant_documents", None)
    if full_name(method).startswith(f"{_STORE_RETRIEVER}."):
        return True  # all of them go on to the store
    return names <= _named(method or getattr(type(vendor), "invoke" if in_thread else "ainvoke", None))


def _fixed_names(part: object) -> frozenset[str]:
    """Return what a retriever, or a part of it, has fixed: as arguments of the search, or in fields of those names."""
    given = (getattr(part, name, None) for name in ("search_kwargs", "kwargs"))
    fixed = [name for mapping in given if isinstance(mapping, Mapping) for name in mapping]
    if _RETRIEVER in class_names(part):
        fixed += [name for name, value in vars(part).items() if value is not None]
    return frozenset(fixed)


def _named(method: Any) -> frozenset[str]:
    """Return the parameters of a method that a call may give by name; what ``**kwargs`` collect may go anywhere."""
    given = _parameters(method).items()
    named = (name for name, one in given if one.kind in {one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD})
    return frozenset(named) - {"self", "query", "input", "config", "run_manager"}


def _parameters(method: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return {}
