"""The general extractor (kreuzberg): what it is asked, and its nodes as blocks. Runs in the limited child only."""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from qak_documents._document import Piece, code, heading, paragraph, table
from qak_documents._errors import DamagedDocument

_BULLET = re.compile(r"\s*[-–•●○■▪◆]\s+(?=\S)")

Node = Mapping[str, Any]  # a node of `result.document["nodes"]`


def extract_nodes(data: bytes, format_name: str, mime_type: str) -> tuple[str | None, int | None, list[Piece]]:
    """Return title, page count and blocks of ``data``.

    Raises:
        DamagedDocument: the extractor gave up.
    """
    import kreuzberg  # here, so that the rest of the module can be read without loading 100 MB

    marker = f"slide-{secrets.token_hex(8)}-"  # a presentation's nodes don't know their slide; this goes between them
    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        include_document_structure=True,
        output_format="markdown",  # in plain output slides have no headings
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
        pages=kreuzberg.PageConfig(insert_page_markers=True, marker_format=f"\n\n{marker}{{page_num}}\n\n")
        if format_name == "pptx"
        else None,
    )
    try:
        result = kreuzberg.extract_bytes_sync(data, mime_type, config=config)
    except kreuzberg.KreuzbergError as error:
        raise DamagedDocument(
            f"The file can't be read as {format_name}; open it in its own program and save it anew."
        ) from error
    nodes: Sequence[Node] = result.document["nodes"] if result.document else []
    pieces, slide_count = node_pieces(nodes, marker)
    metadata: Mapping[str, Any] = result.metadata
    return metadata.get("title"), metadata.get("sheet_count", slide_count), pieces


def node_pieces(nodes: Sequence[Node], marker: str) -> tuple[list[Piece], int | None]:
    """Return the blocks of ``nodes``, and the last slide number that a ``marker`` told of.

    Containers (groups, lists, quotations) have no text of their own; their children know them by index.
    """
    pieces: list[Piece] = []
    slide: int | None = None
    for position, node in enumerate(nodes):
        content = node["content"]
        kind, text = content["node_type"], content.get("text") or ""
        page = node.get("page") or slide
        if node.get("content_layer") in ("header", "footer"):
            continue
        if text.startswith(marker):
            slide = int(text.removeprefix(marker))
        elif kind == "table":
            pieces.append(table(_rows(content["grid"]), page))
        elif not text.strip():
            continue
        elif kind in ("heading", "title"):
            following = nodes[position + 1].get("page") if position + 1 < len(nodes) else None
            pieces.append(heading(text, content.get("level", 1), page or following))  # a sheet's name has no page
        elif kind == "code":
            pieces.append(code(text, content.get("language") or "", page))
        elif kind == "list_item":
            pieces.append(paragraph(text, page, "list_item", _marker(nodes, node)))
        elif _parent_type(nodes, node) == "quote":
            pieces.append(paragraph(text, page, "quote", "> "))
        elif bullet := _BULLET.match(text):
            pieces.append(paragraph(text[bullet.end() :], page, "list_item", "- "))
        else:
            pieces.append(paragraph(text, page))
    return pieces, slide


def _rows(grid: Mapping[str, Any]) -> list[list[str]]:
    rows: list[list[str]] = []
    for cell in grid["cells"]:
        while len(rows) <= cell["row"]:
            rows.append([])
        rows[cell["row"]].append(cell["content"])
    return [row for row in rows if any(cell.strip() for cell in row)]


def _parent_type(nodes: Sequence[Node], node: Node) -> str | None:
    parent = node.get("parent")
    return None if parent is None else nodes[parent]["content"]["node_type"]


def _marker(nodes: Sequence[Node], node: Node) -> str:
    depth, number = 0, 0
    parent = node.get("parent")
    while parent is not None:
        container = nodes[parent]
        if container["content"]["node_type"] == "list":
            if not depth and container["content"].get("ordered"):
                siblings = [nodes[child] is node for child in container.get("children", [])]
                number = siblings.index(True) + 1 if True in siblings else 1
            depth += 1
        parent = container.get("parent")
    return "  " * max(depth - 1, 0) + (f"{number}. " if number else "- ")
