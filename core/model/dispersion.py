"""Turn each category's concentration into the log gammas of the negative binomial, over a histogram of units."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from core.panel import UnitHistogram

STIRLING_SHIFT = 8
"""Arguments of log gamma are raised by this much before Stirling's series, whose error is then below 1e-9."""


def dispersion_term(log_concentration: Float[Array, "category"], histogram: UnitHistogram) -> Float[Array, ""]:
    """Sum over cells of lgamma(y + phi) - lgamma(phi) - y log phi, over the histogram of y.

    By Stirling's series at phi + 8, arranged so that nothing large cancels as phi grows: the limit is 0.
    """
    phi = jnp.exp(log_concentration)[histogram.category]
    y, z = histogram.units, phi + STIRLING_SHIFT
    ratio = y / z
    term = z * _relative_entropy(ratio) - 0.5 * jnp.log1p(ratio) + y * jnp.log1p(STIRLING_SHIFT / phi)
    term += _stirling_tail(z + y) - _stirling_tail(z)
    term -= sum(jnp.log1p(y / (phi + k)) for k in range(STIRLING_SHIFT))
    return jnp.sum(histogram.cells * term)


def _relative_entropy(r: Array) -> Array:
    """(1 + r) log(1 + r) - r, by its series where r is small and the difference would cancel."""
    series = r * r * (1 / 2 - r * (1 / 6 - r * (1 / 12 - r / 20)))
    return jnp.where(r < 0.05, series, (1 + r) * jnp.log1p(r) - r)


def _stirling_tail(z: Array) -> Array:
    return (1 / 12 - (1 / 360 - 1 / 1260 / z**2) / z**2) / z
