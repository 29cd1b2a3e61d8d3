"""From what the library found to results of protocol 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from qak_adapter_local._documents import LibraryDocument, SearchHit
from qak_adapter_local._paths import locator
from qak_core import RetrievalResult, Source
from qak_core.authoring import stable_id, unique_ids


def gists(hits: Sequence[SearchHit]) -> list[RetrievalResult]:
    """Return one result a document, as long for a memo as for a manual; no body text."""
    return [_result(hit, hit.document.id, _gist(hit.document), None) for hit in hits]


def excerpts(hits: Sequence[SearchHit]) -> list[RetrievalResult]:
    """Return the passages themselves, with the page they begin on in the locator."""
    ids = unique_ids(f"{hit.document.id}-{stable_id(hit.excerpt)[:16]}" for hit in hits)
    return [
        _result(hit, result_id, hit.excerpt or _gist(hit.document), hit.page)
        for hit, result_id in zip(hits, ids, strict=True)
    ]


def _result(hit: SearchHit, result_id: str, content: str, page: int | None) -> RetrievalResult:
    document = hit.document
    place = {"section": hit.section, "page": hit.page}
    return RetrievalResult(
        id=result_id,
        content=content,
        score=hit.score,
        source=Source(
            id=document.id,
            title=document.title,
            mime_type=document.mime_type,
            locator=locator(document.path, page),
        ),
        metadata={name: value for name, value in place.items() if value is not None},
    )


def _gist(document: LibraryDocument) -> str:
    lines = [document.title, document.gist or _facts(document)]
    if document.sections:
        lines += ["章节 / Sections:", *(f"- {section}" for section in document.sections)]
        if (more := document.section_count - len(document.sections)) > 1:
            lines.append(f"… (+{more})")
    where = locator(document.path)
    lines.append(
        f"正文 / Full text: {where}" if where else "正文 / Full text: not shown, its path is too long or unusual"
    )
    return "\n".join(lines)


def _facts(document: LibraryDocument) -> str:
    """Say in one line what is known without reading: the kind of file and its length."""
    kind = PurePath(document.name).suffix.lstrip(".").upper() or document.mime_type
    return f"{kind}, {document.page_count} pages" if document.page_count else kind
