"""Predictive checks on markets that the model fits, and on one it does not."""

import numpy as np
import pytest

from core.posterior.checks import predictive_checks
from core.posterior.posterior import posterior_from_draws
from tests.core.posterior.handmade import draws_around, labels_of, panel_of

COVERAGE = 0.015
"""Four standard errors of a share of 20,000 cells, and the few per mille that 200 replicates leave."""


def _market(noise: float, seed: int = 0, likelihood_of_draws: str = "poisson"):
    """100 products x 200 periods without time effects; `noise` is the sd of each cell's own log rate, squared."""
    random = np.random.default_rng(seed)
    products, periods = 100, 200
    beta = np.full(products, -2.0)
    alpha = np.full(products, np.log(3.0))
    x = 0.2 * random.standard_normal((products, periods))
    x -= x.mean(axis=1, keepdims=True)
    rate = np.exp(alpha[:, None] + beta[:, None] * x)
    units = random.poisson(rate * (random.gamma(1 / noise, noise, rate.shape) if noise else 1.0))
    category = np.zeros(products, int)
    panel = panel_of(x, np.ones_like(x), units, np.arange(products), category, np.zeros(products), 1, 0)
    draws = draws_around(beta, alpha, np.zeros((1, 0)), category, 1, n=400, sd=0.01)
    if likelihood_of_draws == "negbin":
        draws.others["concentration_category"] = np.full((400, 1), np.log(1 / noise), np.float32)
    return posterior_from_draws(draws, panel, labels_of(panel)), panel


@pytest.mark.parametrize(("noise", "likelihood"), [(0.0, "poisson"), (0.5, "negbin")])
def test_a_right_model_covers_what_it_promises(noise, likelihood):
    posterior, panel = _market(noise, likelihood_of_draws=likelihood)
    found = predictive_checks(posterior, panel)
    assert found.n_cells == 20_000
    for mass, share in found.coverage.items():
        assert share == pytest.approx(mass, abs=COVERAGE)
    assert found.zeros.lower <= found.zeros.observed <= found.zeros.upper
    assert found.dispersion.observed == pytest.approx(found.dispersion.replicated, rel=0.1)


def test_poisson_on_noisier_sales_is_told_to_use_a_negative_binomial():
    posterior, panel = _market(0.5)
    found = predictive_checks(posterior, panel)
    assert found.coverage[0.9] < 0.8
    assert not found.zeros.lower <= found.zeros.observed <= found.zeros.upper
    assert found.dispersion.observed > 1.5 * found.dispersion.upper
    assert any("negative binomial" in sentence for sentence in found.sentences)


def test_large_markets_are_sampled_and_the_seed_decides():
    posterior, panel = _market(0.0)
    first = predictive_checks(posterior, panel, seed=3, cells=2_000, replicates=20)
    again = predictive_checks(posterior, panel, seed=3, cells=2_000, replicates=20)
    assert first == again
    assert (first.n_cells, first.n_replicates) == (2_000, 20)


def test_the_mass_of_the_posterior_is_among_the_coverages():
    posterior, panel = _market(0.0)
    assert {0.5, 0.8, 0.9, 0.95} <= set(predictive_checks(posterior, panel, cells=1_000, replicates=20).coverage)
