"""Timing two things against each other, so that a slow or busy machine slows both."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row: what was measured, against what, what it may cost, and whether it does."""

    name: str
    seconds: float
    against: str = ""
    against_seconds: float | None = None
    limit: str = ""
    within: bool | None = None

    @property
    def ratio(self) -> float | None:
        return self.seconds / self.against_seconds if self.against_seconds else None


def paired(call: Call, against: Call, *, rounds: int = 30, calls: int = 1) -> tuple[float, float]:
    """Return the median seconds of one call of each, taken in turn: A B A B …"""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for one, taken in zip((call, against), times, strict=True):
            start = time.perf_counter()
            for _ in range(calls):
                one()
            taken.append((time.perf_counter() - start) / calls)
    return median(times[0]), median(times[1])


def percentile(seconds: Sequence[float], percent: int) -> float:
    return quantiles(seconds, n=100, method="inclusive")[percent - 1]


def print_table(figures: Sequence[Figure]) -> None:
    rows = [("figure", "ms", "against", "ms", "ratio", "limit", "")]
    for figure in figures:
        rows.append(
            (
                figure.name,
                f"{figure.seconds * 1000:.3f}",
                figure.against,
                f"{figure.against_seconds * 1000:.3f}" if figure.against_seconds else "",
                f"{figure.ratio:.2f}" if figure.ratio else "",
                figure.limit,
                {True: "ok", False: "OVER", None: ""}[figure.within],
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
