"""Passes that draw: leaves given draws of the shared unknowns, and each product's importance ratio at such draws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, UInt32

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns
from core.inference.structured.eliminate import (
    Leaves,
    Precisions,
    eliminate,
    of_product,
    of_series,
    pick,
    to_product,
    to_series,
)
from core.inference.structured.passes import Position, predictor
from core.inference.structured.reach import reaches

KEYS = "threefry2x32"
"""Kind of random keys: draws are the same whatever JAX's default is."""


def sample_leaves(
    columns: Columns, blocks: Blocks, prior: Precisions, position: Position,
    change: Float[Array, "draw category column"], keys: UInt32[Array, "block 2"],
) -> tuple[Float[Array, "block draw product"], Float[Array, "block draw series"]]:  # fmt: skip
    """Distances of elasticities and levels from their means, given distances `change` of the shared unknowns and the
    two words of each block's random key."""

    def body(_: None, at: Any) -> tuple[None, Any]:
        block, here, words = at
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float32)
        return None, _leaf_draws(block, leaves, change[:, block.category], jax.random.wrap_key_data(words, impl=KEYS))

    return jax.lax.scan(body, None, (blocks, position, keys))[1]


def log_ratios(
    columns: Columns, moments: Any, ratio: Any, blocks: Blocks, prior: Precisions, position: Position,
    shared: Float[Array, "category column"], covariance: Float[Array, "category column column"], log_phi: Array,
    change: Float[Array, "draw category column"], turns: Float[Array, "block draw product"],
    rises: Float[Array, "block draw series"],
) -> Float[Array, "block draw product"]:  # fmt: skip
    """Log of exact over approximate likelihood of each product at draws: distances `change`, and `sample_leaves` of it.

    The approximate likelihood of a cell is the quadratic with the score and curvature of the fixed point: what the
    Gaussian posterior is made of.
    """

    def body(_: None, at: Any) -> tuple[None, Any]:
        block, here, turn, rise = at
        own = block.category
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float32)
        mean = predictor(columns, block, here.elasticity, here.level, shared[own])
        variance = reaches(columns, block, leaves, covariance[own].astype(jnp.float32)).variance
        phi = log_phi[own].astype(jnp.float32)
        found = moments(mean, variance, block.units, block.weight, phi)
        cell = (mean, block.units, block.weight, found.score, found.curvature)
        cells = ratio(*(values[:, :, None] for values in cell), phi)(_moved(columns, block, turn, rise, change[:, own]))
        return None, to_product(block, to_series(block, jnp.sum(cells, axis=1))).T

    return jax.lax.scan(body, None, (blocks, position, turns, rises))[1]


def _moved(
    columns: Columns, block: Blocks, turn: Float[Array, "draw product"], rise: Float[Array, "draw series"],
    change: Float[Array, "draw column"],
) -> Float[Array, "row slot draw"]:  # fmt: skip
    """Distance of every cell's log demand from its mean. Draws come last: sums over a row's cells then run on whole
    vectors, and XLA keeps no array of this size."""
    slope = of_series(block, of_product(block, turn.T))
    eta = of_series(block, rise.T)[:, None, :] + slope[:, None, :] * block.x[:, :, None]
    if columns.periods:
        eta += pick(block, change.T[None, : columns.periods])
    for k in range(columns.covariates):
        eta += change[:, columns.first_covariate + k] * block.covariates[k][:, :, None]
    return eta


def _leaf_draws(block: Blocks, leaves: Leaves, change: Float[Array, "draw column"], key: Array) -> tuple[Array, Array]:
    """Distances of elasticities and levels from their means, [draw, leaf]."""
    noise = jax.random.normal(key, (2, change.shape[0], leaves.d.shape[0]), jnp.float32)
    sds = jax.lax.rsqrt(jnp.stack([leaves.big_d, leaves.d])).astype(jnp.float32)
    own = noise * sds[:, None, :]
    turn = own[0] - change @ leaves.ell.T
    rise = own[1] - change @ leaves.phi.T
    return turn, rise - leaves.xi.astype(jnp.float32) * of_product(block, turn.T).T
