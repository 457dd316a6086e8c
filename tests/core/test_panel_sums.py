"""The sums of a panel are those of its cells added one by one, however rows are cut into stretches."""

import jax
import numpy as np
import pytest

from core import panel_sums
from core.data.markets import panel_of_market
from core.panel import Panel
from core.panel_sums import sum_units
from core.simulation import MarketPlan, simulate

MARKET = MarketPlan(products=40, periods=12, categories=9, stores=2, covariate=True, filled=0.4, seed=3)
ONE_ROUNDING = 1e-6
"""Both sides add in float64; what is compared is float32."""
FIELDS = (
    "log_price", "weight", "units", "covariates", "period", "series_of_row", "product_of_series",
    "category_of_product", "n_categories", "n_periods",
)  # fmt: skip


def fields(panel: Panel) -> dict:
    return {name: getattr(panel, name) for name in FIELDS}


@pytest.fixture(params=["dense", "packed"])
def panel(request) -> Panel:
    layout = "packed" if request.param == "packed" else "auto"
    filled = 0.4 if request.param == "packed" else 1.0
    plan = MarketPlan(**{**MARKET.__dict__, "filled": filled})
    found, _ = panel_of_market(simulate(plan), layout)
    assert (found.period is not None) == (request.param == "packed")
    return found


def one_by_one(panel: Panel, of_cell: np.ndarray, key: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros(count)
    for value, at in zip(of_cell.ravel(), key.ravel(), strict=True):
        total[at] += float(value)
    return total


def test_sums_by_series_product_category_and_period_are_those_of_the_cells(panel: Panel) -> None:
    shape = panel.log_price.shape
    series = np.broadcast_to(panel.series_of_row[:, None], shape)
    product = panel.product_of_series[series]
    category = panel.category_of_product[product]
    period = panel.period if panel.period is not None else np.broadcast_to(np.arange(shape[1]), shape)
    sold = panel.units * panel.weight
    sums, n_periods = sum_units(**fields(panel)), panel.n_periods
    for found, of_cell, key in (
        (sums.series, sold, series),
        (sums.observations, panel.weight, series),
        (sums.product_price, sold * panel.log_price.astype(np.float64), product),
        (sums.category_period, sold, category * n_periods + period),
        (sums.category_covariate, sold * panel.covariates[0].astype(np.float64), category),
    ):
        expected = one_by_one(panel, of_cell, key, np.size(found)).reshape(np.shape(found))
        np.testing.assert_allclose(found, expected, rtol=ONE_ROUNDING, atol=ONE_ROUNDING)


@pytest.mark.parametrize("most_bins", [0, 10_000_000], ids=["sorted", "binned"])
def test_the_histogram_holds_each_count_of_each_category_once(panel: Panel, most_bins: int, monkeypatch) -> None:
    monkeypatch.setattr(panel_sums, "BINCOUNT_LIMIT", most_bins)
    category = panel.category_of_product[panel.product_of_series[panel.series_of_row]]
    expected: dict[tuple[int, float], int] = {}
    for row, slot in np.argwhere(panel.units > 0):
        key = (int(category[row]), float(panel.units[row, slot]))
        expected[key] = expected.get(key, 0) + 1
    found = sum_units(**fields(panel)).histogram
    keys = list(zip(found.category.tolist(), found.units.tolist(), strict=True))
    assert keys == sorted(expected) and found.cells.tolist() == [expected[key] for key in keys]


@pytest.mark.parametrize("cells", [1, 100])
def test_stretches_of_any_length_give_the_same_bits(panel: Panel, cells: int, monkeypatch) -> None:
    whole = sum_units(**fields(panel))
    monkeypatch.setattr(panel_sums, "STRETCH_CELLS", cells)
    for found, expected in zip(jax.tree.leaves(sum_units(**fields(panel))), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
