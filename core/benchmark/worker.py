"""`python -m core.benchmark.worker CELL RECORD`: measure the cell in one JSON file, write its record to the other."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from core.benchmark.cases import Cell


def main(cell_file: str, record_file: str) -> int:
    """Measure one cell in this process, which exists for nothing else."""
    from core.benchmark.measure import measure

    cell = Cell(**json.loads(Path(cell_file).read_text(encoding="utf-8")))
    Path(record_file).write_text(json.dumps(asdict(measure(cell))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
