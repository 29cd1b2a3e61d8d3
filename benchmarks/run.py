"""Prints what the project costs, each figure beside what it is measured against in the same run.

`hatch run bench` runs everything, `hatch run bench core` one module.
"""

import importlib
import sys
from pathlib import Path

from measure import Figure, print_table

MODULES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in {"run", "measure", "adapter_figures"}
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    for name in names or MODULES:
        figures += importlib.import_module(name).figures()
    print_table(figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
