"""`qak.toml`: where it is found and what is said about it."""

import json
from pathlib import Path

import pytest

from qak_gateway.configuration import RuntimeSettings, find_configuration, read_configuration


def read(tmp_path: Path, text: str):
    path = tmp_path / "qak.toml"
    path.write_text(text, "utf-8")
    return read_configuration(path)


def test_provider_table_is_adapter_and_the_rest_are_its_settings(tmp_path: Path) -> None:
    text = """
        [provider]
        adapter = "langchain"
        retriever = "my_app:make"
        [provider.knowledge_bases]
        engineering = "my_app:engineering"
    """
    configuration = read(tmp_path, text)
    assert configuration.problems == ()
    assert configuration.adapter == "langchain"
    assert configuration.settings == {
        "retriever": "my_app:make",
        "knowledge_bases": {"engineering": "my_app:engineering"},
    }


def test_runtime_table_is_read_into_its_settings(tmp_path: Path) -> None:
    configuration = read(tmp_path, '[runtime]\ntimeout_s = 5\nlanguage = "zh"\nbreaker_failures = 0\n')
    assert configuration.problems == ()
    assert configuration.runtime == RuntimeSettings(timeout_s=5.0, language="zh", breaker_failures=0)


def test_breaker_is_on_by_default() -> None:
    assert RuntimeSettings().breaker_failures > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[provider]\nadapter = \n", "line 2"),
        ("[provider]\nname = 1\n", "[provider] adapter is required"),
        ("[provider]\nadapter = 3\n", "[provider] adapter is required"),
        ('[[provider]]\nadapter = "x"\n', "[provider], got list"),
        ("[runtim]\n", "did you mean [runtime]?"),
        ("[runtime]\ntimeout = 3\n", "did you mean 'timeout_s'?"),
        ('[runtime]\ntimeout_s = "3"\n', "timeout_s: expected a number, got str"),
        ("[runtime]\ntimeout_s = nan\n", "timeout_s must be above 0"),
        ("[runtime]\nmax_in_flight = 0\n", "max_in_flight must be above 0"),
        ("[runtime]\nmax_content_chars = 5000\n", "4000 at most"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "1" * 5000, "it is not TOML"),
        ("a = 1\n" * 200_000, "1,048,576 bytes"),
    ],
)
def test_mistake_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert said in "\n".join(read(tmp_path, text).problems)


def test_file_that_has_no_end_is_named(qak) -> None:
    ran = qak("search", "x", QAK_CONFIG="/dev/zero")
    assert ran.code == 2
    assert "1,048,576 bytes" in ran.err
    assert "no provider is configured" not in ran.err


def test_file_in_the_home_of_nobody_is_named(qak) -> None:
    assert qak("search", "x", QAK_CONFIG="~no-such-user/qak.toml").code == 2


def test_file_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff[runtime]\ntimeout_s = 5\n").runtime.timeout_s == 5.0


def test_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "qak.toml"
    path.write_bytes('a = "发布"'.encode("gb18030"))
    assert "UTF-8" in read_configuration(path).problems[0]


def test_file_is_the_given_one_then_the_variable_then_the_working_directory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_configuration(None, {}) is None
    (tmp_path / "qak.toml").touch()
    assert find_configuration(None, {"QAK_CONFIG": " "}) == Path("qak.toml")
    assert find_configuration(None, {"QAK_CONFIG": "other.toml"}) == Path("other.toml")
    assert find_configuration(Path("given.toml"), {"QAK_CONFIG": "other.toml"}) == Path("given.toml")


@pytest.mark.parametrize("command", [("search", "x"), ("doctor",)])
def test_five_mistakes_in_three_places_are_all_reported_at_once(qak, configured, command) -> None:
    path = configured(runtime='timeout_s = -1\nlanguage = "fr"', settings='limit = "many"\nlimmit = 3')
    path.write_text(path.read_text("utf-8") + "[provders]\n", "utf-8")
    ran = qak(*command)
    assert ran.code == 2
    said = ran.out + ran.err
    for mistake in (
        "timeout_s must be above 0",
        "language: expected one of 'en', 'zh'",
        "limit: expected a whole number",
        "'limmit'; did you mean 'limit'?",
        "'provders'; did you mean [provider]?",
    ):
        assert mistake in said


@pytest.mark.parametrize("text", ["[provider\n", "[provder]\n", "[provider]\n", "[runtime]\ntimeout_s = 0\n"])
@pytest.mark.parametrize("command", [("search", "x"), ("doctor",)])
def test_mistakes_of_a_file_without_provider_are_not_followed_by_what_follows_from_them(
    qak, tmp_path: Path, text, command
) -> None:
    (tmp_path / "qak.toml").write_text(text, "utf-8")
    ran = qak(*command)
    assert ran.code == 2
    assert "qak.toml cannot be used" in ran.out + ran.err
    assert "no provider is configured" not in ran.out + ran.err


def test_file_that_was_named_but_is_missing_is_exit_code_2(qak) -> None:
    for ran in (
        qak("search", "x", "--config", "no.toml"),
        qak("search", "x", QAK_CONFIG="no.toml"),
        qak("doctor", "--config", "no/folder/no.toml"),
    ):
        assert ran.code == 2
        assert "no.toml" in ran.out + ran.err
        assert "No such file" in ran.out + ran.err


def test_paths_and_modules_are_relative_to_the_file(qak, configured, tmp_path: Path) -> None:
    configured(settings='file = "texts/rule.txt"')
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "rule.txt").write_text("年费可退", "utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran = qak("search", "x", "--json", "--config", "../qak.toml", cwd=elsewhere)
    assert json.loads(ran.out)["results"][0]["content"] == "年费可退"


def test_file_beside_the_configuration_cannot_stand_in_for_a_library(qak, configured, tmp_path: Path) -> None:
    configured()
    (tmp_path / "dataclasses.py").write_text("raise SystemExit('shadowed')\n", "utf-8")
    (tmp_path / "rich.py").write_text("raise SystemExit('shadowed')\n", "utf-8")
    assert qak("search", "x").code == 0


def test_unconfigured_search_says_the_three_ways_out(qak) -> None:
    ran = qak("search", "x")
    assert ran.code == 2
    assert ran.out == ""
    for way in ("--library", "QWEN_AUDIO_DOMAIN_LIBRARY=on", "qak.toml"):
        assert way in ran.err


def test_message_wraps_between_words_on_a_terminal_and_not_in_a_pipe(qak, qak_on_terminal) -> None:
    shown = qak_on_terminal("search", "x").out
    assert max(map(len, shown.splitlines())) <= 80
    said = qak("search", "x").err
    assert max(map(len, said.splitlines())) > 80
    assert shown.split() == said.split()


def test_adapter_that_is_not_installed_is_named_with_its_distribution(qak, tmp_path: Path) -> None:
    (tmp_path / "qak.toml").write_text('[provider]\nadapter = "llamaindx"\n', "utf-8")
    ran = qak("search", "x")
    assert ran.code == 2
    assert "did you mean 'llamaindex'?" in ran.err
