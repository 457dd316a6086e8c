"""How far unknowns and log demand may lie from their means: variances under the approximate posterior, by block."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns
from core.inference.structured.eliminate import Leaves, of_product, of_series, pick


class Reaches(NamedTuple):
    """Variances under the approximate posterior, of one block."""

    variance: Float[Array, "row slot"]
    """Of log demand."""
    elasticity: Float[Array, "product"]
    gap: Float[Array, "product"]
    """Of an elasticity's distance from its category's."""
    distance: Float[Array, "series"]
    """Of a level's distance from its parent."""


def reaches(columns: Columns, block: Blocks, leaves: Leaves, covariance: Float[Array, "column column"]) -> Reaches:
    """Variances through the arrow: 1/d + (x - xi)^2 / D + c' Cov(u) c, with c = column - phi - (x - xi) ell."""
    e, big = columns.elasticity, leaves.big_d
    v_phi, v_ell = leaves.phi @ covariance, leaves.ell @ covariance
    of_phi = jnp.sum(v_phi * leaves.phi, axis=1)
    of_ell = jnp.sum(v_ell * leaves.ell, axis=1)
    both = jnp.sum(leaves.phi * of_product(block, v_ell), axis=1)
    elasticity = 1.0 / big + of_ell
    gap = elasticity + 2 * v_ell[:, e] + covariance[e, e]
    turn = leaves.xi + block.reference
    distance = 1.0 / leaves.d + turn**2 * of_product(block, elasticity) + of_phi - 2 * turn * both
    if columns.has_level:
        level = columns.level
        distance += covariance[level, level] - 2 * turn * of_product(block, v_ell)[:, level] + 2 * v_phi[:, level]
    return Reaches(
        _cell_variance(columns, block, leaves, covariance, v_phi, v_ell, of_phi, both, elasticity),
        elasticity, gap, distance,
    )  # fmt: skip


def _cell_variance(
    columns: Columns, block: Blocks, leaves: Leaves, covariance: Array,
    v_phi: Array, v_ell: Array, of_phi: Array, both: Array, elasticity: Array,
) -> Float[Array, "row slot"]:  # fmt: skip
    def by_row(values: Array) -> Array:
        return of_series(block, values.astype(jnp.float32))

    t = columns.periods
    x = block.x - by_row(leaves.xi)[:, None]
    on_product = of_series(block, of_product(block, v_ell))
    variance = by_row(1.0 / leaves.d + of_phi)[:, None]
    variance += x * (x * by_row(of_product(block, elasticity))[:, None] + 2 * by_row(both)[:, None])
    if t:
        own = jnp.diagonal(covariance)[None, :t]
        variance += pick(block, own - 2 * v_phi[:, :t]) - 2 * x * pick(block, on_product[:, :t])
    for k in range(columns.covariates):
        at = columns.first_covariate + k
        slope = -2 * by_row(v_phi[:, at])[:, None] - 2 * x * on_product[:, at : at + 1]
        if t:
            slope += 2 * pick(block, covariance[at : at + 1, :t])
        for j in range(columns.covariates):
            slope += covariance[at, columns.first_covariate + j] * block.covariates[j]
        variance += block.covariates[k] * slope
    return jnp.maximum(variance, 0.0)
