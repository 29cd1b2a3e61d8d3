"""``qak adapters``: what is installed."""

from __future__ import annotations

from qak_core import list_adapters
from qak_gateway._terminal import note, write_table
from qak_gateway.outcome import FOUND, NOTHING_FOUND


async def show_adapters() -> int:
    """List the installed adapters with their state, importing none of them; return the exit code."""
    adapters = list_adapters()
    if not adapters:
        note("no adapter is installed; for documents on this machine: pip install qak-adapter-local")
        return NOTHING_FOUND
    write_table(
        ("adapter", "distribution", "version", "state"),
        [(info.name, info.distribution, info.version, info.problem or "ok") for info in adapters],
    )
    return FOUND
