"""The demand curve of a product against its formula, and the cells beside it."""

import numpy as np
import pytest

from core.posterior.curve import MARGIN, demand_curve, observations_of, product_code
from core.posterior.posterior import posterior_from_draws
from tests.core.posterior.handmade import draws_around, labels_of, market, panel_of

FLOAT32 = 1e-4
"""Prices and effects are kept as float32."""


def test_observations_are_the_cells_with_prices_as_given():
    panel, labels, _ = market(products=4, stores=2)
    found = observations_of(panel, labels, 1)
    rows = [2, 3]
    observed = panel.weight[rows] > 0
    price = np.exp(panel.log_price[rows] + panel.reference[rows][:, None])
    np.testing.assert_allclose(found.price, price[observed], rtol=FLOAT32)
    np.testing.assert_array_equal(found.units, panel.units[rows][observed])
    assert set(found.store) == {0, 1}
    np.testing.assert_array_equal(found.period, np.nonzero(observed)[1])


@pytest.mark.parametrize("stores", [1, 3])
def test_the_curve_averages_expected_units_over_observed_cells(stores):
    panel, labels, draws = market(products=6, stores=stores)
    posterior = posterior_from_draws(draws, panel, labels)
    product, point = 2, 17
    curve = demand_curve(posterior, panel, product)
    log_price = np.log(curve.price[point])
    expected = np.zeros(posterior.n_draws)
    cells = 0
    for row in np.flatnonzero(np.asarray(panel.product_of_series) == product):
        for slot in np.flatnonzero(panel.weight[row]):
            gamma = draws.others["time_effect"][:, panel.category_of_product[product], slot]
            beta = draws.elasticity_product[:, product]
            expected += np.exp(draws.level_series[:, row] + beta * (log_price - panel.reference[row]) + gamma)
            cells += 1
    expected /= cells
    assert curve.mean[point] == pytest.approx(expected.mean(), rel=FLOAT32)
    assert curve.lower[point] == pytest.approx(np.quantile(expected, 0.05), rel=FLOAT32)
    assert curve.upper[point] == pytest.approx(np.quantile(expected, 0.95), rel=FLOAT32)


def test_without_effects_the_curve_is_a_power_of_the_price():
    x = np.array([[-0.2, 0.0, 0.2]])
    reference = np.log([3.0])
    panel = panel_of(x, np.ones_like(x), np.full((1, 3), 5.0), [0], [0], reference, 1, 0)
    draws = draws_around(np.array([-2.0]), np.log([5.0]), np.zeros((1, 0)), np.array([0]), 1, n=50, sd=0.0)
    draws.level_series[:] = np.log(5.0)
    posterior = posterior_from_draws(draws, panel, labels_of(panel))
    curve = demand_curve(posterior, panel, 0, mass=0.5, points=9)
    np.testing.assert_allclose(curve.mean, 5.0 * (curve.price / 3.0) ** -2.0, rtol=FLOAT32)
    np.testing.assert_allclose(curve.upper, curve.lower, rtol=FLOAT32)
    assert curve.price[0] == pytest.approx(3.0 * np.exp(-0.2 - MARGIN), rel=FLOAT32)


def test_a_wider_mass_gives_a_wider_band():
    panel, labels, draws = market()
    posterior = posterior_from_draws(draws, panel, labels)
    narrow, wide = demand_curve(posterior, panel, 0, mass=0.5), demand_curve(posterior, panel, 0, mass=0.99)
    assert (wide.lower < narrow.lower).all() and (wide.upper > narrow.upper).all()


def test_the_curve_does_not_depend_on_how_many_draws_are_worked_on_at_once(monkeypatch: pytest.MonkeyPatch):
    panel, labels, draws = market(stores=2)
    posterior = posterior_from_draws(draws, panel, labels)
    whole = demand_curve(posterior, panel, 1)
    monkeypatch.setattr("core.posterior.curve.MOST_AT_ONCE", 500)
    pieces = demand_curve(posterior, panel, 1)
    np.testing.assert_allclose(pieces.upper, whole.upper, rtol=1e-12)


def test_a_product_is_found_by_its_name_only():
    _, labels, _ = market()
    assert product_code(labels, "00003") == 3
    with pytest.raises(KeyError, match="no product '3'"):
        product_code(labels, "3")
