"""What one request may see: the owner's passages that meet the host's filter and the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qak_core.authoring.filters import Comparison, Filter, all_of, matches
from qak_core.authoring.metadata import plain_value


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Whose passages a request may see, and which of them.

    Attributes:
        owner_key: the metadata key that holds a passage's owner; ``None`` where all owners share everything.
        owner_id: who that must be, where there is an ``owner_key``.
        wanted: the host's filter and the caller's, both to be met.
    """

    owner_key: str | None = None
    owner_id: str = ""
    wanted: Filter | None = None

    @property
    def restricts(self) -> bool:
        """Whether :meth:`admits` can be false."""
        return self.owner_key is not None or self.wanted is not None

    def owned_by(self, metadata: Mapping[str, Any]) -> bool:
        """Whether the owner may see a passage; the key must hold that very text, not one of several."""
        return self.owner_key is None or plain_value(metadata.get(self.owner_key)) == self.owner_id

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage may be seen, whatever a vendor has made of :meth:`whole`."""
        return self.owned_by(metadata) and (self.wanted is None or matches(self.wanted, metadata))

    def whole(self) -> Filter | None:
        """Return all of it as one filter, for a vendor to apply."""
        owner = self.owner_key and Comparison(operator="eq", key=self.owner_key, value=self.owner_id)
        return all_of(owner or None, self.wanted)
