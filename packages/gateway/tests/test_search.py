"""`qak search`: the whole path in one process, for people and for programs."""

import json
import re

import pytest

from qak_gateway._terminal import escape_json, one_line, printable, wrap
from qak_gateway.search import query_words

ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def test_search_finds_through_the_whole_path_and_numbers_the_results(qak, configured) -> None:
    configured()
    ran = qak("search", "谁批准？", "--owner", "ada")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "1. 发布手册  (score 0.5)"
    assert "section=审批" in lines[1]
    assert "https://docs.example.com/releases [source_1]" in lines[2]
    assert "发布需要两位审核人批准。" in lines[3]
    assert "2. for ada" in ran.out


def test_json_is_the_envelope_and_nothing_else(qak, configured) -> None:
    configured()
    ran = qak("search", "谁批准？", "--json", "--top-k", "1")
    answer = json.loads(ran.out)
    assert ran.code == 0
    assert set(answer) == {"status", "query", "results", "citations", "notice"}
    assert len(answer["results"]) == 1
    assert answer["citations"][0]["url"] == "https://docs.example.com/releases"
    assert "谁批准？" in ran.out
    assert "banner" in ran.err


def test_json_is_utf8_whatever_the_locale(qak, configured) -> None:
    configured()
    ran = qak("search", "x", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(ran.out)["results"][0]["source"]["title"] == "发布手册"


def test_text_in_a_poor_locale_loses_letters_but_does_not_fail(qak, configured) -> None:
    configured()
    ran = qak("search", "x", PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert "https://docs.example.com/releases" in ran.out


def test_nothing_found_is_exit_code_1(qak, configured) -> None:
    configured("nothing")
    ran = qak("search", "x")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing found for 'x'" in ran.err
    ran = qak("search", "x", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["status"] == "not_found"


def test_provider_that_fails_is_exit_code_3_and_keeps_its_secrets(qak, configured) -> None:
    configured("fail")
    ran = qak("search", "x", "--json")
    assert ran.code == 3
    assert json.loads(ran.out) == {
        "status": "error",
        "code": "knowledge_failed",
        "message": "The knowledge source could not answer.",
        "retryable": True,
    }
    assert "RuntimeError" in ran.err
    assert "qak doctor" in ran.err
    assert "hunter22" not in ran.err
    assert not ESCAPES.search(ran.err)


def test_failed_search_tells_what_the_provider_says_of_itself(qak, configured) -> None:
    configured("fail")
    assert "the provider is unavailable: no route" in qak("search", "x").err


def test_degraded_answer_names_the_missing_side_to_the_person(qak, configured) -> None:
    configured("degraded")
    ran = qak("search", "x", "--json")
    assert ran.code == 1
    assert "no answer from sales" in ran.err
    assert not ESCAPES.search(ran.err)
    assert "sales" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([" "], "knowledge_query_required"),
        (["x", "--owner", " "], "knowledge_owner_required"),
        (["x", "--kb", "payroll"], "knowledge_base_unknown"),
    ],
)
def test_search_that_was_asked_for_wrongly_is_exit_code_2(qak, configured, arguments, code) -> None:
    configured()
    ran = qak("search", *arguments)
    assert ran.code == 2
    assert code in ran.err


def test_published_knowledge_bases_can_be_chosen(qak, configured) -> None:
    configured()
    assert qak("search", "x", "--kb", "sales", "--kb", "engineering").code == 0


def test_hostile_text_is_inert_on_a_terminal(qak_on_terminal, configured) -> None:
    configured()
    ran = qak_on_terminal("search", "发布 审批 markup \x1b]0;me\x07")
    assert ran.code == 0
    assert not ESCAPES.search(STYLE.sub("", ran.out))
    assert "[bold]no markup[/bold] :smile:" in STYLE.sub("", ran.out)


def test_words_of_the_query_are_highlighted_on_a_terminal_only(qak, qak_on_terminal, configured) -> None:
    configured()
    assert re.search(r"\x1b\[1;33m发", qak_on_terminal("search", "发布").out)
    assert "\x1b" not in qak("search", "发布").out


def test_no_color_is_respected(qak_on_terminal, configured) -> None:
    configured()
    ran = qak_on_terminal("search", "发布", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", ran.out)


@pytest.mark.parametrize("columns", ["1", "3", "4", "20"])
def test_results_are_shown_on_a_terminal_of_any_width(qak_on_terminal, configured, columns) -> None:
    configured()
    ran = qak_on_terminal("search", "发布", COLUMNS=columns)
    assert ran.code == 0
    assert "审核人" in re.sub(r"\s", "", STYLE.sub("", ran.out))


def test_chinese_and_english_text_wrap_at_80_columns(qak_on_terminal, configured, tmp_path) -> None:
    (tmp_path / "long.txt").write_text("发布需要两位审核人批准。" * 20 + " and some English words" * 20, "utf-8")
    configured(settings='file = "long.txt"')
    ran = qak_on_terminal("search", "没有的词")
    widths = [sum(2 if char > "\u2e7f" else 1 for char in line) for line in STYLE.sub("", ran.out).split("\n")]
    assert 60 < max(widths) <= 80


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("How fast must on-call answer a page?", "Answer the PAGES fast, how", {"Answer", "PAGE", "fast"}),
        ("年费什么时候退？", "年费何时退", {"年费"}),
        ("发布需要几个人批准", "两人批准发布", {"人批", "批准", "发布"}),
        ("退", "可退", {"退"}),
        ("API密钥", "密钥和api", {"密钥", "api"}),
        ("???", "???", set()),
        ("a.b(c", "abc", set()),
    ],
)
def test_query_words_are_pairs_of_han_characters_and_starts_of_words(query, text, marked) -> None:
    assert {found for word in query_words(query) for found in word.findall(text)} == marked


def test_printable_keeps_writing_and_takes_the_power_out_of_the_rest() -> None:
    kept = "发布\u3000a\tb\nc é 👩\u200d💻 मी"
    assert printable(kept) == kept
    assert printable("\x1b[2J\x9b2J\u202eabc\u2028\udc80\r") == "\ufffd[2J\ufffd2J\ufffdabc\ufffd\ufffd\ufffd"
    assert one_line(" a\r\n\tb\u2028c ") == "a b c"


def test_wrapping_breaks_between_han_characters_and_at_blanks_but_not_around_punctuation() -> None:
    assert wrap("发布需要，两位", 9) == "发布需\n要，两位"
    assert wrap("看《发布》", 4) == "看\n《发\n布》"
    assert wrap("ab cd\n\n  ef", 5) == "ab cd\n\n  ef"
    assert wrap("abcdefgh ij", 5) == "abcde\nfgh\nij"
    assert wrap("满 9 个月", 6) == "满 9\n个月"
    assert wrap("", 5) == ""


def test_escaped_json_keeps_its_value() -> None:
    value = {"a\x7f": ["\x9b2J", "\u202e", "\u2028", "发布"]}
    text = escape_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not ESCAPES.search(text)
    assert "发布" in text
