"""``qak search``: a query through the whole path, and its answer for people or programs."""

from __future__ import annotations

import contextlib
import json
import re
import textwrap
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from qak_core import AnswerResult, KnowledgeAnswer, KnowledgeError
from qak_gateway._terminal import (
    busy,
    console,
    escape_json,
    is_terminal,
    note,
    one_line,
    printable,
    wrap,
    write,
    write_rich,
    write_utf8,
)
from qak_gateway.configuration import Configuration, find_configuration, open_runtime, read_configuration
from qak_gateway.outcome import FOUND, NOTHING_FOUND, exit_code, explain

_INDENT = 3
_STYLES = {"title": "bold", "place": "dim", "content": ""}
_READING_TIMEOUT_S = 600.0
_CLOSING_TIMEOUT_S = 1.0  # who interrupts the reading of a folder does not want to wait for it
_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_COMMON_WORDS = frozenset(
    "and are can does for from has have how must the that this what when where which who why with".split()
)


async def search(
    query: str,
    *,
    top_k: int,
    knowledge_base_ids: Sequence[str],
    owner_id: str,
    library: Path | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Search and write the answer; return the exit code.

    Args:
        query: what to search for.
        top_k: how many results at most.
        knowledge_base_ids: where to search; empty for everywhere.
        owner_id: on whose behalf.
        library: a folder to search in place instead of asking the configured provider.
        as_json: write the envelope instead of text for people; a failed search gives the error envelope.
        config: the configuration file, if it was named.
    """
    configuration = read_configuration(find_configuration(config))
    if library is not None:
        configuration = in_folder(configuration, library)
    async with open_runtime(configuration) as runtime:
        with busy("reading the folder") if library else contextlib.nullcontext():
            outcome = await _outcome(
                runtime.search(query, owner_id=owner_id, top_k=top_k, knowledge_base_ids=knowledge_base_ids)
            )
            if library is not None or isinstance(outcome, KnowledgeError):
                health = await runtime.health()
                if health.status != "ready" and health.message:
                    note(f"the provider is {health.status}: {health.message}")
    if isinstance(outcome, KnowledgeError):
        note(explain(outcome))
        if as_json:
            write_json(outcome.to_dict())
        return exit_code(outcome)
    if outcome.degraded:
        note(f"warning: no answer from {', '.join(map(one_line, outcome.degraded))}; the results are incomplete")
    if as_json:
        write_json(outcome.to_dict())
    elif outcome.results:
        show(outcome)
    if not outcome.results:
        note(f"nothing found for {outcome.query!r}")
    return FOUND if outcome.results else NOTHING_FOUND


async def _outcome(search: Awaitable[KnowledgeAnswer]) -> KnowledgeAnswer | KnowledgeError:
    try:
        return await search
    except KnowledgeError as error:
        return error


def in_folder(configuration: Configuration, folder: Path) -> Configuration:
    """Return the configuration with a folder to search in place.

    A person wants passages, not the short form, and waits for as long as reading the folder takes.
    """
    settings = {"folder": str(folder.absolute()), "excerpts": True}
    runtime = replace(configuration.runtime, timeout_s=_READING_TIMEOUT_S, close_timeout_s=_CLOSING_TIMEOUT_S)
    return replace(configuration, adapter="local", settings=settings, runtime=runtime)


def write_json(value: object) -> None:
    """Write strict JSON in UTF-8: on one line for programs, indented for people."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2 if is_terminal() else None)
    write_utf8(escape_json(text))


def show(answer: KnowledgeAnswer) -> None:
    """Write the results for people: wrapped and highlighted on a terminal, plain elsewhere."""
    blocks = [list(_lines(number, result, answer)) for number, result in enumerate(answer.results, 1)]
    if not is_terminal():
        write("\n\n".join("\n".join(_indented(style, text) for style, text in block) for block in blocks))
        return
    from rich.text import Text

    words = query_words(answer.query)
    width = console().width - _INDENT
    drawn = []
    for block in blocks:
        for style, text in block:
            line = Text(_indented(style, wrap(text, width)), style=_STYLES[style])
            for word in words if style == "content" else ():
                line.highlight_regex(word, "bold yellow")
            drawn.append(line)
        drawn.append(Text())
    write_rich(*drawn)


def query_words(query: str) -> list[re.Pattern[str]]:
    """Return what to highlight: words of three letters and more where a word starts, and pairs of Han characters."""
    wanted: dict[str, None] = {}
    for word in _WORD.findall(query):
        for run in _HAN.findall(word):
            wanted.update((run[at : at + 2], None) for at in range(max(1, len(run) - 1)))
        for part in _HAN.split(word):
            if len(part) > 2 and part.lower() not in _COMMON_WORDS:
                wanted[f"(?<![A-Za-z0-9]){re.escape(part)}"] = None
    return [re.compile(pattern, re.IGNORECASE) for pattern in wanted]


def _lines(number: int, result: AnswerResult, answer: KnowledgeAnswer) -> Iterator[tuple[str, str]]:
    source = result.source
    title = (source and (source.title or source.id)) or result.id
    score = "" if result.score is None else f"  (score {result.score:.4g})"
    yield "title", f"{number}. {one_line(title)}{score}"
    if source and source.locator:
        yield "place", one_line(source.locator)
    for citation in answer.citations:
        if citation.id == result.citation_id:
            yield "place", one_line(f"{citation.url} [{citation.id}]")
    yield "content", printable(result.content) + (" …" if result.truncated else "")


def _indented(style: str, text: str) -> str:
    return text if style == "title" else textwrap.indent(text, " " * _INDENT)
