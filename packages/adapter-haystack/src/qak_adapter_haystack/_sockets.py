"""What a component or a pipeline takes and gives, read from its sockets once, at composition.

A socket's address is its name in a component and ``component.socket`` in a pipeline. Inputs always go to a pipeline by
address: by bare name, Haystack hands them to every component that has such an input and ignores what nobody has.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from qak_adapter_haystack._filters import NativeFilter, beside
from qak_core import KnowledgeInvalidResponse


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Addresses that the host gives; ``None`` where they are to be found out."""

    query: Sequence[str] | None = None
    top_k: Sequence[str] | None = None
    filters: Sequence[str] | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Where query, ``top_k`` and filters go in, and where documents come out.

    Attributes:
        pipeline: whether addresses name a component and its socket.
        query: takes the query, or the query's embedding where there is a text embedder.
        top_k: takes the number of documents; empty where it cannot be told.
        filters: takes filters, with the retriever's own ones.
        output: gives the documents.
        leaf: whether the output is one that the pipeline gives unasked.
    """

    pipeline: bool
    query: Sequence[str]
    top_k: Sequence[str]
    filters: Mapping[str, Mapping[str, Any] | None]
    output: str
    leaf: bool = True

    def inputs(self, query: object, top_k: int, filters: NativeFilter | None) -> dict[str, Any]:
        """Return the inputs of one call; nothing in them is shared with another call."""
        inputs: dict[str, Any] = dict.fromkeys(self.query, query) | dict.fromkeys(self.top_k, top_k)
        if filters is not None:
            for address, own in self.filters.items():
                given = copy.deepcopy(filters)
                inputs[address] = beside(own, given) if own else given
        if not self.pipeline:
            return inputs
        nested: dict[str, dict[str, Any]] = {}
        for address, value in inputs.items():
            component, _, socket = address.partition(".")
            nested.setdefault(component, {})[socket] = value
        return nested

    def documents(self, outputs: object) -> Sequence[Any]:
        """Return the documents in what a call gave.

        Raises:
            KnowledgeInvalidResponse: there is no list of documents.
        """
        for name in self.output.split(".", 1) if self.pipeline else [self.output]:
            outputs = outputs.get(name) if isinstance(outputs, Mapping) else None
        if not isinstance(outputs, list | tuple):
            raise KnowledgeInvalidResponse
        return outputs


def is_pipeline(thing: object) -> bool:
    """Whether something is a pipeline: it has a graph to walk."""
    return not isinstance(thing, type) and all(
        callable(getattr(thing, name, None)) for name in ("run", "run_async", "inputs", "outputs", "walk")
    )


def is_component(thing: object) -> bool:
    """Whether something is a component: it can be run and has sockets."""
    return (
        not isinstance(thing, type) and callable(getattr(thing, "run", None)) and hasattr(thing, "__haystack_input__")
    )


def components(thing: Any) -> Iterator[Any]:
    """Walk over the components of a pipeline, or over a component and those it is made of."""
    pending, seen = [thing], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if is_pipeline(one):
            pending += [component for _, component in one.walk()]
            continue
        yield one
        for name, value in getattr(one, "__dict__", {}).items():
            if not name.startswith("__haystack"):  # the pipeline that it belongs to is no part of it
                inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else (value,)
                pending += [part for part in inner if is_component(part) or is_pipeline(part)]


def plan(thing: Any, names: Names, *, embedder: Any, subject: str, problems: list[str]) -> Plan | None:
    """Find out how to call a component or pipeline; what speaks against it is added to ``problems``."""
    if not is_pipeline(thing) and not is_component(thing):
        kind = thing.__name__ if isinstance(thing, type) else type(thing).__name__
        problems.append(f"{subject} must be a component or Pipeline of Haystack, got {kind}")
        return None
    found = len(problems)
    free, taken = _inputs(thing)
    if embedder is not None and not _embeds(embedder):
        problems.append(f"the text embedder of {subject} must take text and give embedding")
    query = _query(free, names.query, "query_embedding" if embedder is not None else None)
    output, leaf = _output(thing, names.output, subject, problems)
    top_k = names.top_k if names.top_k is not None else _top_k(free, output)
    filters = names.filters if names.filters is not None else [name for name in free if _last(name) == "filters"]
    if names.filters is None and any(_last(name) == "filters" for name in taken):
        filters = []  # another component writes some retriever's filters, so those of a call can't bind all of them
    for address in {*query, *top_k, *filters} - set(free):
        problems.append(f"{subject} has no free input {address!r}; it has {', '.join(free) or 'none'}")
    if not query:
        problems.append(
            f"{subject} has no input for the query; name it with query_inputs, of {', '.join(free) or 'none'}"
        )
    for address in [name for name, mandatory in free.items() if mandatory and name not in {*query, *top_k, *filters}]:
        hint = (
            "give its text embedder as text_embedder"
            if _last(address) == "query_embedding"
            else "connect or default it"
        )
        problems.append(f"{subject} needs the input {address!r}, which a query can't fill; {hint}")
    own = {address: _own_filters(thing, address, subject, problems) for address in filters if address in free}
    if len(problems) > found:
        return None
    return Plan(pipeline=is_pipeline(thing), query=query, top_k=top_k, filters=own, output=output, leaf=leaf)


def _inputs(thing: Any) -> tuple[dict[str, bool], set[str]]:
    """Return the free inputs and whether they are mandatory, and the ones that other components fill."""
    if not is_pipeline(thing):
        sockets = thing.__haystack_input__._sockets_dict
        return {name: bool(socket.is_mandatory) for name, socket in sockets.items()}, set()
    free, every = (
        {
            f"{name}.{socket}": bool(told["is_mandatory"])
            for name, sockets in inputs.items()
            for socket, told in sockets.items()
        }
        for inputs in (thing.inputs(), thing.inputs(include_components_with_connected_inputs=True))
    )
    return free, set(every) - set(free)


def _query(free: Mapping[str, bool], named: Sequence[str] | None, embedding: str | None) -> Sequence[str]:
    if named is not None:
        return named
    wanted = {embedding} if embedding else {"query", "text"}
    matching = [name for name in free if _last(name) in wanted]
    return [name for name in matching if free[name]] or matching


def _top_k(free: Mapping[str, bool], output: str) -> Sequence[str]:
    """Only the component that gives the documents is told how many: those before it choose candidates for it."""
    component = output.rpartition(".")[0]
    address = f"{component}.top_k" if component else "top_k"
    return [address] if address in free else []


def _output(thing: Any, named: str | None, subject: str, problems: list[str]) -> tuple[str, bool]:
    leaves, every = _outputs(thing)
    if named is not None:
        if named not in every:
            problems.append(f"{subject} has no output {named!r}; it has {', '.join(every) or 'none'}")
        return named, named in leaves
    found = [name for name, kind in leaves.items() if _is_documents(kind)]
    found = found or [name for name in leaves if _last(name) == "documents"]
    if len(found) != 1:
        what = f"several outputs of documents ({', '.join(found)})" if found else "no output of documents"
        problems.append(f"{subject} has {what}; name one with output, of {', '.join(every) or 'none'}")
    return (found or [""])[0], True


def _outputs(thing: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not is_pipeline(thing):
        sockets = {name: socket.type for name, socket in thing.__haystack_output__._sockets_dict.items()}
        return sockets, sockets
    leaves, every = (
        {f"{name}.{socket}": told["type"] for name, sockets in outputs.items() for socket, told in sockets.items()}
        for outputs in (thing.outputs(), thing.outputs(include_components_with_connected_outputs=True))
    )
    return leaves, every


def _is_documents(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType):
        return any(_is_documents(choice) for choice in get_args(kind))
    inner = get_args(kind)
    return get_origin(kind) is list and len(inner) == 1 and getattr(inner[0], "__name__", "") == "Document"


def _own_filters(thing: Any, address: str, subject: str, problems: list[str]) -> Mapping[str, Any] | None:
    """Return a copy of the filters that whoever takes those of a call was made with."""
    owner = thing.get_component(address.partition(".")[0]) if is_pipeline(thing) else thing
    found: list[Mapping[str, Any]] = []
    for component in components(owner):
        for name in ("filters", "_filters"):
            value = getattr(component, name, None)
            if isinstance(value, Mapping) and value and value not in found:
                found.append(value)
    if len(found) > 1:
        problems.append(
            f"the retrievers in {subject} have different filters of their own, which those of a call would replace; "
            "give what all share to the provider as filters, or make each a knowledge base"
        )
    return copy.deepcopy(dict(found[0])) if found else None


def _embeds(embedder: object) -> bool:
    if not is_component(embedder):
        return False
    inputs, _ = _inputs(embedder)
    mandatory = {name for name, needed in inputs.items() if needed}
    return "text" in inputs and mandatory <= {"text"} and "embedding" in _outputs(embedder)[0]


def _last(address: str) -> str:
    return address.rpartition(".")[2]
