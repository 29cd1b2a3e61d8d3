"""What is known of a library's document, as it is kept on the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from qak_adapter_local._documents import LibraryDocument, Span
from qak_adapter_local._paths import is_plain_text

_FORMAT = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What ``records/<id>.json`` holds.

    Attributes:
        document: as shown; its ``path`` is left empty on the disk, so that a library can be moved.
        sha256: of the file.
        source_key: of the source's path, see ``_paths.same_name_key``.
        copy_name: in ``files``.
        text_name: in ``texts``.
        headings: all of the document's.
        spans: its passages in the text.
    """

    document: LibraryDocument
    sha256: str
    source_key: str
    copy_name: str
    text_name: str
    headings: Sequence[str]
    spans: Sequence[Span]

    def to_json(self) -> bytes:
        """Return the record as stored."""
        document = {**self.document.to_dict(), "path": ""}
        return json.dumps({"format": _FORMAT, **asdict(self), "document": document}).encode()

    @classmethod
    def from_json(cls, data: bytes, document_id: str) -> Record:
        """Read what :meth:`to_json` gave for the document of this id.

        Raises:
            ValueError: it is not that.
        """
        try:
            values = json.loads(data)
            if values.pop("format") != _FORMAT:
                raise ValueError("another format")
            document = LibraryDocument.from_dict(values.pop("document"))
            record = cls(document=document, **{**values, "spans": tuple(Span(**span) for span in values["spans"])})
            if document.id != document_id:
                raise ValueError("the record of another document")
            if not all(_is_own_name(name) for name in (record.copy_name, record.text_name)):
                raise ValueError("a file name with a path in it")
            texts = (record.sha256, record.source_key, *record.headings, *document.texts())
            "".join(texts).encode()
            if not all(span.is_sound() for span in record.spans):
                raise ValueError("a span that is none")
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a record: {type(error).__name__}") from None
        return record


def _is_own_name(name: str) -> bool:
    return bool(name) and name == os.path.basename(name) and not name.startswith(".") and is_plain_text(name)
