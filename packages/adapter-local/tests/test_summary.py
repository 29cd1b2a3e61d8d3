"""The chat call, against a real server, and what is done without one."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from qak_adapter_local import ChatSummarizer, DomainLibrary, Summary
from qak_adapter_local._summary import summarize_by_headings
from qak_core.authoring import Secret
from qak_documents import Document, extract

KEY = "larkspurVault7Qm2xT9bWc4"
TEXT = """# 收费规定

## 第一章 标准

年费三百元，password: hunter2x9 请勿外传。

## 第二章 减免

刷卡六次免收。

附录：联系方式
"""


@dataclass
class ChatServer:
    """A server that answers as a test tells it, and keeps what it was asked."""

    answer: Callable[[BaseHTTPRequestHandler], None]
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    release: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    chat = ChatServer(answer=lambda handler: None)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            chat.requests.append((self.path, dict(self.headers), json.loads(body)))
            chat.answer(self)

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    chat.url = f"http://127.0.0.1:{httpd.server_port}/v1"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield chat
    chat.release.set()
    httpd.shutdown()
    httpd.server_close()
    thread.join(10)


@pytest.fixture
def document() -> Document:
    return extract(TEXT.encode(), filename="fees.md")


def send(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def says(content: object) -> Callable[[BaseHTTPRequestHandler], None]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return send(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode())


def summarizer(server: ChatServer, timeout_s: float = 10.0) -> ChatSummarizer:
    return ChatSummarizer(Secret(KEY), base_url=server.url, model="small", timeout_s=timeout_s)


def test_chat_summary_is_taken_where_it_is_true_to_the_document(server: ChatServer, document: Document) -> None:
    server.answer = says(
        {
            "title": " 信用卡\n收费规定 ",
            "gist": "说明年费标准\u202e和减免办法。",
            "sections": [
                "第二章 减免",
                "## 第一章 标准",
                "附录：联系方式",
                "第三章 杜撰",
                "年费三百元",
                7,
                "第二章 减免",
            ],
        }
    )

    summary = summarizer(server)(document, "fees.md")

    assert summary == Summary(
        title="信用卡 收费规定",
        gist="说明年费标准 和减免办法。",
        sections=("第二章 减免", "第一章 标准", "附录：联系方式"),
    )
    [(path, headers, body)] = server.requests
    assert (path, headers["Authorization"], body["model"]) == ("/v1/chat/completions", f"Bearer {KEY}", "small")
    assert "第一章 标准" in body["messages"][1]["content"]
    assert "hunter2x9" not in json.dumps(body)


def test_chat_summary_may_stand_in_a_code_fence(server: ChatServer, document: Document) -> None:
    server.answer = says('```json\n{"title": "收费", "gist": "讲年费。", "sections": []}\n```')

    assert summarizer(server)(document, "fees.md").gist == "讲年费。"


@pytest.mark.parametrize(
    "answer",
    [
        send(500, b"internal error"),
        send(401, b"bad key " + KEY.encode()),
        send(200, b"\xff\xfe garbage"),
        send(200, b"{}"),
        send(200, b'{"choices": []}'),
        send(307, b"", Location="http://127.0.0.1:9/elsewhere"),
        says("Here is your summary: title: 收费"),
        says("[1, 2]"),
        says("null"),
        says('{"title": "x", "gist"'),
        says("```json" + " " * 200_000 + "x"),
        says("[" * 100_000),
        send(200, gzip.compress(bytes(1 << 28)), **{"Content-Encoding": "gzip"}),
        send(200, b'{"choices": [{"message": {"content": "' + b"a" * 300_000 + b'"}}]}'),
    ],
)
def test_chat_summary_falls_back_on_the_document_when_the_answer_is_no_use(
    server: ChatServer, document: Document, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    server.answer = answer

    assert summarizer(server)(document, "fees.md") == summarize_by_headings(document, "fees.md")
    assert len(caplog.records) == 1
    assert KEY not in caplog.text


@pytest.mark.parametrize("part", ["nothing", "headers", "body"])
def test_chat_summary_waits_no_longer_than_told(server: ChatServer, document: Document, part: str) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        if part == "body":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
        while not server.release.wait(0.02):
            if part == "headers":
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: " if not handler.wfile.closed else b"")
            elif part == "body":
                handler.wfile.write(b" ")

    def answer(handler: BaseHTTPRequestHandler) -> None:
        try:
            drip(handler)
        except OSError:
            handler.close_connection = True

    server.answer = answer

    assert summarizer(server, timeout_s=0.3)(document, "fees.md") == summarize_by_headings(document, "fees.md")


def test_chat_summary_falls_back_when_nobody_listens(document: Document) -> None:
    nobody = ChatSummarizer(Secret(KEY), base_url="http://127.0.0.1:9", timeout_s=5)

    assert nobody(document, "fees.md").title == "收费规定"


def test_chat_summary_refuses_secrets(server: ChatServer, tmp_path: Path) -> None:
    leak = "sk-proj-abcdefghijklmnopqrstuv"
    document = extract(f"# 收费规定\n\n## api_key={leak}\n\n## 标准\n\n文字。".encode(), filename="a.md")
    server.answer = says(
        {"title": f"Key {leak}", "gist": "password: hunter2x9", "sections": [f"api_key={leak}", "标准"]}
    )

    summary = summarizer(server)(document, "a.md")

    assert summary == Summary(title="收费规定", gist="", sections=("标准",))
    assert leak not in repr(summarize_by_headings(document, "a.md"))
    assert leak not in json.dumps(server.requests[0][2])


@pytest.mark.parametrize(
    "values", [{"title": 7, "gist": [], "sections": "标准"}, {}, {"title": "", "sections": {"a": 1}}]
)
def test_chat_summary_completes_what_is_missing_or_wrong(
    server: ChatServer, document: Document, values: dict[str, object]
) -> None:
    server.answer = says(values)

    assert summarizer(server)(document, "fees.md") == summarize_by_headings(document, "fees.md")


def test_chat_summary_is_bounded(server: ChatServer) -> None:
    text = "# T\n\n" + "\n\n".join(f"## Section {number}\n\nText." for number in range(200))
    document = extract(text.encode(), filename="a.md")
    sections = [f"Section {number}" for number in range(200)]
    server.answer = says({"title": "t" * 5000, "gist": "g" * 5000, "sections": sections})

    summary = summarizer(server)(document, "a.md")

    assert (len(summary.title), len(summary.gist), len(summary.sections)) == (120, 200, 24)


def test_chat_summary_costs_no_more_than_the_document_is_long(server: ChatServer) -> None:
    server.answer = says({"title": "Fees", "gist": "About fees.", "sections": ["Annual fee"]})
    blanks = "a" + " " * 300_000 + "b"

    summary = summarizer(server)(extract(f"{blanks}\n\n##   Annual   fee  ##\n\n{blanks}\n".encode()), "fees.txt")

    assert summary.sections == ("Annual fee",)


def test_summarizer_shows_its_key_nowhere(
    server: ChatServer, document: Document, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer = send(500, KEY.encode())
    chat = summarizer(server)

    chat(document, "fees.md")

    assert KEY not in repr(chat) + str(chat) + caplog.text + repr(vars(chat))


def test_summarizer_is_configured_from_the_environment(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fees: Path
) -> None:
    assert ChatSummarizer.configured() is None
    monkeypatch.setenv("QWEN_AUDIO_MEMORY_API_KEY", KEY)
    monkeypatch.setenv("QWEN_AUDIO_MEMORY_BASE_URL", server.url + "/")
    monkeypatch.setenv("QWEN_AUDIO_MEMORY_MODEL", "tiny")
    server.answer = says({"title": "收费", "gist": "讲年费。", "sections": ["减免办法"]})
    library = DomainLibrary(tmp_path / "library", summarizer=ChatSummarizer.configured())

    document = library.add("owner-a", fees)

    assert (document.title, document.gist, list(document.sections)) == ("收费", "讲年费。", ["减免办法"])
    assert server.requests[0][2]["model"] == "tiny"
    assert [hit.document.id for hit in library.search("owner-a", "讲年费")] == [document.id]
    library.close()


def test_headings_of_the_document_are_chosen_by_level_and_kept_in_order() -> None:
    parts = [f"## Part {number}\n\n### Detail {number}\n\nText." for number in range(20)]
    document = extract(("# Manual\n\n" + "\n\n".join(parts)).encode(), filename="manual.md")

    summary = summarize_by_headings(document, "manual.md")

    assert (summary.title, summary.gist) == ("Manual", "")
    assert [text for text in summary.sections if text.startswith("Part")] == [f"Part {number}" for number in range(20)]
    assert list(summary.sections)[:3] == ["Part 0", "Detail 0", "Part 1"]
    assert len(summary.sections) == 24


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Just text.", "年费 2026"),
        ("## Fees\n\nText.\n\n### More\n\nText.", "Fees"),
        ("## Fees\n\nText.\n\n## More\n\nText.", "年费 2026"),
        ("# password: hunter2x9\n\nText.", "年费 2026"),
    ],
)
def test_title_is_the_documents_own_else_the_files_name(text: str, title: str) -> None:
    assert summarize_by_headings(extract(text.encode(), filename="a.md"), "年费 2026.md").title == title


def test_headings_too_long_to_be_verbatim_are_left_out() -> None:
    document = extract(f"# T\n\n## {'x' * 121}\n\nText.\n\n## Short\n\nText.".encode(), filename="a.md")

    assert summarize_by_headings(document, "a.md").sections == ("Short",)
