"""The main job's demo, run as its users run it: three questions, the right documents, citations of public pages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[1] / "examples" / "handbook" / "demo.py"
TAKEN_AWAY = ("QWEN_", "QAK_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, str]:
    """Question to what the demo printed for it, without key, configuration or home."""
    home = tmp_path_factory.mktemp("home")
    env = {name: value for name, value in os.environ.items() if not name.startswith(TAKEN_AWAY)} | {"HOME": str(home)}
    ran = subprocess.run([sys.executable, DEMO], cwd=home, env=env, capture_output=True, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stderr == b""
    assert list(home.iterdir()) == []
    parts = re.split(r"^--- (.+)\n", ran.stdout.decode(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(
    ("question", "document", "answer"),
    [
        ("发布需要几个人批准？", "发布手册.md", "发布需要两位审核人批准"),
        ("年费什么时候退？", "客户合同与退款.docx", "14 天内申请，年费全额退还"),
        (
            "How fast must on-call answer a page?",
            "on-call-escalation.pdf",
            "5 minutes for SEV1 and 15 minutes for SEV2",
        ),
    ],
)
def test_demo_answers_from_the_right_document(answers, question: str, document: str, answer: str) -> None:
    first = answers[question].partition("\n2. ")[0]
    assert first.lstrip().startswith("1. ")
    assert document in first
    assert answer in answers[question]


def test_demo_cites_documents_with_a_public_page_and_no_others(answers) -> None:
    assert "https://docs.example.com/releases [source_1]" in answers["发布需要几个人批准？"]
    assert "https://docs.example.com/operations/on-call [source_1]" in answers["How fast must on-call answer a page?"]
    assert "source_" not in answers["年费什么时候退？"]


def test_demo_shows_once_what_an_answer_without_excerpts_is(answers) -> None:
    (gist,) = (text for question, text in answers.items() if "Without excerpts" in question)
    assert "- 退款" in gist
    assert "年费" not in gist
