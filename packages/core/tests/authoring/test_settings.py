import copy
import logging
import os
import pickle
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pprint import pformat
from typing import Any, Literal

import pytest

from qak_core import SettingsError
from qak_core.authoring import Secret, read_settings

pytestmark = pytest.mark.clause("registry.factory")

VALUE = "Zx9Kq27LmPw4RtYb"


@dataclass(frozen=True, kw_only=True)
class Settings:
    url: str
    top_k: int = 5
    ratio: float = 0.5
    strict: bool = False
    folder: Path | None = None
    key: Secret | None = None
    mode: Literal["fast", "exact"] = "fast"
    names: Sequence[str] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    port: int | str | None = None
    anything: Any = None
    derived: str = field(init=False, default="x")

    def __post_init__(self):
        if self.top_k > 100:
            raise ValueError("top_k must be at most 100, got more\nuse 100")


def problems(**settings):
    with pytest.raises(SettingsError) as caught:
        read_settings(Settings, settings, subject="adapter x")
    assert str(caught.value).startswith("adapter x ")
    assert caught.value.__context__ is None
    return caught.value.problems


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"top_k": 7}, 7),
        ({"ratio": 1}, 1.0),
        ({"ratio": 0.25}, 0.25),
        ({"strict": True}, True),
        ({"folder": "a/b"}, Path("a/b")),
        ({"folder": Path("c")}, Path("c")),
        ({"folder": None}, None),
        ({"mode": "exact"}, "exact"),
        ({"names": ["a", "b"]}, ("a", "b")),
        ({"bases": {"a": "x:y"}}, {"a": "x:y"}),
        ({"port": 80}, 80),
        ({"port": "http"}, "http"),
        ({"port": None}, None),
        ({"anything": [1, {"a": 2}]}, [1, {"a": 2}]),
    ],
    ids=str,
)
def test_a_setting_of_its_type_is_taken(given, expected):
    read = read_settings(Settings, {"url": "u", **given})
    value = getattr(read, next(iter(given)))
    assert (value, type(value)) == (expected, type(expected))


def test_a_home_folder_is_expanded():
    assert read_settings(Settings, {"url": "u", "folder": "~/x"}).folder == Path.home() / "x"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"url": 5}, ["url", "text", "int"]),
        ({"url": None}, ["url", "text"]),
        ({"top_k": "7"}, ["top_k", "whole number", "str"]),
        ({"top_k": True}, ["top_k", "bool"]),
        ({"top_k": 7.0}, ["top_k", "float"]),
        ({"ratio": True}, ["ratio", "number"]),
        ({"ratio": "0.5"}, ["ratio", "number"]),
        ({"strict": 1}, ["strict", "true or false"]),
        ({"folder": 5}, ["folder", "path"]),
        ({"folder": ""}, ["folder", "path"]),
        ({"mode": "slow"}, ["mode", "'fast'", "'exact'", "got another text"]),
        ({"mode": ["fast"]}, ["mode"]),
        ({"names": "a"}, ["names", "list"]),
        ({"names": ["a", 5]}, ["names", "text"]),
        ({"bases": ["a"]}, ["bases", "table"]),
        ({"bases": {"a": 5}}, ["bases", "text"]),
        ({"bases": {5: "a"}}, ["bases"]),
        ({"port": 1.5}, ["port", "whole number or text"]),
        ({"tpo_k": 7}, ["tpo_k", "did you mean 'top_k'"]),
        ({"qqqqqq": 7}, ["qqqqqq", "known are"]),
        ({"derived": "y"}, ["derived"]),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_with_what_was_expected(given, words):
    [problem] = problems(**{"url": "u", **given})
    assert all(word in problem for word in words), problem


def test_every_problem_is_listed_at_once(monkeypatch):
    monkeypatch.delenv("QAK_TEST_UNSET", raising=False)
    found = problems(top_k="x", ratio=None, mode=5, key="env:QAK_TEST_UNSET", unknown=1, names=[1])
    for word in ("url is required", "top_k", "ratio", "mode", "QAK_TEST_UNSET", "unknown", "names"):
        assert any(word in problem for problem in found), word
    assert len(found) == 7


def test_what_the_class_itself_finds_wrong_is_one_problem_a_line():
    assert problems(url="u", top_k=101) == ("top_k must be at most 100, got more", "use 100")


@pytest.mark.parametrize("form", ["env", "file", "object"])
def test_a_secret_comes_by_reference(monkeypatch, tmp_path, form):
    monkeypatch.setenv("QAK_TEST_KEY", f" {VALUE}\n")
    (tmp_path / "key").write_text(f"{VALUE}\n", encoding="utf-8")
    given = {"env": "env:QAK_TEST_KEY", "file": f"file:{tmp_path / 'key'}", "object": Secret(VALUE)}[form]
    assert read_settings(Settings, {"url": "u", "key": given}).key.reveal() == VALUE


@pytest.mark.parametrize(
    "reference",
    [
        VALUE,
        f"sk-{VALUE}",
        "",
        "env:",
        "file:",
        "env:QAK_TEST_UNSET",
        "file:{folder}/none",
        "file:{folder}",
        "file:{folder}/empty",
        "file:{folder}/binary",
        "file:{folder}/pipe",
        "file:{folder}/huge",
        "file:/dev/zero",
        "file:a\0b",
        "file:~no-such-user/key",
        5,
        None,
        ["x"],
    ],
)
def test_a_secret_that_is_inline_or_cannot_be_read_is_a_problem_that_does_not_show_it(monkeypatch, tmp_path, reference):
    monkeypatch.delenv("QAK_TEST_UNSET", raising=False)
    (tmp_path / "empty").write_text(" \n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + VALUE.encode())
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as huge:
        huge.truncate(1 << 40)

    @dataclass(frozen=True, kw_only=True)
    class Needy:
        key: Secret

    given = {"key": reference.format(folder=tmp_path) if isinstance(reference, str) else reference}
    with pytest.raises(SettingsError) as caught:
        read_settings(Needy, given)
    [problem] = caught.value.problems
    assert problem.startswith("key")
    assert VALUE not in str(caught.value)
    assert VALUE not in "".join(traceback.format_exception(caught.value))


def test_a_credential_that_was_put_behind_a_scheme_by_mistake_is_not_shown():
    [problem] = problems(url="u", key=f"env:sk-{VALUE}")
    assert VALUE not in problem


def test_a_secret_never_shows_itself(caplog):
    secret = Secret(VALUE)
    settings = Settings(url="u", key=secret)
    logging.getLogger("test").warning("settings %s %r", settings, [secret])
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r}",
        format(secret),
        "{} {!r}".format(*[secret] * 2),
        pformat({"key": secret}),
    ]
    shown += [repr(settings), str(settings), ascii(secret), caplog.text, str(dir(secret))]
    try:
        raise ValueError(secret)
    except ValueError as error:
        shown += [str(error), repr(error), "".join(traceback.format_exception(error))]
    assert [text for text in shown if VALUE in text] == []
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("keep", [pickle.dumps, copy.copy, copy.deepcopy, asdict], ids=lambda keep: keep.__name__)
def test_a_secret_cannot_be_written_away(keep):
    with pytest.raises(TypeError):
        keep(Settings(url="u", key=Secret(VALUE)) if keep is asdict else Secret(VALUE))


def test_secrets_compare_by_what_they_hold():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


@pytest.mark.clause("runtime.errors")
def test_the_error_of_wrong_settings_shows_no_value_of_theirs():
    found = problems(
        url=["password", VALUE], top_k=VALUE, mode=VALUE, names=VALUE, bases=VALUE, folder=[VALUE], port=[VALUE]
    )
    assert VALUE not in "".join(found)
