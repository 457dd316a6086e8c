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
from tests.core.data.tables import DATED, GOOD, HEADER, ROLES, cells, check, codes, read_rows

FULL = Roles(product="product", price="price", units="units", period="week", category="dept")
FULL_HEADER = "product,week,price,units,dept"


def left_out(checked: object) -> dict[str, int]:
    return dict(checked.sales.account.left_out)  # type: ignore[attr-defined]


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


def test_a_tie_between_categories_is_settled_by_name_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1,1,aisle 10", "A,2024-01-08,2,1,aisle 9", "B,2024-01-01,1,1,aisle 9"]
    rows += ["B,2024-01-08,2,1,aisle 10"]
    for turned in (rows, rows[::-1]):
        table = cells(check(tmp_path, turned, FULL_HEADER, FULL))
        assert set(table["category"]) == {"aisle 9"}


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


def test_infinities_are_no_numbers(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "C,2024-01-01,inf,1", "C,2024-01-08,1,-Infinity"])
    assert left_out(checked) == {"unreadable price": 1, "unreadable units": 1}


def test_missing_units_can_count_as_nothing_sold(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-15,1,"], bad_units="zero")
    assert cells(checked)["units"].tolist() == [10, 7, 0, 5, 3]


def test_returns_are_netted_within_their_product_and_period(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-01,1.00,-3", "B,2024-01-15,2.00,-1"])
    assert cells(checked)["units"].tolist() == [7, 7, 5, 3]
    assert left_out(checked) == {"returns netted": 1, "returns without a sale to net": 1}


def test_a_return_beyond_the_sales_leaves_nothing_sold(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-01,1.00,-30"])
    assert cells(checked)["units"].tolist() == [0, 7, 5, 3]
    assert "returns-exceed-sales" in codes(checked)


def test_returns_spread_over_several_sales_keep_whole_units(tmp_path: Path) -> None:
    rows = [*GOOD, "A,2024-01-01,1.00,5", "A,2024-01-01,1.00,4", "A,2024-01-01,1.00,-7"]
    assert cells(check(tmp_path, rows))["units"].tolist() == [12, 7, 5, 3]


def test_returns_can_be_left_out(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-01,1.00,-3"], negative_units="leave-out")
    assert cells(checked)["units"].tolist() == [10, 7, 5, 3]
    assert left_out(checked) == {"negative units": 1}


def test_without_periods_returns_are_left_out(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-01,1.00,-3"], roles=ROLES)
    assert left_out(checked) == {"negative units": 1}


def test_repeats_add_up_with_prices_weighted_by_units(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, "A,2024-01-01,2.00,30"])
    first = cells(checked).iloc[0]
    assert first["units"] == 40
    assert first["price"] == pytest.approx((10 * 1.0 + 30 * 2.0) / 40)
    assert checked.sales.account.used == 5  # type: ignore[union-attr]


def test_repeats_without_sales_take_the_plain_mean_price(tmp_path: Path) -> None:
    checked = check(tmp_path, ["C,2024-01-01,1,0", "C,2024-01-01,2,0", *GOOD])
    assert cells(checked)["price"].tolist()[-1] == 1.5


def test_exact_copies_can_be_dropped(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, GOOD[0], GOOD[0], "A,2024-01-01,1.00,4"], duplicates="drop-copies")
    assert cells(checked)["units"].tolist() == [14, 7, 5, 3]
    assert left_out(checked) == {"exact copies of another row": 2}


def test_repeats_without_a_period_are_replicates(tmp_path: Path) -> None:
    checked = check(tmp_path, [*GOOD, GOOD[0]], roles=ROLES)
    assert len(cells(checked)) == 5
    assert "repeated-cells" not in codes(checked)


def test_the_same_product_in_two_stores_is_no_repeat(tmp_path: Path) -> None:
    roles = Roles(product="product", price="price", units="units", period="week", store="shop")
    rows = [f"{row},{shop}" for row in GOOD for shop in ("1", "2")]
    checked = check(tmp_path, rows, header=HEADER + ",shop", roles=roles)
    assert len(cells(checked)) == 8
    assert checked.problems == ()


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


def test_products_in_two_categories_go_where_most_of_their_rows_are(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1,1,x", "A,2024-01-08,2,1,x", "A,2024-01-15,1,1,y", "B,2024-01-01,1,1,y"]
    checked = check(tmp_path, rows, FULL_HEADER, FULL)
    assert cells(checked)["category"].tolist() == ["x", "x", "x", "y"]
    assert {"category-conflict", "price-constant"} == codes(checked)


def test_products_in_two_categories_can_be_told_apart_or_left_out(tmp_path: Path) -> None:
    rows = [
        "A,2024-01-01,1,1,x",
        "A,2024-01-08,2,1,x",
        "A,2024-01-15,1,1,y",
        "B,2024-01-01,1,1,y",
        "B,2024-01-08,2,1,y",
    ]
    apart = cells(check(tmp_path, rows, FULL_HEADER, FULL, category_conflict="separate"))
    assert dict(zip(apart["product"], apart["category"], strict=True)) == {"A [x]": "x", "A [y]": "y", "B": "y"}
    out = check(tmp_path, rows, FULL_HEADER, FULL, category_conflict="leave-out")
    assert left_out(out) == {"product in several categories": 3}


def test_a_missing_category_is_filled_from_the_products_other_rows(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1,1,x", "A,2024-01-08,2,1,", "A,2024-01-15,1,1,", "B,2024-01-01,1,1,", "B,2024-01-08,2,1,"]
    checked = check(tmp_path, rows, FULL_HEADER, FULL)
    assert cells(checked)["category"].tolist() == ["x", "x", "x", "(no category)", "(no category)"]
    assert codes(checked) == {"category-missing"}


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


def test_products_that_never_change_price_are_named_and_kept_by_default(tmp_path: Path) -> None:
    rows = [*GOOD, "C,2024-01-01,3,1", "C,2024-01-08,3,2"]
    checked = check(tmp_path, rows)
    assert [(p.code, p.rows, p.examples) for p in checked.problems] == [("price-constant", 2, ("C",))]
    assert len(cells(checked)) == 6
    assert left_out(check(tmp_path, rows, constant_price="leave-out")) == {"product never changes price": 2}


def test_a_price_that_differs_between_stores_only_never_changes(tmp_path: Path) -> None:
    roles = Roles(product="product", price="price", units="units", period="week", store="shop")
    rows = [f"{row},1" for row in GOOD] + ["C,2024-01-01,3,1,1", "C,2024-01-01,4,1,2"]
    assert "price-constant" in codes(check(tmp_path, rows, HEADER + ",shop", roles))


def test_a_file_without_any_price_change_is_refused(tmp_path: Path) -> None:
    checked = check(tmp_path, ["A,2024-01-01,3,1", "A,2024-01-08,3,2"])
    assert checked.sales is None
    assert [problem.code for problem in checked.errors] == ["price-constant"]


def test_a_file_with_no_usable_row_is_refused(tmp_path: Path) -> None:
    checked = check(tmp_path, ["A,2024-01-01,0,1", "A,2024-01-08,-1,2"])
    assert "no-rows-left" in codes(checked)


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


def covariate_roles(*names: str) -> Roles:
    return Roles(product="product", price="price", units="units", period="week", covariates=names)


def with_covariate(*values: str) -> list[str]:
    return [f"{row},{value}" for row, value in zip(GOOD, values, strict=True)]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (("TRUE", "FALSE", "false", "true"), [1, 0, 0, 1]),
        (("yes", "no", "no", "yes"), [1, 0, 0, 1]),
        (("0", "1", "1", "0"), [0, 1, 1, 0]),
        (("20.5", "-3", "1e1", "0"), [20.5, -3, 10, 0]),
    ],
)
def test_covariates_may_be_truths_or_numbers(tmp_path: Path, values: tuple[str, ...], numbers: list[float]) -> None:
    checked = check(tmp_path, with_covariate(*values), HEADER + ",promo", covariate_roles("promo"))
    assert cells(checked)["promo"].tolist() == numbers


def test_text_covariates_are_refused_with_a_remedy(tmp_path: Path) -> None:
    checked = check(
        tmp_path, with_covariate("red", "blue", "red", "red"), HEADER + ",colour", covariate_roles("colour")
    )
    assert [problem.code for problem in checked.errors] == ["covariate-text"]
    assert "0 and 1" in checked.errors[0].remedy


def test_constant_covariates_are_left_aside(tmp_path: Path) -> None:
    checked = check(tmp_path, with_covariate("1", "1", "1", "1"), HEADER + ",promo", covariate_roles("promo"))
    assert codes(checked) == {"covariate-constant"}
    assert checked.sales.covariates == ()  # type: ignore[union-attr]


def test_missing_covariates_are_left_out_or_filled(tmp_path: Path) -> None:
    rows, header, roles = with_covariate("1", "4", "", "NA"), HEADER + ",temp", covariate_roles("temp")
    assert left_out(check(tmp_path, rows, header, roles)) == {"without temp": 2}
    filled = cells(check(tmp_path, rows, header, roles, missing_covariate="mean"))
    assert filled["temp"].tolist() == [1, 4, 2.5, 2.5]


def test_a_covariate_may_be_called_like_a_canonical_column(tmp_path: Path) -> None:
    rows = [f"{row},{promo}" for row, promo in zip(GOOD, (1, 0, 0, 1), strict=True)]
    checked = check(
        tmp_path,
        rows,
        "product,week,cost,units,price",
        Roles("product", "cost", "units", "week", covariates=("price",)),
    )
    assert cells(checked)["price (covariate)"].tolist() == [1, 0, 0, 1]


def test_a_covariate_that_repeats_units_is_pointed_out(tmp_path: Path) -> None:
    rows = [f"A,2024-01-{day:02d},{1 + day % 3},{day},{10 * day}" for day in range(1, 29)]
    checked = check(tmp_path, rows, HEADER + ",revenue", covariate_roles("revenue"))
    assert "covariate-leak" in codes(checked)


def test_time_stamps_are_too_many_periods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.checks.MOST_PERIODS", 1)
    assert [problem.code for problem in check(tmp_path, GOOD).errors] == ["too-many-periods"]


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
