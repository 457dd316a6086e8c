"""Each column is read for its role: codes as spelt, numbers by the file's own marks, units whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.data.tables import GOOD, ROLES, cells, check, codes, left_out


def test_infinities_are_no_numbers(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "C,2024-01-01,inf,1", "C,2024-01-08,1,-Infinity"])
    assert left_out(checked) == {"unreadable price": 1, "unreadable units": 1}


def test_missing_units_can_count_as_nothing_sold(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-15,1,"], bad_units="zero")
    assert cells(checked)["units"].tolist() == [10, 7, 0, 5, 3]


def test_product_codes_stay_as_spelt(tmp_path: Path) -> None:
    names = ["007", "7", "1e5", "NA", "None", "true", "nan", "1.0"]
    rows = [f"{name},2024-01-0{day},{price},1" for name in names for day, price in ((1, "1.0"), (2, "2.0"))]
    checked = check(tmp_path, rows)
    assert set(cells(checked)["product"]) == set(names)
    assert checked.problems == ()


def test_products_that_look_alike_are_named_and_kept_apart(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "a,2024-01-01,1,1", "a,2024-01-08,2,1"])
    assert codes(checked) == {"product-look-alikes"}
    assert cells(checked)["product"].nunique() == 3


def test_rounding_noise_is_rounded_with_a_note(tmp_path: Path) -> None:
    checked = check(tmp_path, ["A,2024-01-01,1,8255.99999982379", "A,2024-01-08,2,3.0000001"])
    assert cells(checked)["units"].tolist() == [8256, 3]
    assert [(p.code, p.severity, p.rows) for p in checked.problems] == [("units-rounded", "note", 2)]


def test_shares_are_refused_and_never_rounded_to_nothing(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1,0.0124", "A,2024-01-08,2,0.0098"]
    for choice in ("refuse", "round"):
        checked = check(tmp_path, rows, fractional_units=choice)
        assert [problem.code for problem in checked.errors] == ["units-fractional"]
        assert "counts" in checked.errors[0].remedy


def test_weights_are_refused_unless_rounding_is_chosen(tmp_path: Path) -> None:
    rows = [*GOOD, "A,2024-01-15,1,12.4"]
    assert codes(check(tmp_path, rows)) == {"units-fractional"}
    assert cells(check(tmp_path, rows, fractional_units="round"))["units"].tolist() == [10, 7, 12, 5, 3]
    assert left_out(check(tmp_path, rows, fractional_units="leave-out")) == {"units not whole": 1}


def test_counts_beyond_exact_single_precision_are_noted(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-15,1,20000000", "A,2024-01-22,1,1e15"])
    assert {"units-huge", "units-endless"} == codes(checked)
    assert left_out(checked) == {"units beyond any count": 1}


def test_a_column_of_words_is_no_price(tmp_path: Path) -> None:
    checked = check(tmp_path, ["A,2024-01-01,cheap,1", "A,2024-01-08,dear,2"])
    assert [problem.code for problem in checked.errors] == ["prices-not-numbers"]


def test_a_price_that_is_mostly_missing_is_still_a_price(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1.5,1", "A,2024-01-08,2.5,2", *(f"A,2024-02-{day:02d},,0" for day in range(1, 10))]
    checked = check(tmp_path, rows)
    assert cells(checked)["price"].tolist() == [1.5, 2.5]
    assert left_out(checked) == {"without price": 9}


@pytest.mark.parametrize(
    ("rows", "prices", "units"),
    [
        (["A;1,50;1.000", "A;2,25;2.500"], [1.5, 2.25], [1000, 2500]),
        (["A;1.234,50 €;1", "A;€ 2,25;2"], [1234.5, 2.25], [1, 2]),
        (["A;1 234,50;1", "A;2,25;2"], [1234.5, 2.25], [1, 2]),
        (["A;$1,234.50;1,000", "A;$2.25;2"], [1234.5, 2.25], [1000, 2]),
        (["A;1.50;1", "A;2.25;2"], [1.5, 2.25], [1, 2]),
    ],
)
def test_decimal_marks_and_thousands_are_read_by_the_whole_file(
    tmp_path: Path, rows: list[str], prices: list[float], units: list[int]
) -> None:
    frame = cells(check(tmp_path, rows, "product;price;units", ROLES))
    assert frame["price"].tolist() == prices
    assert frame["units"].tolist() == units


def test_an_ambiguous_decimal_mark_is_said_and_can_be_chosen(tmp_path: Path) -> None:
    rows = ["A;1,234;1", "A;2,345;2"]
    checked = check(tmp_path, rows, "product;price;units", ROLES)
    assert codes(checked) == {"decimal-mark-ambiguous"}
    assert cells(checked)["price"].tolist() == [1.234, 2.345]
    assert cells(check(tmp_path, rows, "product;price;units", ROLES, decimal_mark="point"))["price"].tolist() == [
        1234,
        2345,
    ]


def test_time_stamps_are_too_many_periods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.checks.MOST_PERIODS", 1)
    assert [problem.code for problem in check(tmp_path, GOOD).errors] == ["too-many-periods"]
