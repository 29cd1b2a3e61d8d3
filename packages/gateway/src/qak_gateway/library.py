"""``qak library``: the documents of the local library, through its provider's management methods."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Generator, Sequence
from dataclasses import replace
from pathlib import Path

from qak_core import (
    CompositionError,
    KnowledgeError,
    KnowledgeManagementProvider,
    KnowledgeRuntime,
    QakError,
    RetrievalContext,
)
from qak_gateway._terminal import console, is_terminal, note, one_line, write, write_table
from qak_gateway.configuration import find_configuration, make_provider, read_configuration
from qak_gateway.outcome import FOUND, NOTHING_FOUND, PROVIDER_FAILED, explain

ADAPTER = "local"


async def add(files: Sequence[str], *, owner_id: str, config: Path | None) -> int:
    """Add documents one after the other and write a line for each; 3 if one could not be added."""
    code = FOUND
    async with _open_library(config) as library:
        with contextlib.closing(_with_progress(files)) as waiting:
            for file in waiting:
                try:
                    added = await library.ingest(_source(file), RetrievalContext(owner_id=owner_id))
                except QakError as error:
                    note(f"{one_line(file)}: {explain(error) if isinstance(error, KnowledgeError) else error}")
                    code = PROVIDER_FAILED
                else:
                    write("\t".join(map(one_line, ("added", added["id"], added.get("title") or file))))
    return code


async def show_documents(*, owner_id: str, config: Path | None) -> int:
    """Write a table of an owner's documents; 1 if there are none."""
    async with _open_library(config) as library:
        documents = await library.list_documents(RetrievalContext(owner_id=owner_id))
    if not documents:
        note(f"{owner_id} has no documents; add some: qak library add FILE")
        return NOTHING_FOUND
    fields = ("id", "title", "name", "size_bytes")
    rows = [[document.get(field, "") for field in fields] for document in documents]
    write_table(("id", "title", "file", "bytes"), rows)
    return FOUND


async def remove(document_id: str, *, owner_id: str, config: Path | None) -> int:
    """Remove a document; 1 if the owner has none with this id."""
    async with _open_library(config) as library:
        if await library.remove_document(document_id, RetrievalContext(owner_id=owner_id)):
            write(f"removed\t{one_line(document_id)}")
            return FOUND
    note(f"{owner_id} has no document {document_id!r}; qak library list shows the ids")
    return NOTHING_FOUND


def _source(file: str) -> Path | str:
    """Return a file that exists as a path, which is taken as it is; other text the adapter reads as pasted."""
    path = Path(file).absolute()
    return path if os.path.exists(path) else file


@contextlib.asynccontextmanager
async def _open_library(config: Path | None) -> AsyncIterator[KnowledgeManagementProvider]:
    """Create the local adapter's provider, with the settings of the configuration if that names this adapter."""
    configuration = read_configuration(find_configuration(config))
    settings = configuration.settings if configuration.adapter == ADAPTER else {}
    with configuration.directory():
        provider = await make_provider(replace(configuration, adapter=ADAPTER, settings=settings))
    async with KnowledgeRuntime(provider):  # which closes it
        if not isinstance(provider, KnowledgeManagementProvider):
            raise CompositionError(
                "the local adapter searches a folder in place; change the files there, or remove the setting folder"
            )
        yield provider


def _with_progress(files: Sequence[str]) -> Generator[str, None, None]:
    """Give one file after the other, under a progress bar on a terminal."""
    if not (is_terminal() and is_terminal(sys.stderr)):  # the bar moves aside for what is written to either
        yield from files
        return
    from rich.progress import Progress

    with Progress(console=console(), transient=True) as progress:
        yield from progress.track(files, description="adding")
