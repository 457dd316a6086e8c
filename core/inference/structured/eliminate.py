"""Eliminate a block's series into its products, and products into what the category shares: the arrow's leaves.

With w the curvature of each cell, the precision of the posterior is prior + A' diag(w) A. Given the category's shared
unknowns u, series s and product p have

    level[s]      | elasticity[p], u:  precision d[s],  slope -xi[s] on the elasticity, -phi[s] on u
    elasticity[p] | u:                 precision D[p],  slope -ell[p] on u

so the variance of any log demand follows from these and Cov(u) alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns


class Precisions(NamedTuple):
    """Prior precisions of products around their category and of series levels around theirs."""

    product: Any
    series: Any


class Leaves(NamedTuple):
    """Conditional precisions and slopes of one block's series and products; see the module."""

    d: Float[Array, "series"]
    xi: Float[Array, "series"]
    phi: Float[Array, "series column"]
    big_d: Float[Array, "product"]
    ell: Float[Array, "product column"]


def eliminate(columns: Columns, block: Blocks, w: Float[Array, "row slot"], prior: Precisions, dtype: Any) -> Leaves:
    """Leaves of one block (arrays without the block axis). Sums run in float64; slopes come in `dtype`."""
    wx = w * block.x
    product_prior = jnp.where(block.real_product, prior.product, 0.0)
    series_prior = jnp.where(block.real_series, prior.series, 0.0)
    reference = block.reference.astype(jnp.float64)
    w0, w1 = (to_series(block, jnp.sum(v, axis=1, dtype=jnp.float64)) for v in (w, wx))
    w2 = to_series(block, jnp.sum(wx * block.x, axis=1, dtype=jnp.float64))
    d = jnp.where(block.real_series, series_prior + w0, 1.0)
    cross = w1 - series_prior * reference
    xi = cross / d
    big_d = product_prior + to_product(block, w2 + series_prior * reference**2 - cross * xi)
    big_d = jnp.where(block.real_product, big_d, 1.0)
    f = _row(columns, block, w, jnp.zeros_like(d), -series_prior, dtype)
    g = _row(columns, block, wx, jnp.zeros_like(d), jnp.zeros_like(d), dtype)
    g = to_product(block, g - xi.astype(dtype)[:, None] * f)
    g = g.at[:, columns.elasticity].add(-product_prior.astype(dtype))
    return Leaves(d, xi, f / d.astype(dtype)[:, None], big_d, g / big_d.astype(dtype)[:, None])


def _row(columns: Columns, block: Blocks, w: Array, elasticity: Array, level: Array, dtype: Any) -> Array:
    """Coupling of each series to the shared columns: weights by period, priors, weights times covariates."""
    parts = []
    if columns.periods:
        parts.append(spread(columns, block, w).astype(dtype))
    parts.append(elasticity.astype(dtype)[:, None])
    if columns.has_level:
        parts.append(level.astype(dtype)[:, None])
    for k in range(columns.covariates):
        sums = to_series(block, jnp.sum(w * block.covariates[k], axis=1, dtype=jnp.float64))
        parts.append(sums.astype(dtype)[:, None])
    return jnp.concatenate(parts, axis=1)


def to_series(block: Blocks, values: Array) -> Array:
    """Sum values of rows over each series."""
    return values if block.rows_are_series else jax.ops.segment_sum(values, block.series, values.shape[0])


def to_product(block: Blocks, values: Array) -> Array:
    """Sum values of series over each product."""
    return values if block.series_are_products else jax.ops.segment_sum(values, block.product, values.shape[0])


def of_series(block: Blocks, values: Array) -> Array:
    """The value of each row's series."""
    return values if block.rows_are_series else values[block.series]


def of_product(block: Blocks, values: Array) -> Array:
    """The value of each series' product."""
    return values if block.series_are_products else values[block.product]


def spread(columns: Columns, block: Blocks, values: Float[Array, "row slot"]) -> Float[Array, "row period"]:
    """Cells by period: themselves in the dense layout."""
    if block.period is None:
        return values
    rows = jnp.arange(values.shape[0])[:, None]
    return jnp.zeros((values.shape[0], columns.periods), values.dtype).at[rows, block.period].add(values)


def pick(block: Blocks, table: Float[Array, "row period"]) -> Float[Array, "row slot"]:
    """A table by period at each cell: itself in the dense layout. One row of table serves all rows."""
    if block.period is None:
        return table
    rows = jnp.arange(block.period.shape[0])[:, None] if table.shape[0] > 1 else 0
    return table[rows, block.period]
