"""Rows become cells: returns are netted, repeats added up, products that never change price named."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data.roles import Roles
from tests.core.data.tables import GOOD, HEADER, ROLES, cells, check, codes, left_out


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
