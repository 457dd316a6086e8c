"""Own-data estimates of real sales files against published regressions."""

import numpy as np
import pandas as pd
import pytest

from core.posterior.own import own_estimates
from tests.core.posterior.handmade import draws_around, panel_of

ROUNDED = 0.006
"""The yardsticks are given with two decimals; prices are kept as float32."""

pytestmark = pytest.mark.data


def _own(frame: pd.DataFrame, by: list[str]):
    """One series per group of `by` (its first column is the product), all its rows as replicates side by side."""
    groups = [group for _, group in frame.groupby(by)]
    width = max(len(group) for group in groups)
    x, weight, units = (np.zeros((len(groups), width)) for _ in range(3))
    for row, group in enumerate(groups):
        log_price = np.log(group["price"].to_numpy())
        x[row, : len(group)] = log_price - log_price.mean()
        weight[row, : len(group)] = 1
        units[row, : len(group)] = group["units"].round()
    names = sorted(frame[by[0]].unique())
    product = np.array([names.index(group[by[0]].iloc[0]) for group in groups])
    category = np.zeros(len(names), int)
    panel = panel_of(x, weight, units, product, category, np.zeros(len(groups)), 1, 0)
    draws = draws_around(np.zeros(len(names)), np.zeros(len(groups)), np.zeros((1, 0)), category, 1, n=10)
    own = own_estimates(panel, draws)
    return dict(zip(names, own.estimate, strict=True)), own


def test_orange_juice_by_brand_is_the_poisson_regression(shared_data):
    frame = pd.read_csv(shared_data / "dominicks_oj.csv").rename(columns={"sales": "units"})
    found, own = _own(frame, ["brand"])
    assert found["dominicks"] == pytest.approx(-3.25, abs=ROUNDED)
    assert found["minute.maid"] == pytest.approx(-3.81, abs=ROUNDED)
    assert found["tropicana"] == pytest.approx(-3.15, abs=ROUNDED)
    assert (own.se > 0.02).all(), "ounces scatter far more than Poisson counts: standard errors must say so"


def test_weekly_sales_with_store_levels_are_the_poisson_regression(shared_data):
    frame = pd.read_csv(shared_data / "store_sales.csv")
    frame = frame.rename(columns={"Price": "price", "Weekly_Units_Sold": "units"})
    found, _ = _own(frame, ["Product", "Store"])
    assert found[1] == pytest.approx(-1.89, abs=ROUNDED)
    assert found[2] == pytest.approx(-1.45, abs=ROUNDED)
    assert found[3] == pytest.approx(-2.21, abs=ROUNDED)
