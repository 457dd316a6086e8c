"""The packed layout gives the same answers as the dense one, market and encoder included."""

import numpy as np
import pytest

from core.data.markets import panel_of_market
from core.posterior.checks import predictive_checks
from core.posterior.curve import demand_curve, observations_of
from core.posterior.own import own_estimates
from core.posterior.posterior import posterior_from_draws
from core.posterior.recovery import recovery
from core.simulation import MarketPlan, simulate
from tests.core.posterior.handmade import draws_around

SAME = 1e-5
"""Both layouts hold the same float32 cells; only the order of float64 sums differs."""


@pytest.fixture(scope="module")
def both():
    market = simulate(MarketPlan(products=20, periods=60, categories=3, stores=2, filled=0.4, likelihood="poisson"))
    truth = market.truth
    draws = draws_around(
        truth.elasticity_product, truth.level_series, truth.time_effect, market.category_of_product, 3, sd=0.05
    )
    return [(*panel_of_market(market, layout), draws) for layout in ("dense", "packed")], truth


def test_own_estimates_do_not_depend_on_the_layout(both):
    dense, packed = (own_estimates(panel, draws) for panel, _, draws in both[0])
    np.testing.assert_allclose(packed.estimate, dense.estimate, atol=SAME)
    np.testing.assert_allclose(packed.se, dense.se, rtol=SAME)


def test_curves_and_cells_do_not_depend_on_the_layout(both):
    (dense, labels, draws), (packed, packed_labels, _) = both[0]
    curves, cells = [], []
    for panel, names in ((dense, labels), (packed, packed_labels)):
        curves.append(demand_curve(posterior_from_draws(draws, panel, names), panel, 7))
        cells.append(observations_of(panel, names, 7))
    np.testing.assert_allclose(curves[1].mean, curves[0].mean, rtol=SAME)
    np.testing.assert_array_equal(cells[1].period, cells[0].period)
    np.testing.assert_allclose(cells[1].price, cells[0].price, rtol=SAME)
    assert packed.n_slots < dense.n_slots


@pytest.mark.parametrize("layout", [0, 1])
def test_true_values_pass_the_predictive_checks(both, layout):
    panel, labels, draws = both[0][layout]
    found = predictive_checks(posterior_from_draws(draws, panel, labels), panel)
    assert found.coverage[0.9] == pytest.approx(0.9, abs=0.03)
    assert found.dispersion.observed == pytest.approx(1.0, abs=0.15)


def test_own_estimates_scatter_around_the_truth_as_their_standard_errors_say(both):
    panel, labels, draws = both[0][0]
    posterior = posterior_from_draws(draws, panel, labels)
    z = (posterior.own.estimate - both[1].elasticity_product) / posterior.own.se
    assert 0.6 < np.nanstd(z) < 1.5
    assert recovery(posterior, "product", both[1].elasticity_product).rmse < 0.15
