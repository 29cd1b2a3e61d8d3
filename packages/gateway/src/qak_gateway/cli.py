"""The command ``qak``: arguments in, exit code out; the work is done in the module named like the command.

Nothing but typer is imported here before a command runs, so that ``qak --help`` answers at once.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    name="qak",
    help="Search, check and look after the knowledge of a voice or chat agent.",
    epilog="Exit codes: 0 found, 1 nothing found, 2 usage or configuration, 3 the provider failed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help takes half the time, and reads as well
    context_settings={"help_option_names": ["-h", "--help"]},
)
library_app = typer.Typer(
    help="Look after the documents of the local library.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(library_app, name="library")

_Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration file; else $QAK_CONFIG, else ./qak.toml."),
]
_Owner = Annotated[str, typer.Option("--owner", metavar="NAME", help="On whose behalf.")]
_OWNER = "local"
_GRACE_S = 1.0


def main() -> NoReturn:
    """Run the command line of this process."""
    from qak_gateway._terminal import prepare

    prepare()
    code: object = 0
    try:
        app()
    except SystemExit as end:
        code = end.code
    leave(code if isinstance(code, int) else 0 if code is None else 1)


def leave(code: int) -> NoReturn:
    """End the process, without waiting for threads of a provider that do not end."""
    deadline = time.monotonic() + _GRACE_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                # What Python does at its end except to wait for threads: temporary folders go, logs are written.
                goodbye = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
                goodbye.start()
                goodbye.join(_GRACE_S)
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"qak {version('qak-gateway')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


@app.command()
def adapters() -> None:
    """List the installed adapters, without importing one."""
    from qak_gateway.adapters import show_adapters
    from qak_gateway.outcome import run

    raise typer.Exit(run(show_adapters()))


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for.", show_default=False)],
    top_k: Annotated[int, typer.Option("--top-k", min=1, max=8, help="How many results at most.")] = 5,
    knowledge_base: Annotated[
        list[str] | None, typer.Option("--kb", metavar="ID", help="Search only this knowledge base; repeatable.")
    ] = None,
    owner: _Owner = _OWNER,
    library: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", exists=True, file_okay=False, help="Search the documents of a folder, where they are."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the answer as the JSON that a model gets.")] = False,
    config: _Config = None,
) -> None:
    """Search the configured knowledge, as an agent does."""
    from qak_gateway.outcome import run
    from qak_gateway.search import search as search_for

    raise typer.Exit(
        run(
            search_for(
                query,
                top_k=top_k,
                knowledge_base_ids=knowledge_base or (),
                owner_id=owner,
                library=library,
                as_json=as_json,
                config=config,
            )
        )
    )


@library_app.command("add")
def library_add(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Documents to copy in.", show_default=False)],
    owner: _Owner = _OWNER,
    config: _Config = None,
) -> None:
    """Copy documents into the library.

    One that cannot be added does not keep the others out.
    """
    from qak_gateway.library import add
    from qak_gateway.outcome import run

    raise typer.Exit(run(add(files, owner_id=owner, config=config)))


@library_app.command("list")
def library_list(owner: _Owner = _OWNER, config: _Config = None) -> None:
    """List the documents of an owner."""
    from qak_gateway.library import show_documents
    from qak_gateway.outcome import run

    raise typer.Exit(run(show_documents(owner_id=owner, config=config)))


@library_app.command("remove")
def library_remove(
    document_id: Annotated[str, typer.Argument(metavar="ID", help="As qak library list shows it.", show_default=False)],
    owner: _Owner = _OWNER,
    config: _Config = None,
) -> None:
    """Remove a document's copy.

    The file that was added stays where it is.
    """
    from qak_gateway.library import remove
    from qak_gateway.outcome import run

    raise typer.Exit(run(remove(document_id, owner_id=owner, config=config)))


@app.command()
def check(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="Adapter name or module:factory; else the configured provider.",
            show_default=False,
        ),
    ] = None,
    owner: _Owner = _OWNER,
    config: _Config = None,
) -> None:
    """Check a provider against protocol 1.

    Runs the clauses that need no documents of the suite's own. An adapter that is not the configured one is created
    without settings.
    """
    from qak_gateway.checking import check as check_provider
    from qak_gateway.outcome import run

    raise typer.Exit(run(check_provider(target, owner_id=owner, config=config)))


@app.command()
def doctor(
    query: Annotated[
        str, typer.Option(metavar="TEXT", help="What to search for; choose something your documents answer.")
    ] = "help",
    owner: _Owner = _OWNER,
    config: _Config = None,
) -> None:
    """Find out why knowledge is not found.

    Looks at the configuration, the provider, its health and one real retrieval, and says what to do.
    """
    from qak_gateway.doctor import examine
    from qak_gateway.outcome import run

    raise typer.Exit(run(examine(query, owner_id=owner, config=config)))
