"""What every document of an answer must meet, whatever the retriever made of the filters that it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qak_adapter_haystack._filters import NativeFilter, all_native, comparison, keys, meets, to_haystack
from qak_core.authoring import Scope, plain_value, value_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What one request may see.

    A retriever may lack an input for filters or ignore it, and a pipeline may have one such branch beside others, so
    what is sent only saves work: each document is checked here.

    Attributes:
        scope: the owner and the filters in the neutral grammar.
        native: the filters in Haystack's, which only Haystack's own comparison gives their meaning.
    """

    scope: Scope
    native: NativeFilter | None = None

    @property
    def restricts(self) -> bool:
        """Whether :meth:`admits` can be false."""
        return self.native is not None or self.scope.restricts

    def sent(self) -> NativeFilter | None:
        """Return all of it as one filter for the retriever.

        Raises:
            KnowledgeFiltersUnsupported: Haystack can't say it.
        """
        scope = self.scope
        parts = [] if self.native is None else [self.native]
        if scope.owner_key is not None:
            parts.append(comparison(scope.owner_key, "==", scope.owner_id))
        if scope.wanted is not None:
            parts.append(to_haystack(scope.wanted))
        return all_native(parts)

    def admits(self, document: Any, meta: Mapping[str, Any]) -> bool:
        """Whether a document with this metadata may be seen; keys may be dotted paths, dates are texts."""
        scope = self.scope
        if scope.restricts:
            compared = [] if scope.wanted is None else list(keys(scope.wanted))
            if scope.owner_key is not None:
                compared.append(scope.owner_key)
            if not scope.admits({key: _comparable(value_at(meta, key)) for key in compared}):
                return False
        return self.native is None or meets(self.native, document)


def _comparable(value: object) -> object:
    return [plain_value(one) for one in value] if isinstance(value, list | tuple) else plain_value(value)
