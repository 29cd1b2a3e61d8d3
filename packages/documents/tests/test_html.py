from qak_documents import Document, extract


def read(body: str) -> Document:
    return extract(
        f"<!doctype html><html><head><title> 页 &amp; title </title></head><body>{body}".encode(), filename="a.html"
    )


def blocks(body: str) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, block.text) for block in read(body).blocks]


def test_html_gives_visible_text_without_markup() -> None:
    assert blocks(
        "<h2>A <b>bo</b>ld<a href=x>link</a> &lt;x&gt;</h2><p>年<em>费</em>\n is  <code>3000</code>&nbsp;元<br>next</p>"
    ) == [
        ("heading", 2, "A boldlink <x>"),
        ("paragraph", 0, "年费 is 3000 元\nnext"),
    ]
    assert read("x").title == "页 & title"


def test_html_keeps_text_outside_paragraphs_and_leaves_out_what_nobody_sees() -> None:
    body = (
        "<script>if (a < b) alert('no')</script><style>p{}</style><nav>menu</nav>naked"
        "<div>in div<div>deeper</div>tail</div>"
        "<dl><dt>term<dd>meaning</dl><svg><title>no</title></svg><!-- comment --><footer>end</footer>"
    )
    assert [text for _, _, text in blocks(body)] == ["naked", "in div", "deeper", "tail", "term", "meaning", "end"]


def test_html_nests_lists_in_order() -> None:
    document = read("<ul><li>a<ol><li>one<li>two</ol><li>b</ul>")
    assert document.markdown == "- a\n  1. one\n  2. two\n- b"
    assert {block.kind for block in document.blocks} == {"list_item"}


def test_html_tables_become_tables_and_layout_becomes_paragraphs() -> None:
    table = (
        "<table><caption>Fees</caption><tr><th>a<th>b|c<tr><td>1<p>2</p><td><table><tr><td>in</td></tr></table></table>"
    )
    assert blocks(table) == [
        ("paragraph", 0, "Fees"),
        ("table", 0, "| a | b\\|c |\n| --- | --- |\n| 1 2 | in |"),
    ]
    assert blocks("<table><tr><td>only</td></tr><tr><td>layout</td></tr></table>") == [
        ("paragraph", 0, "only"),
        ("paragraph", 0, "layout"),
    ]


def test_html_keeps_code_and_quotations() -> None:
    assert blocks(
        '<pre><code class="x language-python">def f():\n    return 1\n</code></pre><blockquote><p>said</p></blockquote>'
    ) == [
        ("code", 0, "```python\ndef f():\n    return 1\n```"),
        ("quote", 0, "> said"),
    ]


def test_html_text_that_looks_like_markdown_structure_is_escaped() -> None:
    document = read("<p># no</p><p>no<br>---</p><p>```</p><h1>yes</h1>")
    again = extract(document.markdown.encode(), filename="a.md")
    assert [block.text for block in again.headings] == ["yes"]


def test_html_in_a_declared_legacy_encoding_is_decoded() -> None:
    data = '<html><meta charset="gb2312"><p>年费标准'.encode("gb18030")
    assert extract(data, filename="a.htm").markdown == "年费标准"
    lying = '<html><meta charset="no-such"><p>年费标准'.encode()
    assert extract(lying, filename="a.htm").markdown == "年费标准"


def test_html_that_never_closes_anything_is_read() -> None:
    assert blocks("<div><h1>T<p>a<table><tr><td>x<td>y<ul><li>z")[-1][0] == "table"
