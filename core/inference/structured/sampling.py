"""Passes that draw: leaves given draws of the shared unknowns, and each product's importance ratio at such draws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns
from core.inference.structured.eliminate import (
    Leaves,
    Precisions,
    eliminate,
    of_product,
    to_product,
    to_series,
)
from core.inference.structured.passes import Position, predictor
from core.inference.structured.reach import reaches


def sample_leaves(
    columns: Columns, blocks: Blocks, prior: Precisions, position: Position,
    change: Float[Array, "draw category column"], numbers: Array, key: Array,
) -> tuple[Float[Array, "block product draw"], Float[Array, "block series draw"]]:  # fmt: skip
    """Elasticities and levels given distances `change` of the shared unknowns from their means. `numbers` counts the
    blocks over all devices, so that draws do not depend on how blocks are divided."""

    def body(_: None, at: Any) -> tuple[None, Any]:
        block, here, number = at
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float32)
        turn, rise = _leaf_draws(block, leaves, change[:, block.category], jax.random.fold_in(key, number))
        elasticity = here.elasticity.astype(jnp.float32)[:, None] + turn
        return None, (elasticity, here.level.astype(jnp.float32)[:, None] + rise)

    return jax.lax.scan(body, None, (blocks, position, numbers))[1]


def log_ratios(
    columns: Columns, moments: Any, ratio: Any, blocks: Blocks, prior: Precisions, position: Position,
    shared: Float[Array, "category column"], covariance: Float[Array, "category column column"], log_phi: Array,
    change: Float[Array, "draw category column"], numbers: Array, key: Array,
) -> tuple[Float[Array, "block product draw"], Float[Array, "block product draw"]]:  # fmt: skip
    """Log of exact over approximate likelihood of each product at draws, and its elasticity's distance from the mean.

    The approximate likelihood of a cell is the quadratic with the score and curvature of the fixed point: what the
    Gaussian posterior is made of.
    """

    def body(_: None, at: Any) -> tuple[None, Any]:
        block, here, number = at
        own = block.category
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float32)
        mean = predictor(columns, block, here.elasticity, here.level, shared[own])
        variance = reaches(columns, block, leaves, covariance[own].astype(jnp.float32)).variance
        phi = log_phi[own].astype(jnp.float32)
        found = moments(mean, variance, block.units, block.weight, phi)
        turns, rises = _leaf_draws(block, leaves, change[:, own], jax.random.fold_in(key, number))

        def one(_: None, draw: Any) -> tuple[None, Array]:
            turn, rise, moved = draw
            eta = predictor(columns, block, turn, rise, moved)
            cells = block.weight * ratio(mean, eta, block.units, found.score, found.curvature, phi)
            return None, to_product(block, to_series(block, jnp.sum(cells, axis=1)))

        ratios = jax.lax.scan(one, None, (turns.T, rises.T, change[:, own]))[1]
        return None, (ratios.T, turns)

    return jax.lax.scan(body, None, (blocks, position, numbers))[1]


def _leaf_draws(block: Blocks, leaves: Leaves, change: Float[Array, "draw column"], key: Array) -> tuple[Array, Array]:
    """Distances of elasticities and levels from their means, [leaf, draw]."""
    first, second = jax.random.split(key)
    shape = (leaves.d.shape[0], change.shape[0])
    noise = jax.random.normal(first, shape, jnp.float32) / jnp.sqrt(leaves.big_d).astype(jnp.float32)[:, None]
    turn = noise - leaves.ell @ change.T
    noise = jax.random.normal(second, shape, jnp.float32) / jnp.sqrt(leaves.d).astype(jnp.float32)[:, None]
    xi = leaves.xi.astype(jnp.float32)[:, None]
    return turn, noise - xi * of_product(block, turn) - leaves.phi @ change.T
