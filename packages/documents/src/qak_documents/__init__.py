"""Files to Markdown with pages and exact spans, chunks, token estimates and keyword tokens."""

from qak_documents._chunks import Chunk, chunk
from qak_documents._document import Block, BlockKind, Document
from qak_documents._errors import (
    DamagedDocument,
    DocumentError,
    DocumentTooLarge,
    EmptyDocument,
    EncryptedDocument,
    ExtractionTimedOut,
    UnsupportedDocument,
)
from qak_documents._extraction import extract
from qak_documents._keywords import keyword_tokens
from qak_documents._limits import ExtractionLimits
from qak_documents._tokens import estimate_tokens

__all__ = [
    "Block",
    "BlockKind",
    "Chunk",
    "DamagedDocument",
    "Document",
    "DocumentError",
    "DocumentTooLarge",
    "EmptyDocument",
    "EncryptedDocument",
    "ExtractionLimits",
    "ExtractionTimedOut",
    "UnsupportedDocument",
    "chunk",
    "estimate_tokens",
    "extract",
    "keyword_tokens",
]
