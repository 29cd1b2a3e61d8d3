"""Which file a pasted path means, and what its copy is called."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qak_adapter_local import LibraryError
from qak_adapter_local._paths import display_name, locator, safe_name, source_path
from qak_core import normalize_response


@pytest.mark.parametrize(
    "pasted",
    [
        "{path}",
        "  {path}\n",
        '"{path}"',
        "'{path}'",
        "“{path}”",
        "「{path}」",
        "<{path}>",
        "\"'{path}'\"",
        "file://{path}",
        "file:{path}",
        "FILE://localhost{path}",
        "'file://{path}'",
    ],
)
def test_source_path_unwraps_what_people_paste(pasted: str, tmp_path: Path) -> None:
    path = tmp_path / "年费.pdf"

    assert source_path(pasted.format(path=path)) == path


def test_source_path_decodes_a_file_url(tmp_path: Path) -> None:
    path = tmp_path / "年 费#1.pdf"

    assert source_path(path.as_uri()) == path


def test_source_path_takes_a_path_object_literally(tmp_path: Path) -> None:
    assert source_path(tmp_path / "'quoted'") == tmp_path / "'quoted'"


def test_source_path_expands_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert source_path("~/a.md") == tmp_path / "a.md"


def test_source_path_resolves_a_relative_path_and_its_dots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert source_path("b/../a.md") == tmp_path / "a.md"
    assert source_path("notes:2026.md") == tmp_path / "notes:2026.md"


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "   ",
        '""',
        "/etc/pass\0wd",
        "/etc/pass\nwd",
        "file://evil.example.com/share/a.pdf",
        "file:////evil.example.com/share/a.pdf",
        "file:///etc%2fpasswd",
        "file:///etc%00passwd",
        "file:///etc%0apasswd",
        "file:///%ff%fe",
        "file:relative.md",
        "file://[::1/a",
        "http://127.0.0.1/a.pdf",
        "https://docs.example.com/a.pdf",
        b"/etc/passwd",
        7,
        None,
    ],
)
def test_source_path_refuses_what_names_no_file_of_this_machine(hostile: object) -> None:
    with pytest.raises(LibraryError) as caught:
        source_path(hostile)  # type: ignore[arg-type]

    assert caught.value.code == "invalid_path"


@given(st.text(max_size=300))
def test_safe_name_is_taken_by_any_file_system(name: str) -> None:
    safe = safe_name(name, "0123456789abcdef-a1b2c3")

    assert safe == os.path.basename(safe)
    assert not set(safe) & set('<>:"/\\|?*')
    assert safe.isprintable()
    assert not safe.startswith((".", " "))
    assert not safe.endswith((".", " "))
    assert len(safe.encode()) <= 143
    assert unicodedata.is_normalized("NFC", safe)
    assert ".0123456789abcdef-a1b2c3" in safe


@pytest.mark.parametrize("device", ["CON", "nul", "Com1", "LPT9", "aux.tar"])
def test_safe_name_is_no_device_of_windows(device: str) -> None:
    assert safe_name(f"{device}.md", "1").startswith("_")


def test_safe_name_keeps_what_people_know_a_file_by() -> None:
    assert safe_name("年费 规则.PDF", "1a") == "年费 规则.1a.pdf"
    assert safe_name("年费 规则.PDF", "1a", ".md") == "年费 规则.1a.md"


def test_display_name_shows_no_control_or_bidi_character() -> None:
    assert display_name("a\u202egnp.\x07exe\u3000b\n") == "agnp.exe b"
    assert display_name("\u200b") == "document"


def test_locator_is_left_out_rather_than_cut() -> None:
    assert locator("/a.md", 3) == "/a.md#page=3"
    assert locator("/" + "a" * 299) is not None
    assert locator("/" + "a" * 300) is None


@pytest.mark.parametrize("name", ["b.md ", "b.md\u00a0", "b\u202egnp.md", "b\u200b.md", "b\udcff.md", "a\tb.md"])
def test_locator_is_left_out_where_the_protocol_would_make_another_path_of_it(name: str) -> None:
    assert locator(f"/folder {name}") is None


@pytest.mark.parametrize(
    "name", ["b b.md", "b  b.md", " b.md", "b\u00a0b.md", "年费 规则.md", "👨\u200d👩\u200d👧.md", "e\u0301.md"]
)
def test_locator_that_the_protocol_keeps_is_given(name: str) -> None:
    path = f"/folder/{name}"
    result = {"id": "1", "content": "x", "source": {"id": "1", "locator": path}}
    assert normalize_response([result], query="x").results[0].source.locator == locator(path) == path
