"""Expectations of a cell's log likelihood, against SciPy's densities under fine quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

from core.inference.structured.moments import log_ratio, moments_of

NODES, MASSES = np.polynomial.hermite_e.hermegauss(80)
MASSES = MASSES / MASSES.sum()
EXACT = 1e-5
"""Relative, of float64 moments against 80 nodes; 12 nodes are good to this at the variances of a posterior."""
MEANS, VARIANCES, UNITS = (
    v.ravel() for v in np.meshgrid([-2.0, 0.5, 3.0], [1e-4, 0.05, 0.4], [0.0, 1.0, 9.0], indexing="ij")
)
PHI = 3.0


def log_density(likelihood: str, eta: np.ndarray, units: np.ndarray, phi: float = PHI) -> np.ndarray:
    if likelihood == "poisson":
        return stats.poisson.logpmf(units, np.exp(eta))
    return stats.nbinom.logpmf(units, phi, phi / (phi + np.exp(eta)))


def expected(likelihood: str, mean: np.ndarray, phi: float = PHI) -> np.ndarray:
    eta = mean[:, None] + np.sqrt(VARIANCES)[:, None] * NODES
    return log_density(likelihood, eta, UNITS[:, None], phi) @ MASSES


def found(likelihood: str, phi: float = PHI):
    with jax.enable_x64(True):
        weight = jnp.ones(MEANS.size)
        return moments_of(likelihood, None)(
            jnp.asarray(MEANS), jnp.asarray(VARIANCES), jnp.asarray(UNITS), weight, jnp.log(phi)
        )


@pytest.mark.parametrize("likelihood", ["poisson", "negbin"])
def test_score_and_curvature_are_derivatives_of_the_expected_log_likelihood(likelihood: str):
    h = 1e-3
    above, at, below = (expected(likelihood, MEANS + d) for d in (h, 0.0, -h))
    moments = found(likelihood)
    np.testing.assert_allclose(moments.score, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moments.curvature, -(above - 2 * at + below) / h**2, rtol=1e-4, atol=1e-6)


def test_concentration_terms_are_derivatives_of_the_expected_log_likelihood():
    h = 1e-3
    softplus, first, second = found("negbin").dispersion
    at = {d: expected("negbin", MEANS, PHI + d) for d in (-h, 0.0, h)}
    slope = digamma(UNITS + PHI) - digamma(PHI) - softplus + first
    bend = polygamma(1, UNITS + PHI) - polygamma(1, PHI) + second
    np.testing.assert_allclose(slope, (at[h] - at[-h]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(bend, (at[h] - 2 * at[0.0] + at[-h]) / h**2, atol=1e-5)


def test_poisson_value_is_exact():
    moments = found("poisson")
    value = (
        UNITS * MEANS
        + np.asarray(moments.rest)
        - np.array([np.log(max(1, np.prod(np.arange(1, y + 1)))) for y in UNITS])
    )
    np.testing.assert_allclose(value, expected("poisson", MEANS), rtol=EXACT, atol=1e-8)


def test_wide_clip_changes_nothing():
    with jax.enable_x64(True):
        arguments = jnp.asarray(MEANS), jnp.asarray(VARIANCES), jnp.asarray(UNITS), jnp.ones(MEANS.size), 0.0
        clipped, plain = moments_of("poisson", (-30.0, 30.0))(*arguments), moments_of("poisson", None)(*arguments)
    np.testing.assert_allclose(clipped.score, plain.score, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clipped.curvature, plain.curvature, rtol=1e-9)


def test_clipped_score_is_the_slope_of_the_clipped_expectation():
    low, high, h = -1.0, 2.0, 1e-4

    def value(shift: float) -> np.ndarray:
        grid = np.linspace(-8, 8, 200_001)
        mass = np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
        return np.array(
            [
                np.sum(mass * (y * eta - np.exp(eta)))
                for m, v, y in zip(MEANS, VARIANCES, UNITS, strict=True)
                for eta in [np.clip(m + shift + np.sqrt(v) * grid, low, high)]
            ]
        )

    with jax.enable_x64(True):
        moments = moments_of("poisson", (low, high))(
            jnp.asarray(MEANS), jnp.asarray(VARIANCES), jnp.asarray(UNITS), jnp.ones(MEANS.size), 0.0
        )
    np.testing.assert_allclose(moments.score, (value(h) - value(-h)) / (2 * h), atol=2e-4)
    np.testing.assert_allclose(moments.rest, value(0.0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("likelihood", "clip"), [("poisson", None), ("negbin", None), ("poisson", (-1.0, 1.5))])
def test_log_ratio_is_exact_less_quadratic_likelihood(likelihood: str, clip: tuple[float, float] | None):
    change = np.linspace(-0.5, 0.7, MEANS.size)
    weight = np.resize([1.0, 0.0, 0.5], MEANS.size)
    score, curvature = weight * 0.3 * UNITS, weight * MEANS**2
    with jax.enable_x64(True):
        cell = (jnp.asarray(v) for v in (MEANS, UNITS, weight, score, curvature))
        value = log_ratio(likelihood, clip)(*cell, jnp.log(PHI))(jnp.asarray(change))
    before, after = (at if clip is None else np.clip(at, *clip) for at in (MEANS, MEANS + change))
    exact = log_density(likelihood, after, UNITS) - log_density(likelihood, before, UNITS)
    quadratic = score * change - 0.5 * curvature * change**2
    np.testing.assert_allclose(value, weight * exact - quadratic, rtol=1e-8, atol=1e-10)


def test_a_negative_binomial_ratio_in_float32_stays_finite_where_hardly_any_demand_is_left():
    """There sigmoid x expm1 rounds to -1, whose log1p is -inf."""
    mean, units, change = (jnp.float32(v) for v in (30.0, 2.0, -25.0))
    ratio = log_ratio("negbin", None)(mean, units, jnp.float32(1), jnp.float32(0), jnp.float32(0), jnp.float32(1.0))
    softplus = np.logaddexp(0, [30.0 - 1.0, 30.0 - 25.0 - 1.0])
    exact = 2.0 * -25.0 - (2.0 + np.e) * (softplus[1] - softplus[0])
    assert np.isfinite(ratio(change))
    assert ratio(change) > exact - 50
