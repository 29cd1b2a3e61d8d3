"""How the local library grows: a query at 100, 1,000 and 10,000 documents, and opening the largest."""

import runpy
import tempfile
import time
from pathlib import Path

from measure import Figure, percentile

from qak_adapter_local import DomainLibrary

SYNTHETIC = runpy.run_path(
    str(Path(__file__).resolve().parents[1] / "packages" / "adapter-local" / "tests" / "synthetic.py")
)
OWNER = SYNTHETIC["OWNER"]
SIZES = (100, 1_000, 10_000)


def figures() -> list[Figure]:
    queries = SYNTHETIC["synthetic_queries"](200)
    rows: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            directory = Path(folder) / str(size)
            SYNTHETIC["build_synthetic_library"](directory, size).close()
            start = time.perf_counter()
            library = DomainLibrary(directory / "library", max_documents=size)
            library.search(OWNER, queries[0], 5)
            opening = time.perf_counter() - start
            p95 = percentile([timed(library, query) for query in queries], 95)
            library.close()
            before = rows[-1].seconds if rows else None
            rows.append(
                Figure(
                    name=f"library query, p95, {size:,} documents",
                    seconds=p95,
                    against=f"{size // 10:,} documents" if before else "",
                    against_seconds=before,
                    limit="10 ms, < 10 x" if size == SIZES[-1] else "< 10 x" if before else "",
                    within=(before is None or p95 < 10 * before) and (size != SIZES[-1] or p95 <= 0.010),
                )
            )
    rows.append(
        Figure(
            name=f"opening a library of {SIZES[-1]:,}, first query included",
            seconds=opening,
            limit="100 ms",
            within=opening <= 0.100,
        )
    )
    return rows


def timed(library: DomainLibrary, query: str) -> float:
    start = time.perf_counter()
    library.search(OWNER, query, 5)
    return time.perf_counter() - start
