"""A simulated market is what its plan says, and its sales follow the truth it carries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.errors import UserError
from core.simulation import MarketPlan, simulate

PLAN = MarketPlan(products=200, periods=80, categories=5, likelihood="poisson", mean_units=30.0, seed=3)
MONTE_CARLO = 4.5
"""Standard errors within which a fixed seed's average must lie; beyond it chance is no excuse."""


def test_the_same_plan_gives_the_same_market() -> None:
    first, second = simulate(PLAN), simulate(PLAN)
    assert np.array_equal(first.units, second.units)
    assert np.array_equal(first.price, second.price)
    assert not np.array_equal(first.units, simulate(replace(PLAN, seed=4)).units)


def test_every_product_has_every_period_once() -> None:
    market = simulate(PLAN)
    assert np.array_equal(market.product, np.repeat(np.arange(200), 80))
    assert np.array_equal(market.period, np.tile(np.arange(80), 200))


def test_mean_units_are_the_plans() -> None:
    assert simulate(PLAN).units.mean() == pytest.approx(PLAN.mean_units, rel=0.01)


def test_units_scatter_as_a_poisson_around_the_mean_of_the_truth() -> None:
    market = simulate(PLAN)
    truth, log_price = market.truth, np.log(market.price)
    centre = np.bincount(market.product, log_price) / 80
    category = market.category_of_product[market.product]
    eta = truth.level_series[market.product]
    eta = eta + truth.elasticity_product[market.product] * (log_price - centre[market.product])
    mean = np.exp(eta + truth.time_effect[category, market.period])
    assert abs((market.units - mean).sum()) < MONTE_CARLO * np.sqrt(mean.sum())
    pearson = ((market.units - mean) ** 2 / mean)[mean > 1]
    assert pearson.mean() == pytest.approx(1.0, abs=MONTE_CARLO * np.sqrt(2.0 / pearson.size) + 0.02)


def test_a_negative_binomial_market_varies_more_than_its_mean() -> None:
    market = simulate(replace(PLAN, likelihood="negbin", concentration=2.0))
    by_product = market.units.reshape(200, 80)
    assert np.median(by_product.var(axis=1) / by_product.mean(axis=1)) > 3.0
    assert np.isfinite(market.truth.concentration_category).all()


def test_prices_are_whole_cents_and_some_products_never_change_them() -> None:
    market = simulate(replace(PLAN, constant_share=0.1))
    assert np.allclose(market.price * 100, np.round(market.price * 100), atol=1e-6)
    spread = np.ptp(market.price.reshape(200, 80), axis=1)
    assert 5 <= (spread == 0).sum() <= 50
    assert (spread > 0).sum() > 100


def test_a_sparse_market_keeps_every_product_and_period() -> None:
    market = simulate(replace(PLAN, filled=0.05))
    assert market.n_cells < 0.1 * 200 * 80
    assert np.unique(market.product).size == 200
    assert np.unique(market.period).size == 80


def test_stores_and_promotions_come_when_asked_for() -> None:
    market = simulate(replace(PLAN, stores=3, covariate=True))
    assert np.unique(market.store).size == 3
    assert market.n_cells == 200 * 3 * 80
    assert 0 < market.promotion.mean() < 0.3
    assert (market.truth.covariate_category != 0).all()


def test_products_are_numbered_category_by_category() -> None:
    category = simulate(PLAN).category_of_product
    assert (np.diff(category) >= 0).all()
    assert np.unique(category).size == 5


def test_a_plan_names_every_field_that_is_off() -> None:
    with pytest.raises(UserError) as caught:
        MarketPlan(products=3, categories=5, likelihood="normal", mean_units=-1.0)
    text = str(caught.value)
    assert "categories=5" in text and "likelihood" in text and "mean_units" in text
