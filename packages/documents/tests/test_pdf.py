import re
from typing import Any

import pytest

from qak_documents import EncryptedDocument, extract

SENTENCE = "发布须由两名维护者批准并记录在案，年费为人民币三千元且在每年三月之前缴清。"


def test_pdf_gives_pages_headings_and_title(files: Any) -> None:
    pages = [
        [("Heading1", f"第{n}章 Release"), ("Heading2", f"{n}.1 Rules"), ("BodyText", f"正文 {n}: " + SENTENCE * 3)]
        for n in (1, 2, 3)
    ]
    document = extract(files.pdf(pages, title="员工手册 Handbook"), filename="a.pdf")
    assert [(block.page, block.level, block.text) for block in document.headings] == [
        (page, level, text)
        for page in (1, 2, 3)
        for level, text in ((1, f"第{page}章 Release"), (2, f"{page}.1 Rules"))
    ]
    assert document.title == "员工手册 Handbook"
    assert document.page_count == 3
    assert document.mime_type == "application/pdf"


def test_pdf_joins_printed_lines_so_that_no_chinese_word_is_cut(files: Any) -> None:
    document = extract(files.pdf([[("BodyText", SENTENCE * 8)]]), filename="a.pdf")
    assert document.markdown.replace("。\n\n", "。") == SENTENCE * 8  # a paragraph may be cut after a sentence


def test_pdf_joins_english_lines_with_a_space(files: Any) -> None:
    text = "The release needs the approval of two maintainers and is written down in the log of the team. " * 6
    document = extract(files.pdf([[("BodyText", text)]]), filename="a.pdf")
    assert text.strip() in document.markdown


def test_pdf_leaves_out_what_repeats_on_each_page_and_keeps_what_stands_once(files: Any) -> None:
    pages = [
        [
            ("Heading1", f"Chapter {n}"),
            ("BodyText", f"The fee of tariff {n} is {n}000 yuan a year."),
            ("BodyText", f"Done {n * 11}."),
        ]
        for n in range(1, 5)
    ]
    for footer in ("Confidential · page {page} of 4", "第{page}页 共4页"):
        document = extract(files.pdf(pages, footer=footer), filename="a.pdf")
        assert document.markdown == "\n\n".join(
            f"# Chapter {n}\n\nThe fee of tariff {n} is {n}000 yuan a year.\n\nDone {n * 11}." for n in range(1, 5)
        )
    single = extract(files.pdf(pages[:1], footer="Invoice total 3000"), filename="a.pdf")
    assert "Invoice total 3000" in single.markdown


def test_pdf_whose_footer_is_drawn_first_keeps_each_text_in_its_place(files: Any) -> None:
    data = files.pdf([[("Heading1", "Chapter"), ("BodyText", "Body " * 30)]], footer="footer")
    assert [(block.kind, block.text) for block in extract(data, filename="a.pdf").blocks] == [
        ("paragraph", "footer"),
        ("heading", "Chapter"),
        ("paragraph", ("Body " * 30).strip()),
    ]


def test_pdf_whose_pages_are_all_alike_is_not_emptied(files: Any) -> None:
    document = extract(files.pdf([[("BodyText", "Ticket")]] * 5), filename="a.pdf")
    assert [(block.page, block.text) for block in document.blocks] == [(page, "Ticket") for page in range(1, 6)]


def test_pdf_bullets_and_rows_stay_apart(files: Any) -> None:
    rows = ["• 口令至少十四位", "• 启用第二因素", "公开 官网内容 任何地方 任何人", "内部 会议纪要 公司邮箱 员工"]
    document = extract(files.pdf([[("BodyText", "<br/>".join(rows))]]), filename="a.pdf")
    assert (
        document.markdown
        == "- 口令至少十四位\n- 启用第二因素\n\n公开 官网内容 任何地方 任何人\n内部 会议纪要 公司邮箱 员工"
    )


def test_pdf_with_a_user_password_is_encrypted_and_with_an_owner_password_readable(files: Any) -> None:
    data = files.pdf([[("BodyText", "annual fee")]])
    with pytest.raises(EncryptedDocument) as caught:
        extract(files.encrypted_pdf(data), filename="a.pdf")
    assert caught.value.code == "encrypted"
    assert extract(files.encrypted_pdf(data, user_password=""), filename="a.pdf").markdown == "annual fee"


def test_pdf_of_200_pages_stays_far_below_the_default_limits(files: Any) -> None:
    from qak_documents import ExtractionLimits

    paragraph = SENTENCE * 4 + "The quick brown fox jumps over the lazy dog and pays the fee. " * 4
    pages = [[("Heading1", f"Chapter {n}"), *[("BodyText", paragraph)] * 5] for n in range(1, 201)]
    limits = ExtractionLimits(cpu_s=10, max_memory_bytes=640 * 1024 * 1024)
    document = extract(files.pdf(pages), filename="a.pdf", limits=limits)
    assert document.page_count == 200
    assert {block.page for block in document.blocks} == set(range(1, 201))
    assert [block.text for block in document.headings] == [f"Chapter {n}" for n in range(1, 201)]


def test_pdf_whose_title_is_broken_is_read_all_the_same(files: Any) -> None:
    data = files.pdf([[("BodyText", "annual fee")]], title="年费")
    broken = re.sub(rb"/Title \([^)]*\)", b"/Title <FEFFD8000041>", data)
    assert broken != data
    document = extract(broken, filename="a.pdf")
    assert (document.title, document.markdown) == (None, "annual fee")
