import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qak_documents import (
    DamagedDocument,
    DocumentTooLarge,
    EmptyDocument,
    ExtractionLimits,
    UnsupportedDocument,
    extract,
)

CHINESE = "本手册规定：发布必须由两名维护者批准，会员年费为人民币三千元。"
TRADITIONAL = "本手冊規定：發布必須由兩名維護者批准，會員年費為新臺幣三千元。"
JAPANESE = "このハンドブックでは、リリースには二人の承認が必要であると定めています。"
FRENCH = "Le présent règlement précise que les frais annuels s'élèvent à trois mille euros, payés d'avance."

# Any text a file can hold: no NUL and control characters, no surrogates.
TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff\ufeff")
    | st.sampled_from("\n\n #-|`>=*1.年费。😀\t"),
    max_size=300,
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (CHINESE, "utf-8-sig"),
        (CHINESE, "utf-16"),
        (CHINESE + "😀", "utf-32"),
        (CHINESE, "gb18030"),
        ("年费标准", "gb18030"),
        ("会员年费：3000 元\n", "gbk"),
        (TRADITIONAL, "big5"),
        ("會員年費標準", "big5"),
        (JAPANESE, "shift_jis"),
        (FRENCH, "latin-1"),
        ("café", "latin-1"),
        ("Привет, мир! Годовая плата составляет три тысячи рублей и вносится заранее.", "cp1251"),
        ("plain ascii", "ascii"),
    ],
)
def test_text_is_decoded_whatever_its_encoding(text: str, encoding: str) -> None:
    assert extract(text.encode(encoding), filename="a.txt").markdown == text


def test_text_in_utf8_with_a_torn_character_is_still_utf8() -> None:
    data = (CHINESE * 10).encode()[:-1]
    assert extract(data, filename="a.txt").markdown == CHINESE * 9 + CHINESE[:-1] + "\ufffd"


@pytest.mark.parametrize("data", [b"MZ\x90\0\x03\0\0\0", bytes(range(256)) * 8, bytes(range(1, 32)) * 8])
def test_text_that_is_binary_is_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedDocument):
        extract(data, filename="a.txt")


def test_text_with_a_byte_order_mark_and_other_bytes_is_damaged() -> None:
    with pytest.raises(DamagedDocument):
        extract(b"\xef\xbb\xbf\xff\xff", filename="a.txt")


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n ", "\ufeff".encode()])
def test_text_without_a_visible_character_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyDocument) as caught:
        extract(data, filename="a.txt")
    assert caught.value.code == "empty"


def test_text_gets_unix_line_ends_and_loses_control_characters() -> None:
    assert extract(b"one\r\ntwo\rthree\x07 four", filename="a.txt").markdown == "one\ntwo\nthree four"


def test_text_paragraphs_are_parted_by_blank_lines_and_nothing_is_a_heading() -> None:
    document = extract("# 一\n二\n \n\n  三😀\n".encode(), filename="a.txt")
    assert [(block.kind, block.text, block.start, block.end) for block in document.blocks] == [
        ("paragraph", "# 一\n二", 0, 5),
        ("paragraph", "三😀", 11, 14),
    ]


def test_text_over_the_limit_is_too_large_before_and_after_decoding() -> None:
    with pytest.raises(DocumentTooLarge):
        extract(b"x" * 11, filename="a.txt", limits=ExtractionLimits(max_bytes=10))
    for size in (11, 100):
        with pytest.raises(DocumentTooLarge):
            extract(b"x" * size, filename="a.txt", limits=ExtractionLimits(max_output_chars=10))


def test_text_on_one_huge_line_is_read_at_a_stretch() -> None:
    document = extract(b"word " * 400_000, filename="a.txt")
    assert len(document.blocks) == 1


MARKDOWN = """---
title: "The handbook"
---
# One **bold** [link](http://x) `code` #

Setext *title*
===
para
graph
---
```python
# not a heading
```
~~~~
```
# nor this
~~~~

- item
- item 2
  continued
1. ordered

| a | b |
|---|---|
| 1 | 2 |
> quote
> more

    # indented code is no heading
#hashtag
## snake_case_name C#
***
"""


def test_markdown_gives_its_blocks_and_stays_as_it_is() -> None:
    document = extract(MARKDOWN.encode(), filename="a.md")
    assert document.markdown == MARKDOWN
    assert [(block.kind, block.level, block.text) for block in document.blocks] == [
        ("code", 0, '---\ntitle: "The handbook"\n---'),
        ("heading", 1, "One bold link code"),
        ("heading", 1, "Setext title"),
        ("heading", 2, "para graph"),
        ("code", 0, "```python\n# not a heading\n```"),
        ("code", 0, "~~~~\n```\n# nor this\n~~~~"),
        ("list_item", 0, "- item"),
        ("list_item", 0, "- item 2\n  continued"),
        ("list_item", 0, "1. ordered"),
        ("table", 0, "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("quote", 0, "> quote\n> more"),
        ("paragraph", 0, "# indented code is no heading\n#hashtag"),
        ("heading", 2, "snake_case_name C#"),
    ]
    assert document.title == "The handbook"


def test_markdown_with_an_open_fence_ends_with_it() -> None:
    document = extract(b"# A\n```\n# B\n", filename="a.md")
    assert [block.text for block in document.headings] == ["A"]


def test_markdown_beginning_with_a_rule_has_no_front_matter() -> None:
    document = extract(b"---\n# A\n\n---\n# B\n", filename="a.md")
    assert [block.text for block in document.headings] == ["A", "B"]


@pytest.mark.parametrize(
    "line", ["#" * 100_000, "[" * 100_000, "*" * 100_000, "- " * 50_000, "`" * 100_000, "# " + "[a](" * 30_000]
)
def test_markdown_of_one_repeated_sign_is_read_at_a_stretch(line: str) -> None:
    tracemalloc.start()
    try:
        document = extract(line.encode() + b"\n\nend", filename="a.md")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert document.markdown.endswith("end")


@given(TEXTS, st.sampled_from(["a.md", "a.txt"]))
def test_blocks_of_any_text_lie_exactly_where_they_say(text: str, filename: str) -> None:
    if not text.strip():
        return
    try:
        document = extract(text.encode(), filename=filename)
    except EmptyDocument:
        assert filename == "a.md"  # nothing but rules
        return
    units = document.markdown.encode("utf-16-le")
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end
        position = block.end
        markdown = units[block.start * 2 : block.end * 2].decode("utf-16-le")
        assert markdown == document.slice(block.start, block.end)
        assert markdown.strip(" \n\t\f") == markdown
        if block.kind != "heading":
            assert markdown == block.text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("名称,元\n年费,3000\n", "| 名称 | 元 |\n| --- | --- |\n| 年费 | 3000 |"),
        ('a;b\n"x;y\nz";1|2\n', "| a | b |\n| --- | --- |\n| x;y z | 1\\|2 |"),
        ("a\tb\n\n1\t2", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a,b\n1\n1,2,3", "| a | b |\n| --- | --- |\n| 1 |\n| 1 | 2 | 3 |"),
    ],
)
def test_csv_becomes_a_table(data: str, expected: str) -> None:
    document = extract(data.encode("gb18030"), filename="a.csv")
    assert document.markdown == expected
    assert [block.kind for block in document.blocks] == ["table"]


def test_csv_that_breaks_its_rules_is_read_as_text() -> None:
    data = "a,b\n" + "x" * 200_000 + ",1"
    assert extract(data.encode(), filename="a.csv").markdown == data


def test_csv_with_one_long_row_does_not_grow() -> None:
    data = "a\n" * 20_000 + "," * 20_000 + "z"
    assert len(extract(data.encode(), filename="a.csv").markdown) < 10 * len(data)


def test_json_becomes_readable_code() -> None:
    document = extract(b'{"fee": "\\u5e74\\u8d39", "n": [1, 2.50]}', filename="a.json")
    assert document.markdown == '```json\n{\n  "fee": "年费",\n  "n": [\n    1,\n    2.5\n  ]\n}\n```'
    assert [block.kind for block in document.blocks] == ["code"]


def test_json_that_is_readable_stays_as_it_is() -> None:
    text = '{\n "price": 3.00, "fence": "```"\n}'
    assert extract(text.encode(), filename="a.json").markdown == f"````json\n{text}\n````"


def test_json_lines_are_read() -> None:
    document = extract(b'{"a": 1}\n{"a": 2}\n', filename="a.jsonl")
    assert document.markdown == '```json\n{"a": 1}\n{"a": 2}\n```'


def test_json_never_gives_lone_surrogates() -> None:
    document = extract(json.dumps({"x": "a\ud800b😀"}).encode(), filename="a.json")
    assert "a\ufffdb😀" in document.markdown
    document.markdown.encode()


@pytest.mark.parametrize("data", [b"{", b"[" * 100_000, b"1" * 10_000, b"not json"])
def test_json_that_is_none_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedDocument):
        extract(data, filename="a.json")


def test_json_that_grows_when_made_readable_is_too_large() -> None:
    data = ("[" * 400 + "]" * 400).encode()
    with pytest.raises(DocumentTooLarge):
        extract(data, filename="a.json", limits=ExtractionLimits(max_output_chars=10_000))
