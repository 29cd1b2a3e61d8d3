"""The local library and a local folder as providers of protocol 1."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from qak_adapter_local import _convert
from qak_adapter_local._documents import LibraryDocument, SearchHit
from qak_adapter_local._errors import ERRORS, LibraryError
from qak_adapter_local._folder import FolderLibrary
from qak_adapter_local._summary import ChatSummarizer
from qak_adapter_local.library import DomainLibrary
from qak_adapter_local.settings import LocalSettings
from qak_core import (
    CancelSignal,
    KnowledgeBaseUnknown,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    KnowledgeUnconfigured,
    ProviderDescription,
    ProviderHealth,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
)
from qak_core.authoring import BlockingPool, read_settings, run_blocking

_WORKERS = 4
_MANAGING_WORKERS = 2
_HEALTH_TIMEOUT_S = 5.0

_T = TypeVar("_T")


class _LocalProvider(ABC):
    """What the two have in common: bounded threads, refused arguments, translated errors."""

    label: ClassVar[str]
    management: ClassVar[bool]

    def __init__(self, *, excerpts: bool) -> None:
        self._excerpts = excerpts
        self._pool = BlockingPool(_WORKERS, name="qak-local")
        self._closed = False

    def describe(self) -> ProviderDescription:
        """Say who this is. Scores are the reached part of the best possible one, comparable within an answer."""
        return ProviderDescription(
            key="local",
            label=self.label,
            capabilities={
                "filters": False,
                "scores": True,
                "citations": False,
                "knowledge_bases": False,
                "management": self.management,
            },
        )

    async def retrieve(self, request: RetrievalRequest, context: RetrievalContext) -> Sequence[RetrievalResult]:
        """Find documents, or with ``excerpts`` passages, of the context's owner.

        Raises:
            KnowledgeError: ``knowledge_filters_unsupported``, ``knowledge_base_unknown``, ``knowledge_closed``,
                ``knowledge_unavailable``, or the signal's.
        """
        if request.filters:
            raise KnowledgeFiltersUnsupported
        if request.knowledge_base_ids:
            raise KnowledgeBaseUnknown
        return await ERRORS.guard(
            self._run(self._pool, context.signal, self._retrieve, context.owner_id, request.query, request.top_k)
        )

    async def health(self) -> ProviderHealth:
        """Look at the disk."""
        return await self._run(self._pool, CancelSignal(_HEALTH_TIMEOUT_S), self._health)

    async def close(self) -> None:
        """Take no more calls and let go of the index; a folder that is being read first ends the files it is at."""
        if not self._closed:
            self._closed = True
            self._pool.close()
            await run_blocking(CancelSignal(), self._close)

    async def _run(self, pool: BlockingPool, signal: CancelSignal, fn: Callable[..., _T], *args: object) -> _T:
        if self._closed:
            raise KnowledgeClosed
        return await pool.run(signal, fn, *args)

    def _retrieve(self, owner_id: str, query: str, top_k: int) -> Sequence[RetrievalResult]:
        hits = self._search(owner_id, query, top_k)
        return _convert.excerpts(hits) if self._excerpts else _convert.gists(hits)

    @abstractmethod
    def _search(self, owner_id: str, query: str, top_k: int) -> Sequence[SearchHit]: ...

    @abstractmethod
    def _health(self) -> ProviderHealth: ...

    @abstractmethod
    def _close(self) -> None: ...


class LocalDomainKnowledgeProvider(_LocalProvider):
    """A :class:`DomainLibrary` behind protocol 1, with the management extension.

    The management methods are for clients with their own authorisation, never for a model. They raise
    :class:`LibraryError`, whose codes say what the person who manages the library can do.
    """

    label = "Local library"
    management = True

    def __init__(self, library: DomainLibrary, *, excerpts: bool = False) -> None:
        """Serve a library.

        Args:
            library: closed together with the provider.
            excerpts: return matching passages instead of title, gist and sections.
        """
        super().__init__(excerpts=excerpts)
        self.library = library
        self._managing = BlockingPool(_MANAGING_WORKERS, name="qak-local-manage")  # imports must not hold up a search

    async def ingest(self, source: str | os.PathLike[str], context: RetrievalContext) -> Mapping[str, Any]:
        """Add the file at a path and describe the document; see :meth:`DomainLibrary.add`.

        Raises:
            LibraryError: the file cannot be added.
            KnowledgeError: the provider is closed or the signal ended; the file may still be added then.
        """
        document = await self._run(self._managing, context.signal, self.library.add, context.owner_id, source)
        return _plain(document)

    async def list_documents(self, context: RetrievalContext) -> Sequence[Mapping[str, Any]]:
        """Describe the owner's documents.

        Raises:
            LibraryError: the library is unavailable.
            KnowledgeError: the provider is closed or the signal ended.
        """
        documents = await self._run(self._managing, context.signal, self.library.list, context.owner_id)
        return [_plain(document) for document in documents]

    async def remove_document(self, document_id: str, context: RetrievalContext) -> bool:
        """Remove one of the owner's documents; ``False`` when there is none with this id.

        Raises:
            LibraryError: the library is unavailable.
            KnowledgeError: the provider is closed or the signal ended.
        """
        try:
            await self._run(self._managing, context.signal, self.library.remove, context.owner_id, document_id)
        except LibraryError as error:
            if error.code == "not_found":
                return False
            raise
        return True

    def _search(self, owner_id: str, query: str, top_k: int) -> Sequence[SearchHit]:
        return self.library.search(owner_id, query, top_k, passages=self._excerpts)

    def _health(self) -> ProviderHealth:
        directory = self.library.directory
        if directory.exists() and not (directory.is_dir() and os.access(directory, os.R_OK | os.W_OK | os.X_OK)):
            return ProviderHealth(
                status="unavailable",
                message="The library's directory cannot be read and written; check its permissions.",
            )
        return ProviderHealth(status="ready")

    def _close(self) -> None:
        self._managing.close()
        self.library.close()


class LocalFolderKnowledgeProvider(_LocalProvider):
    """A directory, searched in place, behind protocol 1."""

    label = "Local folder"
    management = False

    def __init__(
        self,
        folder: FolderLibrary | str | os.PathLike[str],
        *,
        index_directory: str | os.PathLike[str] | None = None,
        owner_id: str | None = None,
        excerpts: bool = False,
    ) -> None:
        """Serve a folder.

        Args:
            folder: an open one, or the path of one to read at the first search; closed together with the provider.
            index_directory: see :func:`open_folder`.
            owner_id: the only owner who finds anything; ``None`` where all owners share the folder.
            excerpts: return matching passages instead of title and sections.
        """
        super().__init__(excerpts=excerpts)
        self._folder = folder if isinstance(folder, FolderLibrary) else None
        self._path = folder.root if isinstance(folder, FolderLibrary) else folder
        self._index_directory = index_directory
        self._owner_id = owner_id
        self._opening = threading.Lock()

    def _search(self, owner_id: str, query: str, top_k: int) -> Sequence[SearchHit]:
        if self._owner_id not in {None, owner_id}:
            return []
        return self._open().search(query, top_k, passages=self._excerpts)

    def _open(self) -> FolderLibrary:
        with self._opening:
            if self._closed:
                raise KnowledgeClosed
            if self._folder is None:
                try:
                    self._folder = FolderLibrary(self._path, self._index_directory)
                except LibraryError as error:
                    if error.code in {"not_found", "invalid_path"}:
                        raise KnowledgeUnconfigured from None
                    raise
            return self._folder

    def _health(self) -> ProviderHealth:
        if not os.path.isdir(self._path):
            return ProviderHealth(status="unconfigured", message="The folder does not exist; check the setting folder.")
        if not os.access(self._path, os.R_OK | os.X_OK):
            return ProviderHealth(status="unavailable", message="The folder cannot be read; check its permissions.")
        try:
            problems = self._folder.problems if self._folder else ()
        except LibraryError as error:
            return ProviderHealth(status="unavailable", message=error.message)
        if problems:
            names = ", ".join(problem.name for problem in problems[:3])
            return ProviderHealth(status="degraded", message=f"{len(problems)} files cannot be searched: {names}")
        return ProviderHealth(status="ready")

    def _close(self) -> None:
        with self._opening:
            if self._folder is not None:
                self._folder.close()


def create(settings: Mapping[str, Any]) -> LocalDomainKnowledgeProvider | LocalFolderKnowledgeProvider:
    """Make the provider that ``settings`` describe; reads and writes no document yet.

    Raises:
        SettingsError: with every problem found.
    """
    read = read_settings(LocalSettings, settings, subject="the settings of adapter local")
    if read.folder is not None:
        return LocalFolderKnowledgeProvider(
            read.folder, index_directory=read.index_directory, owner_id=read.owner_id, excerpts=read.excerpts
        )
    library = DomainLibrary(
        read.directory, max_documents=read.max_documents, max_bytes=read.max_bytes, summarizer=_summarizer(read)
    )
    return LocalDomainKnowledgeProvider(library, excerpts=read.excerpts)


def _summarizer(settings: LocalSettings) -> ChatSummarizer | None:
    return (
        ChatSummarizer.configured(
            api_key=settings.summary_api_key,
            base_url=settings.summary_base_url,
            model=settings.summary_model,
            timeout_s=settings.summary_timeout_s,
        )
        if settings.summary
        else None
    )


def _plain(document: LibraryDocument) -> dict[str, Any]:
    """Describe a document in strict JSON: bytes of a path that are no UTF-8 become U+FFFD."""
    values = document.to_dict()
    return {
        name: os.fsencode(value).decode(errors="replace") if name in {"source_path", "path"} else value
        for name, value in values.items()
    }
