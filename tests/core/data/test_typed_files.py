"""Parquet and workbooks are read by type; a workbook that would fill memory, or is none, ends in a stated problem."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from core.data.source import read_source
from tests.core.data.tables import problem_of, read


def test_parquet_keeps_types_and_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "product": ["007", "1e5", None],
            "price": [1.5, 2.5, 3.5],
            "units": pd.array([1, None, 2**60 + 1], dtype="Int64"),
            "week": pd.to_datetime(["2024-01-01", "2024-01-08", "2024-01-15"]),
            "list": [[1], [2], [3]],
        }
    )
    path = tmp_path / "sales.parquet"
    frame.to_parquet(path)
    source = read_source(path)
    assert source.columns == ("product", "price", "units", "week")
    assert source.frame["product"].astype(str).tolist() == ["007", "1e5", ""]
    assert source.frame["units"].astype(str).tolist() == ["1", "", str(2**60 + 1)]
    assert [note.code for note in source.notes] == ["nested-columns"]


def workbook(rows: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_a_workbook_is_read_by_type(tmp_path: Path) -> None:
    day = pd.Timestamp("2024-01-01").to_pydatetime()
    content = workbook([["product", "week", "price", "units"], ["007", day, 1.5, 3], [8, day, 2, None]])
    source = read(tmp_path, content, "sales.xlsx")
    assert source.frame["product"].astype(str).tolist() == ["007", "8"]
    assert source.frame["week"].tolist() == [pd.Timestamp(day)] * 2
    assert source.frame["price"].tolist() == [1.5, 2.0]
    assert source.frame["units"].isna().tolist() == [False, True]


def test_an_empty_workbook_is_a_stated_problem(tmp_path: Path) -> None:
    assert problem_of(tmp_path, workbook([]), "empty.xlsx") == "file-empty"
    assert problem_of(tmp_path, workbook([["product", "price", "units"]]), "header.xlsx") == "no-rows"


def bomb(sheet: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    return buffer.getvalue()


def test_a_workbook_that_unfolds_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.workbook.MAX_UNFOLDED_BYTES", 20 << 20)
    content = bomb(b"0" * (40 << 20))
    assert len(content) < 1 << 20
    assert problem_of(tmp_path, content, "bomb.xlsx") == "workbook-too-big"


def test_a_workbook_with_a_cell_at_the_far_end_is_refused(tmp_path: Path) -> None:
    content = bomb(b'<sheetData><row r="1"><c r="A1"/></row><row r="1048576"><c r="XFD1048576"/></row></sheetData>')
    assert problem_of(tmp_path, content, "far.xlsx") == "workbook-too-big"


def test_a_zip_that_is_no_workbook_is_a_stated_problem(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("sales.csv", "product,price,units")
    assert problem_of(tmp_path, buffer.getvalue(), "sales.zip") == "not-a-workbook"


@pytest.mark.parametrize(
    ("blank", "shifted"), [([], False), ([1], True), ([3], True), ([6], False)], ids=["none", "first", "between", "end"]
)
def test_blank_rows_of_a_workbook_are_known_to_shift_the_others(tmp_path: Path, blank: list[int], shifted: bool):
    rows = [["product", "price", "units"], ["A", 1, 2], ["B", 1, 2], ["C", 1, 3]]
    for at in blank:
        rows.insert(at - 1, [""] * 3)
    path = tmp_path / "sales.xlsx"
    pd.DataFrame(rows).replace("", None).to_excel(path, index=False, header=False, engine="xlsxwriter")
    source = read_source(path)
    assert (len(source.frame), source.shifted) == (3, shifted)
