"""Adding, finding, updating and removing documents of a library."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from qak_adapter_local import DomainLibrary, Summary

OWNER = "owner-a"
Write = Callable[..., Path]


def found(library: DomainLibrary, query: str) -> list[str]:
    return [hit.document.name for hit in library.search(OWNER, query, 5)]


def test_library_finds_a_word_that_stands_only_in_the_body(library: DomainLibrary, fees: Path, releases: Path) -> None:
    library.add(OWNER, fees)
    library.add(OWNER, releases)

    assert found(library, "年费") == [fees.name]
    assert found(library, "reviewers") == [releases.name]
    assert found(library, "reviewer") == [releases.name]
    assert found(library, "信用卡") == [fees.name]


def test_library_ranks_the_subject_of_a_question_above_its_question_words(library: DomainLibrary, write: Write) -> None:
    library.add(
        OWNER, write("提问.md", "# 怎么提问\n\n什么时候问，怎么问，问什么，问多少次，为什么问。什么时候都可以问。")
    )
    library.add(OWNER, write("办卡.md", "# 办卡\n\n金卡的年费在一月入账。" + "其他说明文字。" * 30))

    assert found(library, "年费什么时候入账？")[0] == "办卡.md"
    assert found(library, "请问年费怎么收？是多少？")[0] == "办卡.md"
    assert found(library, "怎么问")[0] == "提问.md"
    assert found(library, "什么时候") == ["提问.md"]


def test_library_ranks_title_above_heading_above_body(library: DomainLibrary, write: Write) -> None:
    filler = "Nothing to see in this sentence. " * 5
    library.add(OWNER, write("c.md", f"# Alpha\n\n## One\n\nThe gratuity is small. {filler}"))
    library.add(OWNER, write("b.md", f"# Beta\n\n## Gratuity\n\n{filler}"))
    library.add(OWNER, write("a.md", f"# Gratuity\n\n## Two\n\n{filler}"))

    assert found(library, "gratuity") == ["a.md", "b.md", "c.md"]


def test_library_scores_fall_from_at_most_one_to_above_zero(library: DomainLibrary, write: Write) -> None:
    library.add(OWNER, write("a.md", "# Annual fee\n\nThe annual fee is waived."))
    library.add(OWNER, write("b.md", "# Other\n\nAn annual report."))

    scores = [hit.score for hit in library.search(OWNER, "annual fee waived")]

    assert 1 >= scores[0] > scores[1] > 0


def test_library_finds_nothing_where_nothing_fits(library: DomainLibrary, fees: Path) -> None:
    assert library.search(OWNER, "年费") == []
    library.add(OWNER, fees)

    assert library.search(OWNER, "zugzwang 麒麟座") == []
    assert library.search(OWNER, '"年费') != []
    assert library.search(OWNER, "?!* AND NOT \udcff\0") == []
    assert library.search(OWNER, "年费", 0) == []


def test_library_reads_pages_and_headings_of_pdf_and_word(
    library: DomainLibrary, write: Write, make_pdf: Callable[..., bytes], make_docx: Callable[..., bytes]
) -> None:
    pdf = library.add(OWNER, write("manual.pdf", make_pdf([["Introduction"], ["Safety"], ["The heliotrope lamp"]])))
    word = library.add(OWNER, write("合同.docx", make_docx([("Heading1", "退款条款"), ("", "七日内可以全额退款。")])))

    [hit] = library.search(OWNER, "heliotrope")
    assert (hit.document.id, hit.page, hit.document.page_count) == (pdf.id, 3, 3)
    [hit] = library.search(OWNER, "全额退款", 1)
    assert (hit.document.id, hit.section) == (word.id, "退款条款")
    assert word.title == "退款条款"


def test_library_gives_a_path_where_the_whole_text_can_be_read(
    library: DomainLibrary, write: Write, make_pdf: Callable[..., bytes]
) -> None:
    gb = library.add(OWNER, write("旧文件.txt", "年费为三百元，每年一月入账。请按时缴纳。".encode("gb18030")))
    pdf = library.add(OWNER, write("manual.pdf", make_pdf([["The heliotrope lamp"]])))

    assert "年费为三百元" in Path(gb.path).read_text(encoding="utf-8")
    assert "heliotrope" in Path(pdf.path).read_text(encoding="utf-8")
    assert Path(pdf.path).suffix == Path(gb.path).suffix == ".md"


def test_library_keeps_headings_verbatim(library: DomainLibrary, write: Write) -> None:
    headings = ["§ 1.2  Who “approves” — and when?", "年费（含税）", "1) A*B & C_d", "Ünïcode – ligature ﬁ"]
    text = "# Title\n\n" + "\n\n".join(f"## {heading}\n\nText." for heading in headings)

    document = library.add(OWNER, write("a.md", text))

    assert [" ".join(heading.split()) for heading in headings] == list(document.sections)


def test_library_updates_in_place_when_the_source_changes(library: DomainLibrary, write: Write) -> None:
    first = library.add(OWNER, write("a.md", "# Old\n\nzeppelin"))
    second = library.add(OWNER, write("a.md", "# New\n\nbicycle"))

    assert second.id == first.id
    assert [document.title for document in library.list(OWNER)] == ["New"]
    assert found(library, "zeppelin") == []
    assert found(library, "bicycle") == ["a.md"]
    folder = next((library.directory / "owners").iterdir())
    assert [len(list((folder / part).iterdir())) for part in ("records", "files", "texts")] == [1, 1, 1]


def test_library_updates_in_place_when_the_same_content_comes_from_elsewhere(
    library: DomainLibrary, write: Write
) -> None:
    first = library.add(OWNER, write("a.md", "# Same"))
    second = library.add(OWNER, write("b.md", "# Same"))

    assert second.id == first.id
    assert [document.name for document in library.list(OWNER)] == ["b.md"]


def test_library_makes_one_of_two_documents_that_have_become_the_same(library: DomainLibrary, write: Write) -> None:
    library.add(OWNER, write("a.md", "# One"))
    by_path = library.add(OWNER, write("b.md", "# Two"))

    merged = library.add(OWNER, write("b.md", "# One"))

    assert merged.id == by_path.id
    assert [document.id for document in library.list(OWNER)] == [by_path.id]
    assert found(library, "one") == ["b.md"]


def test_library_knows_a_source_by_any_path_to_it(library: DomainLibrary, fees: Path, tmp_path: Path) -> None:
    first = library.add(OWNER, fees)
    (tmp_path / "link.md").symlink_to(fees)
    fees.write_text("# Changed\n\nNew text.")

    assert library.add(OWNER, f"'{fees}'").id == first.id
    assert library.add(OWNER, fees.as_uri()).id == first.id
    assert library.add(OWNER, tmp_path / "link.md").id == first.id
    assert len(library.list(OWNER)) == 1


@pytest.mark.parametrize(
    "names",
    [("A.md", "a.md"), (unicodedata.normalize("NFC", "Ä.md"), unicodedata.normalize("NFD", "Ä.md")), ("ß.md", "SS.md")],
)
def test_library_tells_names_apart_exactly_as_the_disk_does(
    library: DomainLibrary, write: Write, names: tuple[str, str]
) -> None:
    paths = [write(f"{number}/{name}", f"# Text {number}") for number, name in enumerate(names)]
    for path in paths:
        library.add(OWNER, path)
    same_folder = [write(name, f"# Text {number} in one folder") for number, name in enumerate(names)]
    on_disk = len({path.stat().st_ino for path in same_folder})
    for path in same_folder:
        library.add(OWNER, path)

    assert len(library.list(OWNER)) == 2 + on_disk
    folder = next((library.directory / "owners").iterdir())
    for part in ("files", "texts"):
        copies = [unicodedata.normalize("NFC", path.name).casefold() for path in (folder / part).iterdir()]
        assert len(set(copies)) == 2 + on_disk


def test_library_keeps_the_bytes_and_removes_only_its_copy(library: DomainLibrary, fees: Path) -> None:
    document = library.add(OWNER, fees)
    folder = next((library.directory / "owners").iterdir())
    [copy] = (folder / "files").iterdir()
    assert copy.read_bytes() == fees.read_bytes()

    library.remove(OWNER, document.id)

    assert fees.exists()
    assert not copy.exists()
    assert not Path(document.path).exists()
    assert library.list(OWNER) == []
    assert library.search(OWNER, "年费") == []


def test_library_survives_a_restart_and_a_move(tmp_path: Path, fees: Path) -> None:
    library = DomainLibrary(tmp_path / "library")
    document = library.add(OWNER, fees)
    library.close()
    os.rename(tmp_path / "library", tmp_path / "moved")

    again = DomainLibrary(tmp_path / "moved")

    [listed] = again.list(OWNER)
    assert listed.id == document.id
    assert listed.path.startswith(str(tmp_path / "moved"))
    assert "年费" in Path(listed.path).read_text(encoding="utf-8")
    assert [hit.document.id for hit in again.search(OWNER, "年费")] == [document.id]
    again.close()


def test_library_takes_title_gist_and_sections_from_a_summarizer(tmp_path: Path, fees: Path) -> None:
    library = DomainLibrary(
        tmp_path / "library",
        summarizer=lambda document, name: Summary(title="收费", gist="讲年费。", sections=("减免办法",)),
    )

    document = library.add(OWNER, fees)

    assert (document.title, document.gist, list(document.sections)) == ("收费", "讲年费。", ["减免办法"])
    library.close()


def test_library_writes_nothing_before_the_first_document(library: DomainLibrary) -> None:
    library.list(OWNER)
    library.search(OWNER, "年费")

    assert not library.directory.exists()


def test_library_serves_many_owners_with_few_open_files(library: DomainLibrary, fees: Path) -> None:
    for number in range(40):
        library.add(f"owner-{number}", fees)

    assert all(library.search(f"owner-{number}", "年费") for number in range(40))
    assert len(library._shelves) <= 32


def test_library_finds_passages_and_documents(library: DomainLibrary, write: Write) -> None:
    sections = "\n\n".join(f"## Part {number}\n\n{'The lamp charges in the sun. ' * 60}" for number in range(4))
    library.add(OWNER, write("lamp.md", f"# Lamps\n\n{sections}"))

    assert len(library.search(OWNER, "lamp sun", 8)) == 1
    hits = library.search(OWNER, "lamp sun", 8, passages=True)
    assert len(hits) > 3
    assert {hit.section for hit in hits} > {"Part 1", "Part 2"}
    assert len({hit.document.id for hit in hits}) == 1
