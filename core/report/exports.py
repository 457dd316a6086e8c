"""Turn tables into files that spreadsheets and programs read: CSV, XLSX, Parquet. Codes stay text, formulas stay dead.

A text cell that starts with = + - @ tab, CR or LF runs as a formula in Excel: CSV has no types, so such text gets an
apostrophe in front; XLSX and Parquet have types and keep it as it is. Numbers are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import BinaryIO

import numpy as np
import pandas as pd
import xlsxwriter

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Full-width forms too: spreadsheets of East Asian locales take them for the narrow ones (OWASP, CSV injection)."""
SHEET_ROWS = 1_048_576
"""Rows of an Excel sheet, header included."""
SHEET_NAME = 31
"""Longest name of an Excel sheet."""
CELL_TEXT = 32_767
"""Longest text of an Excel cell."""
SIGNIFICANT = "%.6g"
"""Digits of numbers in CSV: draws are float32, which hold no more."""


def guard(text: str) -> str:
    """Text with an apostrophe in front where a spreadsheet would run it as a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def to_csv(table: pd.DataFrame, bom: bool = False) -> bytes:
    """UTF-8 CSV with a header and no index; `bom` tells Excel that it is UTF-8. Text that looks like a formula is
    neutralised, in headers too; numbers have six significant digits."""
    guarded = pd.DataFrame(
        {guard(str(name)): column.map(guard, na_action="ignore") if _is_text(column) else column
         for name, column in table.items()}
    )  # fmt: skip
    text = guarded.to_csv(index=False, float_format=SIGNIFICANT, lineterminator="\n")
    return text.encode("utf-8-sig" if bom else "utf-8")


def to_parquet(table: pd.DataFrame) -> bytes:
    """The table as it is, types and all, without its index."""
    buffer = BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def to_xlsx(table: pd.DataFrame, about: Mapping[str, object] | None = None) -> bytes:
    """One sheet for each level of the table (one sheet in all where it has no levels), then a sheet `about`.

    Text is written as text: codes keep their zeros and formulas do not run. A level of more rows than a sheet holds
    goes on in further sheets. Missing numbers are empty cells.
    """
    buffer = BytesIO()
    write_xlsx(buffer, _sheets(table), about or {})
    return buffer.getvalue()


def write_xlsx(file: BinaryIO, sheets: Mapping[str, pd.DataFrame], about: Mapping[str, object]) -> None:
    """Write named tables and an `about` sheet of name and value into an open binary file."""
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(file, options) as book:
        header = book.add_format({"bold": True, "bottom": 1})
        quoted = book.add_format({"quote_prefix": True})
        for name, table in sheets.items():
            for at, part in enumerate(_parts(table)):
                sheet = book.add_worksheet(name[:SHEET_NAME] if at == 0 else f"{name[: SHEET_NAME - 4]} {at + 1}")
                _write_sheet(sheet, part, header, quoted)
        sheet = book.add_worksheet("about")
        sheet.set_column(0, 0, 30)
        sheet.set_column(1, 1, 90)
        for row, (name, value) in enumerate(about.items()):
            _write_text(sheet, row, 0, str(name), quoted)
            _write_text(sheet, row, 1, str(value), quoted)


def _sheets(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    if "level" not in table.columns:
        return {"table": table}
    return {str(level): part for level, part in table.groupby("level", sort=False, observed=True)}


def _parts(table: pd.DataFrame) -> list[pd.DataFrame]:
    size = SHEET_ROWS - 1
    return [table.iloc[start : start + size] for start in range(0, max(1, len(table)), size)]


def _write_sheet(sheet: xlsxwriter.worksheet.Worksheet, table: pd.DataFrame, header: object, quoted: object) -> None:
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, max(0, table.shape[1] - 1), 14)
    for column, name in enumerate(table.columns):
        sheet.write_string(0, column, str(name), header)
    texts = [_is_text(table[name]) for name in table.columns]
    for row, values in enumerate(table.itertuples(index=False, name=None), start=1):
        for column, value in enumerate(values):
            if pd.isna(value) or value == "":
                continue
            if texts[column]:
                _write_text(sheet, row, column, str(value), quoted)
            elif np.isfinite(float(value)):
                sheet.write_number(row, column, float(value))
    sheet.autofilter(0, 0, len(table), max(0, table.shape[1] - 1))


def _write_text(sheet: xlsxwriter.worksheet.Worksheet, row: int, column: int, text: str, quoted: object) -> None:
    """Excel treats a cell of format `quoted` as text even after someone edits it."""
    if text.startswith(FORMULA_STARTS):
        sheet.write_string(row, column, text[:CELL_TEXT], quoted)
    else:
        sheet.write_string(row, column, text[:CELL_TEXT])


def _is_text(column: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))
