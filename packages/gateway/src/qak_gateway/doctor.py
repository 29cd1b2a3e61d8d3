"""``qak doctor``: the path of a retrieval, one step after the other, with what to do where it ends."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TextIO

from qak_core import (
    CompositionError,
    KnowledgeError,
    KnowledgeRuntime,
    KnowledgeTool,
    SettingsError,
)
from qak_gateway._terminal import is_terminal, one_line, write, write_rich
from qak_gateway.configuration import Configuration, find_configuration, read_configuration
from qak_gateway.outcome import FOUND, PROVIDER_FAILED, USAGE, advice, exit_code

State = Literal["ok", "warn", "fail"]
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing that was looked at.

    Attributes:
        name: one word.
        state: whether it is as it should be.
        details: what was found, one line each.
        advice: what to do if it is not as it should be.
        code: the exit code that a failure of this step means.
    """

    name: str
    state: State
    details: tuple[str, ...]
    advice: str = ""
    code: int = FOUND


async def examine(query: str, *, owner_id: str, config: Path | None) -> int:
    """Go through every step, write each as it is done, and return the exit code of the first that failed."""
    code = FOUND
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # where a vendor may print what it likes
        async for step in _steps(query, owner_id=owner_id, config=config):
            _show(step, out)
            code = code or step.code
    return code


async def _steps(query: str, *, owner_id: str, config: Path | None) -> AsyncIterator[Step]:
    configuration = read_configuration(find_configuration(config))
    yield _configuration_step(configuration)
    if configuration.problems and not configuration.adapter:
        return  # that there is no provider follows
    with configuration.directory():
        try:
            provider = configuration.make_provider()
        except SettingsError as error:
            yield _failed("provider", *error.problems, advice="correct the settings in the [provider] table")
            return
        except CompositionError as error:
            yield _failed("provider", *str(error).splitlines(), advice="qak adapters lists what is installed")
            return
        async with KnowledgeRuntime(provider, **asdict(configuration.runtime)) as runtime:
            yield _provider_step(configuration, runtime)
            yield await _health_step(runtime)
            yield await _retrieval_step(runtime, query, owner_id)
            if not KnowledgeTool(runtime).available:
                yield Step(
                    name="tool",
                    state="warn",
                    details=("hidden from the model",),
                    advice="unset QWEN_AUDIO_KNOWLEDGE_TOOL_ENABLED to offer it",
                )


def _configuration_step(configuration: Configuration) -> Step:
    if configuration.path is None:
        return Step(name="configuration", state="ok", details=("no qak.toml; the environment decides",))
    if configuration.problems:
        details = (f"{configuration.path} cannot be used", *configuration.problems)
        return _failed("configuration", *details, advice="correct the file")
    return Step(name="configuration", state="ok", details=(str(configuration.path),))


def _provider_step(configuration: Configuration, runtime: KnowledgeRuntime) -> Step:
    described = runtime.description
    assert described is not None
    details = [f"{described.label} ({described.key}), made by adapter {configuration.adapter or 'local'}"]
    if able := [name for name, can in described.capabilities.items() if can]:
        details.append(f"capabilities: {', '.join(able)}")
    if described.knowledge_bases:
        details.append(f"knowledge bases: {', '.join(base.id for base in described.knowledge_bases)}")
    return Step(name="provider", state="ok", details=tuple(details))


async def _health_step(runtime: KnowledgeRuntime) -> Step:
    health = await runtime.health()
    details = (": ".join(filter(None, (health.status, health.message))),)
    if health.status == "ready":
        return Step(name="health", state="ok", details=details)
    if health.status == "degraded":
        return Step(name="health", state="warn", details=details, advice="answers may lack what the failed part holds")
    code = USAGE if health.status == "unconfigured" else PROVIDER_FAILED
    repair = "correct or complete the [provider] table"
    todo = repair if code == USAGE else "check that the knowledge system runs and is reachable"
    return Step(name="health", state="fail", details=details, advice=todo, code=code)


async def _retrieval_step(runtime: KnowledgeRuntime, query: str, owner_id: str) -> Step:
    started = time.perf_counter()
    try:
        answer = await runtime.search(query, owner_id=owner_id)
    except KnowledgeError as error:
        said = f"{error.code}: {error.message}"
        todo = advice(error, otherwise="the lines above say why")
        return Step(name="retrieval", state="fail", details=(said,), advice=todo, code=exit_code(error))
    took_ms = 1000 * (time.perf_counter() - started)
    details: tuple[str, ...] = (f"{len(answer.results)} results for {answer.query!r} in {took_ms:.0f} ms",)
    if answer.dropped:
        details += (f"dropped: {', '.join(f'{count} {reason}' for reason, count in answer.dropped.items())}",)
    if answer.degraded:
        details += (f"no answer from: {', '.join(answer.degraded)}",)
        return Step(name="retrieval", state="warn", details=details, advice="results are incomplete; see the log above")
    if not answer.results:
        todo = "ask for something your documents answer: qak doctor --query TEXT"
        return Step(name="retrieval", state="warn", details=details, advice=todo)
    return Step(name="retrieval", state="ok", details=details)


def _failed(name: str, *details: str, advice: str) -> Step:
    return Step(name=name, state="fail", details=details, advice=advice, code=USAGE)


def _show(step: Step, out: TextIO) -> None:
    head = f"{step.state:<5} {step.name:<14}"
    rest = [one_line(detail) for detail in step.details]
    if step.advice:
        rest.append(f"→ {step.advice}")
    if not is_terminal(out):
        write(head + f"\n{'':{len(head)}}".join(rest), out)
        return
    from rich.table import Table
    from rich.text import Text

    row = Table.grid()
    row.add_column(width=len(head))
    row.add_column(overflow="fold")
    row.add_row(Text(head, style=_STYLES[step.state]), Text("\n".join(rest)))
    write_rich(row, stream=out)
