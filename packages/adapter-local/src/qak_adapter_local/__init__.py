"""Documents of this machine as a knowledge provider: a library per owner, or a folder searched in place."""

from qak_adapter_local._errors import LibraryErrorCode
from qak_adapter_local._folder import FolderProblem
from qak_adapter_local._summary import ChatSummarizer, Summary
from qak_adapter_local.library import (
    DomainLibrary,
    FolderLibrary,
    LibraryDocument,
    LibraryError,
    SearchHit,
    open_folder,
)
from qak_adapter_local.provider import LocalDomainKnowledgeProvider, LocalFolderKnowledgeProvider, create
from qak_adapter_local.settings import LocalSettings

__all__ = [
    "ChatSummarizer",
    "DomainLibrary",
    "FolderLibrary",
    "FolderProblem",
    "LibraryDocument",
    "LibraryError",
    "LibraryErrorCode",
    "LocalDomainKnowledgeProvider",
    "LocalFolderKnowledgeProvider",
    "LocalSettings",
    "SearchHit",
    "Summary",
    "create",
    "open_folder",
]
