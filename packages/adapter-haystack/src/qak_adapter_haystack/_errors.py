"""What Haystack itself raises, as a table; of its integrations' clients the core knows."""

from __future__ import annotations

from qak_core import KnowledgeFiltersUnsupported, KnowledgeInvalidResponse, KnowledgeUnavailable
from qak_core.authoring import VendorErrors

# Pipelines and composed retrievers wrap what a component raised. A wrapper without a cause: no dictionary came back.
ERRORS = VendorErrors(
    {
        "haystack.errors.FilterError": KnowledgeFiltersUnsupported,
        "haystack.document_stores.errors.errors.DocumentStoreError": KnowledgeUnavailable,
        "haystack.core.errors.PipelineRuntimeError": KnowledgeInvalidResponse,
    },
    wrappers=("PipelineRuntimeError",),
)
