"""The two providers through the runtime of qak-core, and their settings."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

import qak_adapter_local
from qak_adapter_local import (
    ChatSummarizer,
    DomainLibrary,
    LibraryError,
    LocalDomainKnowledgeProvider,
    LocalFolderKnowledgeProvider,
    create,
    open_folder,
)
from qak_adapter_local.provider import _plain
from qak_core import (
    CancelSignal,
    KnowledgeAnswer,
    KnowledgeBaseUnknown,
    KnowledgeCancelled,
    KnowledgeClosed,
    KnowledgeFiltersUnsupported,
    KnowledgeManagementProvider,
    KnowledgeRuntime,
    KnowledgeTimeout,
    KnowledgeUnavailable,
    KnowledgeUnconfigured,
    RetrievalContext,
    RetrievalRequest,
    RetrievalResult,
    SettingsError,
    assert_provider,
    list_adapters,
)
from qak_core.composition import choose_provider

OWNER = "owner-a"
T = TypeVar("T")
Provider = LocalDomainKnowledgeProvider | LocalFolderKnowledgeProvider


def ask(provider: Provider, query: str, owner_id: str = OWNER, top_k: int = 5) -> list[RetrievalResult]:
    async def retrieve() -> list[RetrievalResult]:
        request = RetrievalRequest(query=query, top_k=top_k)
        return list(await provider.retrieve(request, RetrievalContext(owner_id=owner_id)))

    return asyncio.run(retrieve())


def answer(provider: Provider, query: str) -> KnowledgeAnswer:
    async def search() -> KnowledgeAnswer:
        runtime = KnowledgeRuntime(provider)
        try:
            return await runtime.search(query, owner_id=OWNER)
        finally:
            await runtime.close()

    return asyncio.run(search())


def run(awaitable: Awaitable[T]) -> T:
    async def wait() -> T:
        return await awaitable

    return asyncio.run(wait())


@pytest.fixture
def provider(library: DomainLibrary) -> LocalDomainKnowledgeProvider:
    return LocalDomainKnowledgeProvider(library)


def test_provider_returns_title_sections_and_where_the_body_is_but_no_body(
    provider: LocalDomainKnowledgeProvider, fees: Path
) -> None:
    document = provider.library.add(OWNER, fees)

    [result] = ask(provider, "年费")

    assert result.content == (
        f"信用卡收费规定\nMD\n章节 / Sections:\n- 收费标准\n- 减免办法\n正文 / Full text: {document.path}"
    )
    assert result.source is not None
    assert result.source.uri is None
    assert (result.id, result.source.id, result.source.title) == (document.id, document.id, "信用卡收费规定")
    assert result.source.locator == document.path
    assert "年费" in Path(document.path).read_text(encoding="utf-8")
    assert dict(result.metadata) == {"section": "收费标准"}
    assert result.score is not None
    assert 0 < result.score <= 1


def test_provider_shows_the_gist_of_the_summarizer(tmp_path: Path, fees: Path) -> None:
    def summarize(document: Any, name: str) -> qak_adapter_local.Summary:
        return qak_adapter_local.Summary(title="收费", gist="讲收费标准。", sections=())

    library = DomainLibrary(tmp_path / "library", summarizer=summarize)
    library.add(OWNER, fees)

    assert ask(LocalDomainKnowledgeProvider(library), "年费")[0].content.startswith("收费\n讲收费标准。\n正文")
    library.close()


def test_provider_answers_as_briefly_for_a_manual_as_for_a_memo(
    provider: LocalDomainKnowledgeProvider, write: Callable[..., Path]
) -> None:
    memo = "# Memo\n\n" + "\n\n".join(f"## Section number {number:04}\n\nHeliotrope lamp." for number in range(24))
    manual = (
        memo.replace("Memo", "Book")
        + "\n\n"
        + "\n\n".join(
            f"## Section number {number:04}\n\n{'The heliotrope lamp charges in the sun. ' * 50}"
            for number in range(24, 500)
        )
    )
    provider.library.add(OWNER, write("memo.md", memo))
    provider.library.add(OWNER, write("book.md", manual))

    sizes = [len(result.content) for result in ask(provider, "heliotrope lamp")]

    assert len(sizes) == 2
    assert max(sizes) - min(sizes) <= len("\n… (+476)") + 4
    assert max(sizes) < 4000


def test_provider_returns_passages_with_their_page_when_excerpts_are_on(
    library: DomainLibrary, write: Callable[..., Path], make_pdf: Callable[..., bytes]
) -> None:
    path = write("manual.pdf", make_pdf([["Introduction"], ["Safety first"], ["The heliotrope lamp gives light"]]))
    document = library.add(OWNER, path)

    [result] = ask(LocalDomainKnowledgeProvider(library, excerpts=True), "heliotrope")

    assert result.content == "The heliotrope lamp gives light"
    assert result.source is not None
    assert result.source.locator == f"{document.path}#page=3"
    assert dict(result.metadata) == {"page": 3}
    assert result.id.startswith(f"{document.id}-")
    assert ask(LocalDomainKnowledgeProvider(library, excerpts=True), "heliotrope")[0].id == result.id


def test_provider_goes_through_the_runtime_without_a_citation(
    provider: LocalDomainKnowledgeProvider, fees: Path
) -> None:
    document = provider.library.add(OWNER, fees)

    found = answer(provider, "年费是多少？").to_dict()

    assert found["status"] == "ok"
    assert found["citations"] == []
    assert found["results"][0]["source"]["locator"] == document.path
    json.dumps(found, allow_nan=False)


def test_provider_says_not_found_for_another_owner(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    provider.library.add("owner-b", fees)

    assert ask(provider, "年费") == []
    assert answer(provider, "年费").to_dict()["status"] == "not_found"


def test_provider_describes_itself(provider: LocalDomainKnowledgeProvider, tmp_path: Path) -> None:
    described = assert_provider(provider)
    assert (described.key, dict(described.capabilities)) == (
        "local",
        {"filters": False, "scores": True, "citations": False, "knowledge_bases": False, "management": True},
    )
    assert isinstance(provider, KnowledgeManagementProvider)
    folder = LocalFolderKnowledgeProvider(tmp_path)
    assert assert_provider(folder).capabilities["management"] is False
    assert not isinstance(folder, KnowledgeManagementProvider)


def test_provider_refuses_filters_and_knowledge_bases(provider: LocalDomainKnowledgeProvider) -> None:
    context = RetrievalContext(owner_id=OWNER)

    with pytest.raises(KnowledgeFiltersUnsupported):
        run(provider.retrieve(RetrievalRequest(query="x", filters={"a": 1}), context))
    with pytest.raises(KnowledgeBaseUnknown):
        run(provider.retrieve(RetrievalRequest(query="x", knowledge_base_ids=["a"]), context))


def test_provider_obeys_the_signal(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    provider.library.add(OWNER, fees)
    cancelled = CancelSignal()
    cancelled.cancel()

    for signal, error in ((cancelled, KnowledgeCancelled), (CancelSignal(0), KnowledgeTimeout)):
        with pytest.raises(error):
            run(provider.retrieve(RetrievalRequest(query="x"), RetrievalContext(owner_id=OWNER, signal=signal)))


def test_provider_raises_nothing_of_the_disk(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    provider.library.add(OWNER, fees)
    [folder] = (provider.library.directory / "owners").iterdir()
    os.rename(folder, folder.with_name("moved"))
    folder.write_text("in the way")

    with pytest.raises(KnowledgeUnavailable) as caught:
        ask(provider, "年费")

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert str(folder) not in str(caught.value)


def test_provider_is_closed_once_closed(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    async def close_twice_and_ask() -> None:
        await provider.close()
        await provider.close()
        context = RetrievalContext(owner_id=OWNER)
        for call in (
            provider.retrieve(RetrievalRequest(query="x"), context),
            provider.ingest(fees, context),
            provider.list_documents(context),
            provider.remove_document("x", context),
            provider.health(),
        ):
            with pytest.raises(KnowledgeClosed):
                await call

    asyncio.run(close_twice_and_ask())


def test_provider_manages_documents(provider: LocalDomainKnowledgeProvider, fees: Path, tmp_path: Path) -> None:
    async def manage() -> None:
        context = RetrievalContext(owner_id=OWNER)
        added = await provider.ingest(str(fees), context)
        assert added["title"] == "信用卡收费规定"
        json.dumps(added, allow_nan=False).encode()
        assert [document["id"] for document in await provider.list_documents(context)] == [added["id"]]
        assert await provider.list_documents(RetrievalContext(owner_id="owner-b")) == []
        assert await provider.remove_document(added["id"], RetrievalContext(owner_id="owner-b")) is False
        assert await provider.remove_document(added["id"], context) is True
        assert await provider.remove_document(added["id"], context) is False
        with pytest.raises(LibraryError) as caught:
            await provider.ingest(str(tmp_path / "none.md"), context)
        assert caught.value.code == "not_found"

    asyncio.run(manage())


def test_provider_shows_paths_that_are_no_text_as_text(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    document = provider.library.add(OWNER, fees)

    shown = _plain(replace(document, source_path=os.fsdecode(b"/home/\xc4\xea.md")))

    assert shown["source_path"] == "/home/\ufffd\ufffd.md"
    json.dumps(shown, ensure_ascii=False).encode()


def test_health_of_a_library(provider: LocalDomainKnowledgeProvider, fees: Path) -> None:
    assert run(provider.health()).status == "ready"
    assert not provider.library.directory.exists()
    provider.library.directory.write_text("in the way")
    assert run(provider.health()).status == "unavailable"


def test_health_of_a_folder(tmp_path: Path, fees: Path) -> None:
    provider = LocalFolderKnowledgeProvider(tmp_path / "handbook")
    assert run(provider.health()).status == "unconfigured"
    with pytest.raises(KnowledgeUnconfigured):
        ask(provider, "年费")
    os.rename(fees.parent, tmp_path / "handbook")
    assert run(provider.health()).status == "ready"
    (tmp_path / "handbook" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")

    assert [result.source and result.source.title for result in ask(provider, "年费")] == ["信用卡收费规定"]

    health = run(provider.health())
    assert health.status == "degraded"
    assert "broken.pdf" in health.message
    run(provider.close())


def test_folder_provider_that_is_closed_while_it_reads_keeps_no_event_loop_from_ending(fees: Path) -> None:
    folder = open_folder(fees.parent)
    (fees.parent / "new.md").write_text("# New")
    reading, go_on = threading.Event(), threading.Event()

    def wait(done: int, total: int, name: str) -> None:
        reading.set()
        assert go_on.wait(60)

    async def close() -> None:
        await KnowledgeRuntime(LocalFolderKnowledgeProvider(folder), close_timeout_s=0.05).close()

    reader = threading.Thread(target=folder.refresh, args=(wait,))
    reader.start()
    assert reading.wait(30)
    loop = threading.Thread(target=lambda: asyncio.run(close()), daemon=True)
    loop.start()
    loop.join(30)
    still_there = loop.is_alive()
    go_on.set()
    reader.join(30)
    loop.join(30)

    assert not still_there


def test_folder_provider_serves_the_owner_it_is_for(fees: Path) -> None:
    folder = open_folder(fees.parent)
    provider = LocalFolderKnowledgeProvider(folder, owner_id=OWNER, excerpts=True)

    assert ask(provider, "年费", "owner-b") == []
    [result] = ask(provider, "年费")
    assert result.content.startswith("# 信用卡收费规定\n\n## 收费标准\n\n白金卡")
    assert result.source is not None
    assert result.source.locator == str(fees)
    run(provider.close())


def test_create_reads_its_settings(tmp_path: Path, fees: Path) -> None:
    made = create({"directory": str(tmp_path / "library"), "excerpts": True, "max_documents": 1, "max_bytes": 10_000})
    assert isinstance(made, LocalDomainKnowledgeProvider)
    made.library.add(OWNER, fees)
    assert "三百元" in ask(made, "年费")[0].content
    run(made.close())
    folder = create({"folder": str(fees.parent), "index_directory": str(tmp_path / "index"), "owner_id": OWNER})
    assert ask(folder, "年费")
    assert ask(folder, "年费", "owner-b") == []
    assert (tmp_path / "index" / "index.db").exists()
    run(folder.close())


def test_create_reports_every_problem_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        create({"directry": "x", "excerpts": "yes", "max_bytes": "10", "summary_api_key": "sk-inline"})
    assert len(caught.value.problems) == 4
    assert "sk-inline" not in str(caught.value)
    with pytest.raises(SettingsError) as caught:
        create(
            {"max_bytes": 0, "max_documents": -1, "summary_timeout_s": 0.0, "summary_base_url": "x", "owner_id": "a"}
        )
    assert len(caught.value.problems) == 5


def test_create_asks_a_model_only_where_a_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def summarizer(settings: dict[str, Any]) -> Any:
        made = create(settings)
        assert isinstance(made, LocalDomainKnowledgeProvider)
        return made.library._summarize

    assert not isinstance(summarizer({}), ChatSummarizer)
    monkeypatch.setenv("QWEN_AUDIO_MEMORY_API_KEY", "k")
    assert isinstance(summarizer({}), ChatSummarizer)
    assert not isinstance(summarizer({"summary": False}), ChatSummarizer)
    monkeypatch.setenv("OTHER_KEY", "o")
    assert "'own'" in repr(summarizer({"summary_api_key": "env:OTHER_KEY", "summary_model": "own"}))


def test_library_is_turned_on_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fees: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose_provider(environ={"QWEN_AUDIO_DOMAIN_LIBRARY": "off"}) is None

    chosen = choose_provider(environ={"QWEN_AUDIO_DOMAIN_LIBRARY": "on"})

    assert isinstance(chosen, LocalDomainKnowledgeProvider)
    assert chosen.library.directory.is_relative_to(tmp_path)
    assert not chosen.library.directory.exists()
    chosen.library.add(OWNER, fees)
    assert ask(chosen, "年费")
    run(chosen.close())


def test_adapter_is_found_by_its_entry_point_and_light_to_import() -> None:
    [listed] = [adapter for adapter in list_adapters() if adapter.name == "local"]
    assert listed.distribution == "qak-adapter-local"
    script = "import sys, qak_adapter_local as a; a.create({}); print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["kreuzberg", "httpx2", "qak_documents", "snowballstemmer", "charset_normalizer"]

    done = subprocess.run(
        [sys.executable, "-c", script, *heavy], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


def test_public_face_is_frozen() -> None:
    assert qak_adapter_local.__all__ == [
        *("ChatSummarizer", "DomainLibrary", "FolderLibrary", "FolderProblem", "LibraryDocument", "LibraryError"),
        *("LibraryErrorCode", "LocalDomainKnowledgeProvider", "LocalFolderKnowledgeProvider", "LocalSettings"),
        *("SearchHit", "Summary", "create", "open_folder"),
    ]
    assert all(hasattr(qak_adapter_local, name) for name in qak_adapter_local.__all__)
