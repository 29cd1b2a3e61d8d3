"""Protocol 1, clause by clause, for the library and the folder, with and without excerpts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from qak_adapter_local import ChatSummarizer, DomainLibrary, LocalDomainKnowledgeProvider, LocalFolderKnowledgeProvider
from qak_contract_tests import CORPUS, KnowledgeProviderContract
from qak_core.authoring import Secret


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the corpus in it; no clause changes a document."""
    directory = tmp_path_factory.mktemp("contract")
    library = DomainLibrary(directory / "library")
    for document in CORPUS.documents:
        path = directory / f"{document.id}.md"
        path.write_text(f"# {document.text}", encoding="utf-8")
        library.add(document.owner_id, path)
    library.close()
    return directory / "library"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents of the one owner whom it is for."""
    root = tmp_path_factory.mktemp("folder")
    for document in CORPUS.of(CORPUS.owner_id) + CORPUS.of(CORPUS.owner_id, hostile=True):
        (root / f"{document.id}.md").write_text(f"# {document.text}", encoding="utf-8")
    return root


class LibraryContract(KnowledgeProviderContract):
    excerpts: ClassVar[bool]
    directory: Path

    @pytest.fixture(autouse=True)
    def _seeded(self, directory: Path) -> None:
        self.directory = directory

    @asynccontextmanager
    async def open_provider(self, corpus: Any) -> AsyncIterator[LocalDomainKnowledgeProvider]:
        summarizer = ChatSummarizer(Secret(corpus.secret), base_url="http://127.0.0.1:9")
        library = DomainLibrary(self.directory, summarizer=summarizer)
        provider = LocalDomainKnowledgeProvider(library, excerpts=self.excerpts)
        try:
            yield provider
        finally:
            await provider.close()


class TestLibrary(LibraryContract):
    excerpts = False


class TestLibraryWithExcerpts(LibraryContract):
    excerpts = True


class TestFolder(KnowledgeProviderContract):
    waivers: ClassVar = {"retrieve.concurrent": "a folder is for one owner; the clause asks for two owners' documents"}
    root: Path

    @pytest.fixture(autouse=True)
    def _written(self, root: Path) -> None:
        self.root = root

    @asynccontextmanager
    async def open_provider(self, corpus: Any) -> AsyncIterator[LocalFolderKnowledgeProvider]:
        provider = LocalFolderKnowledgeProvider(self.root, owner_id=corpus.owner_id, excerpts=True)
        try:
            yield provider
        finally:
            await provider.close()
