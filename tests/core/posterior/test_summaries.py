"""Summaries of draws against closed forms and NumPy."""

import numpy as np
import pytest
from scipy import stats

from core.posterior.summaries import summarise

MONTE_CARLO = 0.02
"""Four standard errors of a mean or quantile of 200,000 unit normal draws stay below it."""


@pytest.mark.parametrize("mass", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_summaries_of_normal_draws_are_the_normal_quantiles(mass):
    draws = np.random.default_rng(0).normal(-1.5, 1.0, (200_000, 1)).astype(np.float32)
    found = summarise(draws, mass)
    lower, upper = stats.norm(-1.5, 1.0).interval(mass)
    exact = (-1.5, 1.0, lower, -1.5, upper, stats.norm.cdf(0.5))
    for got, wanted in zip(vars(found).values(), exact, strict=True):
        assert got[0] == pytest.approx(wanted, abs=MONTE_CARLO)


@pytest.mark.parametrize("n_draws", [1, 2, 3, 100, 101])
def test_quantiles_interpolate_as_numpy_does(n_draws):
    draws = np.random.default_rng(1).normal(size=(n_draws, 7))
    found = summarise(draws, 0.9)
    wanted = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
    np.testing.assert_allclose([found.lower, found.median, found.upper], wanted, rtol=1e-12)


def test_column_blocks_change_nothing():
    draws = np.random.default_rng(2).normal(size=(50, 23)).astype(np.float32)
    whole, blocks = summarise(draws, 0.9), summarise(draws, 0.9, block_bytes=50 * 4 * 5)
    for one, other in zip(vars(whole).values(), vars(blocks).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_elasticity_of_exactly_minus_one_is_not_elastic():
    assert summarise(np.array([[-1.0], [-1.5]]), 0.9).prob_elastic[0] == 0.5


def test_draws_are_left_as_they_were():
    draws = np.array([[3.0], [1.0], [2.0]])
    summarise(draws, 0.5)
    assert draws[:, 0].tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("mass", [0.0, 1.0, -0.1])
def test_a_mass_that_is_no_probability_is_refused(mass):
    with pytest.raises(ValueError, match="mass"):
        summarise(np.zeros((3, 1)), mass)


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match="no draws"):
        summarise(np.zeros((0, 4)), 0.9)
