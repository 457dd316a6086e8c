"""Exports read back by other libraries: nothing runs as a formula, numbers stay numbers, codes stay text."""

import csv
from io import BytesIO, StringIO

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from core.report import exports
from core.report.exports import guard, to_csv, to_parquet, to_xlsx

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    '=HYPERLINK("http://x")',
    "-5",
    "=cmd|' /C calc'!A0",
    "\n=1",
    "＝1",
]
CODES = ["00012", "1e5", "NA", "None", "", "café", "a,b", 'say "x"', "1/2", "http://example.org"]


@pytest.fixture
def table():
    names = FORMULAS + CODES
    return pd.DataFrame(
        {
            "level": ["category"] * 3 + ["product"] * (len(names) - 3),
            "product": pd.array(names, dtype="str"),
            "mean": -np.linspace(0.5, 4.0, len(names)),
            "own_estimate": [np.nan, np.inf, *np.full(len(names) - 2, -1.25)],
            "n_obs": np.arange(len(names)),
        }
    )


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_looks_like_a_formula_is_neutralised(text):
    assert guard(text) == "'" + text


@pytest.mark.parametrize("text", [*CODES, "a=b", "1-2", "x@y"])
def test_other_text_is_left_alone(text):
    assert guard(text) == text


def test_csv_guards_text_and_headers_and_leaves_negative_numbers(table):
    table = table.rename(columns={"own_estimate": "=own"})
    text = to_csv(table).decode()
    back = pd.read_csv(StringIO(text), dtype={"product": str}, keep_default_na=False, na_values={"mean": [""]})
    assert back["product"].tolist() == ["'" + name for name in FORMULAS] + CODES
    np.testing.assert_allclose(back["mean"], table["mean"], rtol=1e-5)
    assert "'=own" in back.columns
    assert (back["mean"] < 0).all()


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_cell_of_a_csv_runs_and_every_text_can_be_had_back(names):
    text = to_csv(pd.DataFrame({"product": names, "other": 1})).decode()
    rows = list(csv.reader(StringIO(text, newline="")))[1:]
    assert len(rows) == len(names)
    for (cell, _), name in zip(rows, names, strict=True):
        assert not cell.startswith(exports.FORMULA_STARTS)
        assert name in (cell, cell.removeprefix("'"))


def test_csv_says_that_it_is_utf8_where_asked(table):
    assert to_csv(table, bom=True).startswith(b"\xef\xbb\xbf")
    assert not to_csv(table).startswith(b"\xef\xbb\xbf")


def test_csv_guards_categories_of_text_too():
    frame = pd.DataFrame({"category": pd.Categorical(["=x", "y", None])})
    assert to_csv(frame).decode().splitlines() == ["category", "'=x", "y", '""']


def test_parquet_keeps_everything(table):
    pd.testing.assert_frame_equal(pd.read_parquet(BytesIO(to_parquet(table))), table)


def test_xlsx_keeps_codes_and_formulas_as_text(table):
    book = openpyxl.load_workbook(BytesIO(to_xlsx(table, {"data": "=evil.csv", "mass": 0.9})))
    assert book.sheetnames == ["category", "product", "about"]
    cells = [row[1] for name in book.sheetnames[:2] for row in book[name].iter_rows(min_row=2)]
    written = [cell for cell in cells if cell.value is not None]
    assert [cell.value.replace("_x000D_", "\r") for cell in written] == [name for name in FORMULAS + CODES if name]
    assert {cell.data_type for cell in written} == {"s"}
    assert all(cell.quotePrefix for cell in written[: len(FORMULAS)])
    assert book["about"]["B1"].data_type == "s"


def test_xlsx_numbers_are_numbers_and_missing_ones_empty(table):
    sheet = CalamineWorkbook.from_filelike(BytesIO(to_xlsx(table))).get_sheet_by_name("category").to_python()
    assert sheet[0] == ["level", "product", "mean", "own_estimate", "n_obs"]
    assert sheet[1][2] == pytest.approx(-0.5) and sheet[1][4] == 0
    assert [row[3] for row in sheet[1:]] == ["", "", -1.25]


def test_more_rows_than_a_sheet_holds_go_on_in_further_sheets(table, monkeypatch):
    monkeypatch.setattr(exports, "SHEET_ROWS", 7)
    book = CalamineWorkbook.from_filelike(BytesIO(to_xlsx(table)))
    assert book.sheet_names == ["category", "product", "product 2", "product 3", "about"]
    rows = [row for name in book.sheet_names[1:4] for row in book.get_sheet_by_name(name).to_python()[1:]]
    assert [row[4] for row in rows] == table["n_obs"].tolist()[3:]


def test_a_table_without_levels_is_one_sheet():
    book = CalamineWorkbook.from_filelike(BytesIO(to_xlsx(pd.DataFrame({"a": [1.5]}))))
    assert book.sheet_names == ["table", "about"]
