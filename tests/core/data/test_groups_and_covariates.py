"""Products find their category; covariates are numbers that vary."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data.roles import Roles
from tests.core.data.tables import GOOD, HEADER, cells, check, codes, left_out

FULL = Roles(product="product", price="price", units="units", period="week", category="dept")
FULL_HEADER = "product,week,price,units,dept"


def covariate_roles(*names: str) -> Roles:
    return Roles(product="product", price="price", units="units", period="week", covariates=names)


def with_covariate(*values: str) -> list[str]:
    return [f"{row},{value}" for row, value in zip(GOOD, values, strict=True)]


def test_a_tie_between_categories_is_settled_by_name_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rows = ["A,2024-01-01,1,1,aisle 10", "A,2024-01-08,2,1,aisle 9", "B,2024-01-01,1,1,aisle 9"]
    rows += ["B,2024-01-08,2,1,aisle 10"]
    for turned in (rows, rows[::-1]):
        table = cells(check(tmp_path, turned, FULL_HEADER, FULL))
        assert set(table["category"]) == {"aisle 9"}


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
