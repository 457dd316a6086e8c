"""Turn a workbook's first filled sheet into a Parquet file; run as a process so that a bad workbook harms no other."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from python_calamine import CalamineWorkbook

MEMORY_BYTES = 6 << 30


def main(source: str, target: str, max_columns: int) -> None:
    """Read `source`, write `target`. Column names keep duplicates: they go into the file's metadata."""
    _limit_memory()
    header, rows, shifted = _sheet(source)
    width = len(header)
    if width > max_columns:
        rows = []
    columns = [_column([row[i] if i < len(row) else "" for row in rows]) for i in range(min(width, max_columns + 1))]
    table = pa.table(columns, names=[str(i) for i in range(len(columns))])
    names = pa.array([_text(cell) for cell in header]).to_pylist()
    facts = {"header": "\x1f".join(names), "shifted": "yes" if shifted else ""}
    pq.write_table(table.replace_schema_metadata(facts), target)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    # Some systems know the limit and refuse to set it, or have a lower one in force.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _sheet(source: str) -> tuple[list[Any], list[list[Any]], bool]:
    """Header, rows, and whether blank rows lie above or between them."""
    workbook = CalamineWorkbook.from_path(source)
    for name in workbook.sheet_names:
        sheet = workbook.get_sheet_by_name(name)
        filled = [(i, row) for i, row in enumerate(sheet.iter_rows()) if any(cell != "" for cell in row)]
        if filled:
            (_, header), *rows = filled
            return header, [row for _, row in rows], filled[-1][0] != len(rows)
    return [], [], False


def _column(cells: list[Any]) -> pa.Array:
    """Numbers, dates and truths stay what they are where a column holds only one of them; else text."""
    kinds = {_kind(cell) for cell in cells} - {"empty"}
    filled = [None if _kind(cell) == "empty" else cell for cell in cells]
    if kinds == {"number"}:
        return pa.array([None if cell is None else float(cell) for cell in filled], pa.float64())
    if kinds == {"date"}:
        return pa.array([_moment(cell) for cell in filled], pa.timestamp("s"))
    if kinds == {"truth"}:
        return pa.array(filled, pa.bool_())
    return pa.array(["" if cell is None else _text(cell) for cell in filled], pa.string())


def _kind(cell: Any) -> str:
    if cell is None or cell == "":
        return "empty"
    if isinstance(cell, bool):
        return "truth"
    if isinstance(cell, int | float):
        return "number"
    return "date" if isinstance(cell, date) else "text"


def _moment(cell: Any) -> datetime | None:
    if cell is None or isinstance(cell, datetime):
        return cell
    return datetime(cell.year, cell.month, cell.day)


def _text(cell: Any) -> str:
    """As Excel shows it: whole numbers without decimals, truths in capitals, dates in ISO."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime) and (cell.hour, cell.minute, cell.second) == (0, 0, 0):
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, date | datetime) else str(cell)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
