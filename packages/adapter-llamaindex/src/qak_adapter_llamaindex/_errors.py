"""What goes wrong under a LlamaIndex retriever, as errors of the protocol.

LlamaIndex has hardly any errors of its own: a failure comes from Python, or from the client of the embedding model or
vector store, and those the core knows.
"""

from __future__ import annotations

from qak_core.authoring import VendorErrors

ERRORS = VendorErrors()
