"""What speaks against options that need no vendor to be judged, for code and configuration alike."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import get_args

from qak_core.authoring.filters import parse_filter
from qak_core.authoring.passages import SOURCE_FIELDS, Reading, ScoreKind
from qak_core.errors import KnowledgeError

MAX_WORKERS = 64


def option_problems(
    reading: Reading,
    *,
    caller_filters: str,
    forms: Collection[str],
    filters: object,
    max_workers: int,
    base_ids: Collection[str] = (),
    read_filter: Callable[[object], object] = parse_filter,
) -> list[str]:
    """Return a line for each option that can't be used.

    Args:
        reading: of the host's passages.
        caller_filters: how a request's filters are applied.
        forms: what that may be.
        filters: the host's own filter, ``None`` for none.
        max_workers: threads for blocking calls.
        base_ids: of the knowledge bases.
        read_filter: raises what is wrong with ``filters``.
    """
    problems = [
        f"{name}: expected one of {', '.join(known)}, got {str(given)[:80]!r}"
        for name, given, known in (
            ("score", reading.score, get_args(ScoreKind)),
            ("caller_filters", caller_filters, forms),
        )
        if given not in known
    ]
    problems += [
        f"citation_keys: {str(name)[:80]!r} is no field of a source; known are {', '.join(SOURCE_FIELDS)}"
        for name in reading.citation_keys
        if name not in SOURCE_FIELDS
    ]
    keys = {"id_key": reading.id_key, "owner_key": reading.owner_key}
    problems += [f"{name}: expected a metadata key, got empty text" for name, key in keys.items() if key == ""]
    first_page: object = reading.first_page
    if first_page is not None and (type(first_page) is not int or first_page not in {0, 1}):
        problems.append(f"first_page: expected 0 or 1, got {str(first_page)[:80]!r}")
    if type(max_workers) is not int or not 1 <= max_workers <= MAX_WORKERS:
        problems.append(f"max_workers: expected 1 to {MAX_WORKERS}, got {str(max_workers)[:80]!r}")
    problems += [
        f"knowledge_bases: an id is text without blanks around it, got {base_id!r}"
        for base_id in base_ids
        if not base_id or base_id != base_id.strip()
    ]
    if filters is not None:
        try:
            read_filter(filters)
        except KnowledgeError as error:
            problems.append(f"filters: {error.message}")
    return problems
