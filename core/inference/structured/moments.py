"""Expectations of the log likelihood of a cell under a Gaussian for its log demand: score, curvature, value.

Poisson in closed form; Poisson with clipped log demand in closed form with normal tails; negative binomial by
Gauss-Hermite quadrature with 12 nodes (Opper & Archambeau 2009 for the use of these moments).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

NODES, MASSES = np.polynomial.hermite_e.hermegauss(12)
MASSES = MASSES / MASSES.sum()
LARGEST_LOG_DEMAND = 60.0
"""Log demand above which exp would leave float32; reached only on the way, by a step that is then damped."""
LEAST_CURVATURE = 1e-10
SMALLEST_SHARE = 1e-7
"""Of demand left after a change, as float32 can tell it from none."""


@dataclass(frozen=True)
class Moments:
    """Per cell, 0 where missing. With log p = linear part + rest, `rest` is E[rest]; the linear part is taken by sums.

    `score` is E[d log p / d eta], `curvature` E[-d^2 log p / d eta^2] > 0. `dispersion` (negative binomial) holds
    E[softplus], and what the first and second derivative by the concentration need.
    """

    score: Float[Array, "row slot"]
    curvature: Float[Array, "row slot"]
    rest: Float[Array, "row slot"]
    dispersion: tuple[Array, ...] = ()


def poisson(mean: Array, variance: Array, units: Array, weight: Array, log_phi: Any) -> Moments:
    """log p = y eta - exp(eta) - log y!"""
    demand = weight * jnp.exp(jnp.minimum(mean + 0.5 * variance, LARGEST_LOG_DEMAND))
    return Moments(weight * units - demand, demand, -demand)


def clipped_poisson(low: float, high: float) -> Any:
    """log p = y clip(eta) - exp(clip(eta)) - log y!; the whole of it is `rest`."""

    def moments(mean: Array, variance: Array, units: Array, weight: Array, log_phi: Any) -> Moments:
        sd = jnp.sqrt(jnp.maximum(variance, 1e-12))
        a, b = (low - mean) / sd, (high - mean) / sd
        cdf, pdf = jax.scipy.stats.norm.cdf, jax.scipy.stats.norm.pdf
        inside = cdf(b) - cdf(a)
        bounded = jnp.exp(jnp.clip(mean + 0.5 * variance, -LARGEST_LOG_DEMAND, LARGEST_LOG_DEMAND))
        demand = bounded * (cdf(b - sd) - cdf(a - sd))
        expected = mean * inside + sd * (pdf(a) - pdf(b)) + low * cdf(a) + high * (1 - cdf(b))
        ends = np.exp(low) * cdf(a) + np.exp(high) * (1 - cdf(b))
        edges = ((units - np.exp(low)) * pdf(a) - (units - np.exp(high)) * pdf(b)) / sd
        curvature = jnp.maximum(demand - edges, LEAST_CURVATURE)
        return Moments(
            weight * (units * inside - demand),
            weight * curvature,
            weight * (units * expected - demand - ends),
        )

    return moments


def negbin(mean: Array, variance: Array, units: Array, weight: Array, log_phi: Any) -> Moments:
    """log p = y (eta - log phi) - (y + phi) log(1 + exp(eta - log phi)) + terms of y and phi alone."""
    centre = mean - log_phi
    sd = jnp.sqrt(jnp.maximum(variance, 0.0))
    softplus = sigmoid = spread = jnp.zeros_like(mean)
    for node, mass in zip(NODES.tolist(), MASSES.tolist(), strict=True):
        z = centre + node * sd
        small = jnp.exp(-jnp.abs(z))
        lower = 1.0 / (1.0 + small)
        share = jnp.where(z > 0, lower, small * lower)
        softplus += mass * (jnp.maximum(z, 0.0) + jnp.log1p(small))
        sigmoid += mass * share
        spread += mass * small * lower * lower
    phi = jnp.exp(log_phi)
    total = units + phi
    first = sigmoid - units * (1 - sigmoid) / phi
    second = ((sigmoid - spread) + units * (1 - sigmoid - spread) / phi) / phi
    return Moments(
        weight * (units - total * sigmoid),
        weight * total * spread,
        -weight * total * softplus,
        (weight * softplus, weight * first, weight * second),
    )


def moments_of(likelihood: str, clip: tuple[float, float] | None) -> Any:
    """The moments function of a likelihood: (mean, variance, units, weight, log_phi) -> Moments."""
    if clip is not None:
        return clipped_poisson(*clip)
    return {"poisson": poisson, "negbin": negbin}[likelihood]


def log_ratio(likelihood: str, clip: tuple[float, float] | None) -> Any:
    """(mean, units, weight, score, curvature, log_phi) -> (change -> log p(mean + change) less its quadratic stand-in,
    up to a constant per cell, 0 where missing). What no change alters is taken once."""
    if clip is not None:
        return partial(_clipped_poisson_ratio, *clip)
    return {"poisson": _poisson_ratio, "negbin": _negbin_ratio}[likelihood]


Ratio = Callable[[Array], Array]


def _poisson_ratio(mean: Array, units: Array, weight: Array, score: Array, curvature: Array, log_phi: Any) -> Ratio:
    demand, pull, half = weight * jnp.exp(mean), weight * units - score, 0.5 * curvature
    return lambda change: change * (pull + half * change) - demand * jnp.expm1(change)


def _clipped_poisson_ratio(
    low: float, high: float, mean: Array, units: Array, weight: Array, score: Array, curvature: Array, log_phi: Any
) -> Ratio:
    begin = jnp.clip(mean, low, high)

    def cells(change: Array) -> Array:
        end = jnp.clip(mean + change, low, high)
        exact = units * (end - begin) - (jnp.exp(end) - jnp.exp(begin))
        return weight * exact - change * (score - 0.5 * curvature * change)

    return cells


def _negbin_ratio(mean: Array, units: Array, weight: Array, score: Array, curvature: Array, log_phi: Any) -> Ratio:
    """softplus(z + change) - softplus(z) is log1p(sigmoid(z) expm1(change)): one exponential, one logarithm a draw."""
    share = jax.nn.sigmoid(mean - log_phi)
    total, pull, half = weight * (units + jnp.exp(log_phi)), weight * units - score, 0.5 * curvature

    def cells(change: Array) -> Array:
        growth = jnp.maximum(share * jnp.expm1(change), -1 + SMALLEST_SHARE)
        return change * (pull + half * change) - total * jnp.log1p(growth)

    return cells
