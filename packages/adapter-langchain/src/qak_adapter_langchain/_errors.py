"""What a caller's filter makes stores and translators raise; all other errors are the core's to know."""

from __future__ import annotations

from qak_core import KnowledgeInvalidRequest
from qak_core.authoring import VendorErrors

ERRORS = VendorErrors()

FILTER_ERRORS = VendorErrors(
    dict.fromkeys((ValueError, TypeError, LookupError, AttributeError), KnowledgeInvalidRequest)
)
"""Where a caller's filter is passed on as it is, or is given to a host's translator."""
