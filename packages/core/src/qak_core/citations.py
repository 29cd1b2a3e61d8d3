"""Numbers for public sources that stay the same within one turn (clause ``citation.stable``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MAX_CITATIONS_PER_TURN = 16
MAX_TURNS = 100


class TurnCitations:
    """The citation ids of one turn."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def id_of(self, url: str) -> str | None:
        """Return the id of a canonical URL, a new one if need be; ``None`` once 16 are given out."""
        if url not in self._ids:
            if len(self._ids) >= MAX_CITATIONS_PER_TURN:
                return None
            self._ids[url] = f"source_{len(self._ids) + 1}"
        return self._ids[url]


class CitationLedger:
    """The last 100 turns; the one that was used longest ago is forgotten first."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Hashable, TurnCitations] = OrderedDict()

    def turn(self, owner_id: str, session_id: str, turn_id: str) -> TurnCitations:
        """Return the citations of a turn; without a turn id each call is a turn of its own."""
        if not turn_id:
            return TurnCitations()
        key = (owner_id, session_id, turn_id)
        turn = self._turns.setdefault(key, TurnCitations())
        self._turns.move_to_end(key)
        if len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)
        return turn
