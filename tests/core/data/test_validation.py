"""Every trouble of a file is found, counted and treated as chosen; every row of it is accounted for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.data.choices import Choices
from core.data.roles import Roles
from core.data.source import read_source
from core.data.validation import validate
from core.errors import UserError
from tests.core.data.tables import DATED, GOOD, HEADER, ROLES, cells, check, codes, left_out, read_rows


def test_a_clean_file_passes_without_a_word(tmp_path: Path) -> None:
    checked = check(tmp_path, GOOD)
    assert checked.problems == ()
    assert cells(checked)["units"].tolist() == [10, 7, 5, 3]
    assert str(checked.sales.account) == "4 rows read = 4 used + 0 left out"  # type: ignore[union-attr]


def test_all_problems_come_at_once_each_with_a_remedy(tmp_path: Path) -> None:
    rows = [
        *GOOD,
        ",2024-01-01,1,1",
        "C,soon,1,1",
        "D,2024-01-01,free,1",
        "E,2024-01-01,0,1",
        "F,2024-01-01,1,",
        "Total,,1,1",
    ]
    checked = check(tmp_path, rows)
    expected = {"product-missing", "period-unreadable", "price-unreadable", "price-not-positive", "units-missing"}
    assert expected | {"totals-rows", "period-missing"} <= codes(checked)
    for problem in checked.problems:
        assert problem.what and problem.remedy and problem.where
        assert problem.consequence and problem.treatment
    assert left_out(checked) == {
        "without product": 1,
        "totals of other rows": 1,
        "unreadable price": 1,
        "price zero or negative": 1,
        "unreadable date": 1,
        "without units": 1,
    }


def test_examples_name_the_row_as_a_spreadsheet_counts_it(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "C,2024-01-01,-2.50,1"])
    assert checked.problems[0].examples == ("row 6: '-2.50'",)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["A,2024-01-01,1,1", "C,2024-01-01,-2.50,1", "", ""], "row 3"),
        (["A,2024-01-01,1,1", "", "C,2024-01-01,-2.50,1"], "data row 2"),
        (["A,2024-01-01,1,1", "B,2024-01-01,1,1,1", "C,2024-01-01,-2.50,1"], "data row 2"),
        (['"A\n1",2024-01-01,1,1', "C,2024-01-01,-2.50,1"], "data row 2"),
    ],
    ids=["blank end", "blank line", "ragged line", "line end in a cell"],
)
def test_rows_are_counted_as_data_where_other_lines_shift_them(
    tmp_path: Path, lines: list[str], place: str, end: str
) -> None:
    path = tmp_path / "sales.csv"
    path.write_text(end.join([HEADER, *lines]), encoding="utf-8", newline="")
    examples = [p.examples for p in validate(read_source(path), ROLES).problems if p.code == "price-not-positive"]
    assert examples == [(f"{place}: '-2.50'",)]


@pytest.mark.parametrize(
    ("row", "choice", "code"),
    [
        ("C,2024-01-01,0,1", "bad_price", "price-not-positive"),
        ("C,2024-01-01,,1", "bad_price", "price-missing"),
        ("C,2024-01-01,1,x", "bad_units", "units-unreadable"),
        ("C,never,1,1", "bad_period", "period-unreadable"),
        ("A,2024-01-01,1,-2", "negative_units", "units-negative"),
        ("A,2024-01-01,1,2", "duplicates", "repeated-cells"),
    ],
)
def test_each_trouble_can_be_made_to_stop_the_work(tmp_path: Path, row: str, choice: str, code: str) -> None:
    checked = check(tmp_path, [*GOOD, row], **{choice: "stop"})
    assert checked.sales is None
    assert [problem.code for problem in checked.errors] == [code]
    assert checked.errors[0].choice == choice


def test_a_file_with_no_usable_row_is_refused(tmp_path: Path) -> None:
    checked = check(tmp_path, ["A,2024-01-01,0,1", "A,2024-01-08,-1,2"])
    assert "no-rows-left" in codes(checked)


def test_roles_in_conflict_stop_validation_with_all_conflicts(tmp_path: Path) -> None:
    source = read_rows(tmp_path, GOOD)
    checked = validate(source, Roles(product="product", price="units", units="units", store="shop"), Choices())
    assert sorted(problem.code for problem in checked.errors) == ["two-roles", "unknown-column"]


def test_choices_name_what_would_do() -> None:
    with pytest.raises(UserError) as caught:
        Choices(duplicates="ignore", totals="maybe")
    assert "aggregate" in str(caught.value) and "keep" in str(caught.value)


CELL = st.sampled_from(
    ["", "A", "B", "Total", "1", "2", "0", "-1", "1.5", "x", "NA", "2024-01-01", "2024-13-45", "inf"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=25), st.booleans())
def test_every_row_of_any_file_is_accounted_for(tmp_path: Path, rows: list[tuple[str, ...]], dated: bool) -> None:
    kept = [row for row in rows if any(row)] or [("A", "2024-01-01", "1", "1")]
    checked = check(tmp_path, [",".join(row) for row in kept], roles=DATED if dated else ROLES)
    assert (checked.sales is None) == bool(checked.errors)
    if checked.sales is not None:
        frame = checked.sales.frame
        assert (frame["price"] > 0).all() and (frame["units"] >= 0).all()
        assert np.array_equal(frame["units"], np.round(frame["units"]))
