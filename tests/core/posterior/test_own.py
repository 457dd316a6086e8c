"""Own-data estimates against an independent general-purpose optimiser, and where there is nothing to estimate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from core.posterior.own import own_estimates, shrinkage
from tests.core.posterior.handmade import draws_around, market, panel_of

OPTIMISER = 1e-4
"""Both maximise one smooth function of float32 prices; BFGS stops at a gradient of 1e-5."""


def _poisson_by_bfgs(x, units, weight, offset):
    """Full Poisson regression with one level per row: the levels are not profiled out as in the code under test."""

    def loss(theta):
        eta = theta[1:, None] + theta[0] * x + offset
        value = (weight * (np.exp(eta) - units * eta)).sum()
        slope = weight * (np.exp(eta) - units)
        return value, np.concatenate([[(slope * x).sum()], slope.sum(axis=1)])

    start = np.concatenate([[0.0], np.log((units.sum(axis=1) + 0.5) / weight.sum(axis=1))])
    found = optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-5})
    eta = found.x[1:, None] + found.x[0] * x + offset
    design = np.concatenate([x[None], np.eye(len(x))[:, :, None] * np.ones_like(x)])
    information = np.einsum("irs,jrs,rs->ij", design, design, weight * np.exp(eta))
    pearson = (weight * (units - np.exp(eta)) ** 2 / np.exp(eta)).sum() / (weight.sum() - len(x) - 1)
    return found.x[0], np.sqrt(max(pearson, 1.0) * np.linalg.inv(information)[0, 0])


@pytest.mark.parametrize("stores", [1, 3])
def test_own_estimates_agree_with_a_full_regression(stores):
    panel, _, draws = market(products=6, stores=stores, seed=3)
    own = own_estimates(panel, draws)
    gamma = draws.others["time_effect"].mean(axis=0)
    for product in range(5):
        rows = np.asarray(panel.product_of_series) == product
        estimate, se = _poisson_by_bfgs(
            panel.log_price[rows].astype(float), panel.units[rows], panel.weight[rows],
            gamma[panel.category_of_product[product]],
        )  # fmt: skip
        assert own.estimate[product] == pytest.approx(estimate, abs=OPTIMISER)
        assert own.se[product] == pytest.approx(se, rel=1e-3)


def test_a_price_that_never_changes_has_no_own_estimate():
    panel, _, draws = market()
    own = own_estimates(panel, draws)
    assert np.isnan(own.estimate[-1]) and np.isnan(own.se[-1])
    assert np.isfinite(own.estimate[:-1]).all()


def test_chunks_of_products_change_nothing(monkeypatch):
    panel, _, draws = market(products=9, stores=2)
    whole = own_estimates(panel, draws)
    monkeypatch.setattr("core.posterior.own.CHUNK_CELLS", 70)
    np.testing.assert_allclose(own_estimates(panel, draws).estimate, whole.estimate, rtol=1e-6)


@pytest.mark.parametrize("worth_cutting", [0.0, 1.0])
def test_products_that_arrive_early_leave_the_rest_alone(monkeypatch, worth_cutting):
    panel, _, draws = market(products=30, stores=2, mean_units=1.5, seed=8)
    usual = own_estimates(panel, draws)
    monkeypatch.setattr("core.posterior.own.WORTH_CUTTING", worth_cutting)
    found = own_estimates(panel, draws)
    np.testing.assert_allclose(found.estimate, usual.estimate, rtol=1e-7)
    np.testing.assert_allclose(found.se, usual.se, rtol=1e-7)


@pytest.mark.parametrize("first", [-40.0, 0.0, 40.0])
def test_estimates_do_not_depend_on_where_the_search_begins(first):
    panel, _, draws = market(products=12, stores=2, seed=4)
    elsewhere = replace(draws, elasticity_product=np.full_like(draws.elasticity_product, first))
    np.testing.assert_allclose(
        own_estimates(panel, elsewhere).estimate, own_estimates(panel, draws).estimate, rtol=1e-7
    )


def test_sales_on_one_price_only_have_no_finite_estimate():
    x = np.array([[-0.1, 0.1, -0.1, 0.1]])
    units = np.array([[5.0, 0.0, 3.0, 0.0]])
    own = own_estimates(*_single(x, units))
    assert np.isnan(own.estimate[0])


def test_a_product_that_sold_nothing_has_no_own_estimate():
    own = own_estimates(*_single(np.array([[-0.1, 0.1, 0.0]]), np.zeros((1, 3))))
    assert np.isnan(own.estimate[0])


def test_a_price_that_only_changed_where_nothing_was_sold_says_nothing():
    x = np.array([[1e-8, -1e-8, 1e-8, -1e-8], [-0.3, 0.1, 0.1, 0.1]])
    own = own_estimates(*_single(x, np.array([[5.0, 4.0, 6.0, 3.0], [0.0, 0.0, 0.0, 0.0]])))
    assert np.isnan(own.estimate[0])


def test_a_search_that_begins_at_the_answer_stays_there(monkeypatch):
    monkeypatch.setattr("core.posterior.own.ITERATIONS", 1)
    panel, draws = _single(np.array([[-0.125, 0.125]]), np.array([[5.0, 5.0]]))
    at_answer = replace(draws, elasticity_product=np.zeros_like(draws.elasticity_product))
    assert own_estimates(panel, at_answer).estimate[0] == 0.0


def test_two_prices_give_the_log_ratio_and_no_standard_error():
    x = np.array([[-0.1, 0.1]])
    own = own_estimates(*_single(x, np.array([[30.0, 10.0]])))
    assert own.estimate[0] == pytest.approx(np.log(10 / 30) / 0.2, rel=1e-5)
    assert np.isnan(own.se[0])


def test_replicates_on_several_rows_count_as_one_series():
    x = np.array([[-0.2, 0.1, 0.1, 0.3, -0.3, 0.0]])
    units = np.array([[9.0, 4.0, 5.0, 2.0, 11.0, 6.0]])
    one = own_estimates(*_single(x, units))
    split = own_estimates(*_single(x.reshape(2, 3), units.reshape(2, 3), series_of_row=[0, 0]))
    assert split.estimate[0] == pytest.approx(one.estimate[0], rel=1e-6)
    assert split.se[0] == pytest.approx(one.se[0], rel=1e-6)


def test_covariate_effects_are_taken_off():
    random = np.random.default_rng(5)
    x = 0.2 * random.standard_normal((1, 400))
    x -= x.mean()
    promo = (x < -0.1).astype(float)[None]
    units = random.poisson(np.exp(4 - 2.0 * x + 0.7 * promo[0]))
    panel, draws = _single(x, units, covariates=promo)
    draws.others["covariate_category"] = np.full((10, 1, 1), 0.7)
    assert own_estimates(panel, draws).estimate[0] == pytest.approx(-2.0, abs=0.15)
    draws.others["covariate_category"] = np.zeros((10, 1, 1))
    assert own_estimates(panel, draws).estimate[0] < -2.5


def test_shrinkage_is_the_share_of_the_way_to_the_category():
    own = np.array([-4.0, -4.0, -4.0, np.nan, -2.01, -4.0])
    pooled = np.array([-4.0, -3.0, -2.0, -2.0, -2.0, -5.0])
    found = shrinkage(own, pooled, np.full(6, -2.0))
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0, 1.0, np.nan, 0.0])


def _single(x, units, covariates=None, series_of_row=None):
    series = 1 if series_of_row is not None else len(x)
    panel = panel_of(
        x, np.ones_like(x), units, np.zeros(series, int), np.zeros(1, int), np.zeros(series), 1, 0, covariates,
        series_of_row,
    )  # fmt: skip
    draws = draws_around(np.array([-2.0]), np.zeros(series), np.zeros((1, 0)), np.zeros(1, int), 1, n=10)
    return panel, draws
