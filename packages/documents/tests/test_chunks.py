import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qak_documents import Block, Document, chunk, estimate_tokens, extract

PARTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff\ufeff"), max_size=40),
    st.sampled_from(
        [
            "# 第一章\n\n",
            "## Rules\n",
            "发布须由两人批准。",
            "The annual fee is 3,000.50 yuan. ",
            "\n\n",
            "\n",
            "| a | b |\n| 1 | 2 |\n",
            "- item\n",
            "```\ncode  \n    more\n```\n",
            " " * 40,
            "😀" * 30,
            "x" * 300,
            "9" * 300,
            "年" * 300,
            "𠀀" * 150,
            "。" * 200,
        ]
    ),
)
MARKDOWN = st.lists(PARTS, max_size=30).map("".join)


def document_of(markdown: str) -> Document:
    return extract(("." + markdown).encode(), filename="a.md")


@settings(max_examples=150, deadline=None)
@given(MARKDOWN, st.sampled_from([(100, 50), (100, 0), (137, 20), (400, 200)]))
def test_chunks_of_any_text_are_exact_bounded_and_complete(markdown: str, sizes: tuple[int, int]) -> None:
    document = document_of(markdown)
    max_tokens, overlap_tokens = sizes
    chunks = chunk(document, max_tokens=max_tokens, overlap_tokens=overlap_tokens)
    units = document.markdown.encode("utf-16-le")
    covered = 0
    for position, part in enumerate(chunks):
        assert part.ordinal == position
        assert part.text == units[part.start * 2 : part.end * 2].decode("utf-16-le")
        assert part.text.strip()
        assert part.tokens == estimate_tokens(part.text) <= max_tokens
        assert not units[covered * 2 : part.start * 2].decode("utf-16-le").strip()
        if position:
            previous = chunks[position - 1]
            assert previous.start < part.start
            assert previous.end < part.end
            assert part.overlap == max(0, previous.end - part.start)
            shared = units[part.start * 2 : (part.start + part.overlap) * 2].decode("utf-16-le")
            assert estimate_tokens(shared) <= overlap_tokens
        else:
            assert part.overlap == 0
        covered = part.end
    assert not units[covered * 2 :].decode("utf-16-le").strip()


def test_chunk_windows_are_full_and_share_what_was_asked_for() -> None:
    sentences = "".join(f"第{n}条：发布须由两人批准并记录在案。" for n in range(600))
    chunks = chunk(document_of(sentences))
    assert len(chunks) > 5
    assert min(part.tokens for part in chunks[:-1]) > 760
    assert all(360 < estimate_tokens(part.text[: part.overlap]) <= 400 for part in chunks[1:])
    assert all(part.text.endswith("。") and part.text.startswith((".", "第")) for part in chunks)


def test_chunk_never_ends_with_a_heading_and_prefers_to_begin_with_one() -> None:
    body = "The release needs the approval of two people. " * 8
    document = document_of("".join(f"\n# Chapter {n}\n\n## Part {n}\n\n{body}\n" for n in range(12)))
    chunks = chunk(document, max_tokens=200, overlap_tokens=0)
    assert not any(part.text.rpartition("\n")[2].startswith("#") for part in chunks)
    assert len(chunks) == 6
    assert all(part.text.startswith("# Chapter") for part in chunks[1:])


def test_chunk_knows_its_page_and_the_headings_above_it() -> None:
    text = "# A\n\n" + "x. " * 105 + "\n\n## B\n\n" + "y. " * 90
    start = text.index("## B")
    document = Document(
        markdown=text,
        blocks=(
            Block(kind="heading", level=1, text="A", page=1, start=0, end=3),
            Block(kind="paragraph", level=0, text="x. " * 105, page=1, start=5, end=320),
            Block(kind="heading", level=2, text="B", page=2, start=start, end=start + 4),
            Block(kind="paragraph", level=0, text="y. " * 90, page=3, start=start + 6, end=len(text)),
        ),
        title=None,
        mime_type="text/markdown",
        page_count=3,
    )
    chunks = chunk(document, max_tokens=100, overlap_tokens=0)
    assert chunks[0].page == 1
    assert chunks[0].heading_path == ("A",)
    assert chunks[-1].page == 3
    assert chunks[-1].heading_path == ("A", "B")
    assert any(part.text.startswith("## B") and part.page == 2 and part.heading_path == ("A", "B") for part in chunks)


def test_chunk_keeps_a_small_document_whole() -> None:
    document = extract("# 标题\n\n正文😀。\n".encode(), filename="a.md")
    (only,) = chunk(document)
    assert (only.text, only.start, only.end, only.overlap, only.page) == ("# 标题\n\n正文😀。", 0, 11, 0, None)


def test_chunk_cuts_a_line_without_end_near_its_commas() -> None:
    document = document_of("alpha beta gamma, " * 400)
    chunks = chunk(document, max_tokens=100, overlap_tokens=0)
    assert all(part.text.endswith((",", "beta", "alpha", "gamma")) for part in chunks)
    assert len(chunks) < 20


@pytest.mark.parametrize("sizes", [(99, 0), (4097, 0), (100, 51), (800, -1), (800, 401)])
def test_chunk_refuses_sizes_out_of_bounds(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"max_tokens|overlap_tokens"):
        chunk(document_of("text"), max_tokens=sizes[0], overlap_tokens=sizes[1])


@pytest.mark.parametrize("sizes", [(100, 50), (4096, 2048), (800, 0)])
def test_chunk_takes_sizes_at_their_bounds(sizes: tuple[int, int]) -> None:
    assert chunk(document_of("text"), max_tokens=sizes[0], overlap_tokens=sizes[1])
