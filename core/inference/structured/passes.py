"""The two passes of an iteration over a panel's blocks: `couple` (curvatures to the shared blocks' Schur complements)
and `move` (a step of the shared unknowns to new leaves, new variances of log demand and new curvatures).

Cells are float32, sums float64. Each pass holds one block's temporaries at a time and reads or writes one curvature
per cell, the only panel-sized state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
    of_series,
    pick,
    spread,
    to_product,
    to_series,
)
from core.inference.structured.reach import Reaches, reaches

LARGEST_STEP = 2.0
"""Most that one iteration moves a level or an elasticity: exp(2) is sevenfold demand."""


class Position(NamedTuple):
    """Leaves' means and the curvature they gave, with the data's scores there; all by block."""

    elasticity: Float[Any, "block product"]
    level: Float[Any, "block series"]
    curvature: Float[Any, "block row slot"]
    score_elasticity: Float[Any, "block product"]
    """Sum over a product's cells of E[d log p / d eta] x."""
    score_level: Float[Any, "block series"]


class Coupling(NamedTuple):
    """What `couple` finds: Schur complement to subtract and score per category, reduced scores of the leaves."""

    schur: Float[Any, "category column column"]
    score: Float[Any, "category column"]
    log_det: Float[Any, ""]
    rest_level: Float[Any, "block series"]
    rest_elasticity: Float[Any, "block product"]


class Shared(NamedTuple):
    """Sums over a category's cells by shared column, and over the market's leaves."""

    score: Float[Any, "category column"]
    time: Float[Any, "category period"]
    time_covariate: Float[Any, "category period covariate"]
    covariate: Float[Any, "category covariate covariate"]
    rest: Float[Any, "category"]
    """Expected log likelihood, its linear part apart."""
    dispersion: Float[Any, "category 3"]
    spread: Float[Any, "2"]
    """E[(value - parent)^2], summed over products and over series."""
    wobble: Float[Any, "2"]
    """Variance of those sums' terms, summed: what learning a scale does not know for lack of data."""
    change: Float[Any, ""]
    """Largest step of an elasticity or level, in its own sd."""


def couple(
    columns: Columns, blocks: Blocks, prior: Precisions, position: Position, shared: Float[Array, "category column"]
) -> Coupling:
    """Eliminate all leaves at the position's curvature; scores are of the whole log posterior given `shared`."""

    def body(carry: Any, at: tuple[Blocks, Position]) -> tuple[Any, Any]:
        block, here = at
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float64)
        own = shared[block.category]
        gap, distance = _gaps(columns, block, here.elasticity, here.level, own)
        series_pull = jnp.where(block.real_series, prior.series * distance, 0.0)
        product_pull = jnp.where(block.real_product, prior.product * gap, 0.0)
        rest_level = here.score_level - series_pull
        rest = here.score_elasticity - product_pull
        rest += to_product(block, series_pull * block.reference - leaves.xi * rest_level)
        score = -(rest_level @ leaves.phi) - rest @ leaves.ell
        score = score.at[columns.elasticity].add(jnp.sum(product_pull))
        if columns.has_level:
            score = score.at[columns.level].add(jnp.sum(series_pull))
        rows = jnp.concatenate([leaves.phi, leaves.ell])
        scaled = rows * jnp.concatenate([leaves.d, leaves.big_d])[:, None]
        schur, scores, log_det = carry
        log_det += jnp.sum(jnp.log(leaves.d)) + jnp.sum(jnp.log(leaves.big_d))
        carry = schur.at[block.category].add(scaled.T @ rows), scores.at[block.category].add(score), log_det
        return carry, (rest_level, rest)

    n = shared.shape[0]
    start = jnp.zeros((n, columns.size, columns.size)), jnp.zeros((n, columns.size)), jnp.zeros(())
    (schur, score, log_det), (rest_level, rest) = jax.lax.scan(body, start, (blocks, position))
    return Coupling(schur, score, log_det, rest_level, rest)


class Step(NamedTuple):
    """A step of the shared unknowns, damped already, and the leaves' own part of it, which is not."""

    shared: Float[Any, "category column"]
    """Where it leads."""
    change: Float[Any, "category column"]
    covariance: Float[Any, "category column column"]
    rest_level: Float[Any, "block series"]
    rest_elasticity: Float[Any, "block product"]
    damping: Any
    """Share of a full step; 1 undamped. Curvatures then move by that share of their logarithm."""


def move(
    columns: Columns, moments: Any, blocks: Blocks, prior: Precisions, position: Position, step: Step, log_phi: Any
) -> tuple[Position, Float[Array, "block product"], Shared]:
    """Take a step, and take the moments of every cell there. Returns the position, the variance of each elasticity
    and the sums over categories."""
    covariance = step.covariance.astype(jnp.float32)

    def body(carry: Shared, at: Any) -> tuple[Shared, Any]:
        block, here, rest_level, rest = at
        own = block.category
        leaves = eliminate(columns, block, here.curvature, prior, jnp.float32)
        rests = step.damping * rest_level, step.damping * rest
        elasticity, level = _advance(block, leaves, here, *rests, step.change[own])
        reach = reaches(columns, block, leaves, covariance[own])
        mean = predictor(columns, block, elasticity, level, step.shared[own])
        phi = log_phi[own].astype(jnp.float32)
        found = moments(mean, reach.variance, block.units, block.weight, phi)
        spread_of, wobble = _spreads(columns, block, elasticity, level, step.shared[own], reach)
        sums = _category_sums(columns, block, found)
        moved = _relative(block, elasticity - here.elasticity, level - here.level, reach)
        by_category = jax.tree.map(lambda total, part: total.at[own].add(part), carry[:6], sums)
        totals = carry.spread + spread_of, carry.wobble + wobble, jnp.maximum(carry.change, moved)
        there = Position(
            elasticity,
            level,
            _damped(here.curvature, found.curvature, step.damping),
            to_product(block, to_series(block, jnp.sum(found.score * block.x, axis=1, dtype=jnp.float64))),
            to_series(block, jnp.sum(found.score, axis=1, dtype=jnp.float64)),
        )
        return Shared._make((*by_category, *totals)), (there, reach.elasticity)

    start = _no_sums(columns, step.shared.shape[0])
    total, (there, variance) = jax.lax.scan(body, start, (blocks, position, step.rest_level, step.rest_elasticity))
    return there, variance, total


def predictor(
    columns: Columns, block: Blocks, elasticity: Array, level: Array, own: Float[Array, "column"]
) -> Float[Array, "row slot"]:
    """Mean log demand of a block's cells."""
    slope = of_series(block, of_product(block, elasticity)).astype(jnp.float32)
    mean = of_series(block, level).astype(jnp.float32)[:, None] + slope[:, None] * block.x
    own = own.astype(jnp.float32)
    if columns.periods:
        mean += pick(block, own[None, : columns.periods])
    for k in range(columns.covariates):
        mean += own[columns.first_covariate + k] * block.covariates[k]
    return mean


def _gaps(columns: Columns, block: Blocks, elasticity: Array, level: Array, own: Array) -> tuple[Array, Array]:
    """Distances of elasticities and levels from their parents."""
    parent = own[columns.level] if columns.has_level else 0.0
    return elasticity - own[columns.elasticity], level - block.reference * of_product(block, elasticity) - parent


def _advance(
    block: Blocks, leaves: Leaves, here: Position, rest_level: Array, rest: Array, change: Array
) -> tuple[Array, Array]:
    """Means after the step."""
    shared = change.astype(jnp.float32)
    turn = jnp.clip(rest / leaves.big_d - leaves.ell @ shared, -LARGEST_STEP, LARGEST_STEP)
    rise = rest_level / leaves.d - leaves.xi * of_product(block, turn) - leaves.phi @ shared
    return here.elasticity + turn, here.level + jnp.clip(rise, -LARGEST_STEP, LARGEST_STEP)


def _damped(before: Array, after: Array, damping: Array) -> Float[Array, "row slot"]:
    """Curvatures part of the way: full steps of thin data can swing to and fro for ever."""
    share = damping.astype(jnp.float32)
    return jnp.where(share < 1, after**share * jnp.where(after > 0, before, 1.0) ** (1 - share), after)


def _relative(block: Blocks, turn: Array, rise: Array, reach: Reaches) -> Float[Array, ""]:
    """Largest step, of elasticities in their own sd and of levels in that of their distance from the category's."""
    turns = jnp.where(block.real_product, jnp.abs(turn) / jnp.sqrt(reach.elasticity), 0.0)
    rises = jnp.where(block.real_series, jnp.abs(rise) / jnp.sqrt(reach.distance), 0.0)
    return jnp.maximum(jnp.max(turns), jnp.max(rises))


def _spreads(
    columns: Columns, block: Blocks, elasticity: Array, level: Array, own: Array, reach: Reaches
) -> tuple[Array, Array]:
    gap, distance = _gaps(columns, block, elasticity, level, own)
    totals, wobbles = [], []
    for mean, variance, real in (
        (gap, reach.gap, block.real_product),
        (distance, reach.distance, block.real_series),
    ):
        totals.append(jnp.sum(jnp.where(real, mean**2 + variance, 0.0)))
        wobbles.append(jnp.sum(jnp.where(real, 2 * variance**2 + 4 * variance * mean**2, 0.0)))
    return jnp.stack(totals), jnp.stack(wobbles)


def _category_sums(columns: Columns, block: Blocks, found: Any) -> tuple[Array, ...]:
    def total(values: Array) -> Array:
        return jnp.sum(values, dtype=jnp.float64)

    def by_period(values: Array) -> Array:
        if not columns.periods:
            return jnp.zeros((0,))
        return jnp.sum(spread(columns, block, values), axis=0, dtype=jnp.float64)

    z, k = block.covariates, range(columns.covariates)
    w = found.curvature
    score = jnp.concatenate(
        [
            by_period(found.score),
            jnp.zeros(columns.top - columns.covariates),
            *([jnp.stack([total(found.score * z[i]) for i in k])] if columns.covariates else []),
        ]
    )
    by_covariate = [by_period(w * z[i]) for i in k]
    products = [[total(w * z[i] * z[j]) for j in k] for i in k]
    dispersion = [total(part) for part in found.dispersion] or [jnp.zeros(())] * 3
    return (
        score,
        by_period(w),
        jnp.stack(by_covariate, axis=1) if columns.covariates else jnp.zeros((columns.periods, 0)),
        jnp.array(products) if columns.covariates else jnp.zeros((0, 0)),
        total(found.rest),
        jnp.stack(dispersion),
    )


def _no_sums(columns: Columns, n: int) -> Shared:
    t, k = columns.periods, columns.covariates
    shapes = ((n, columns.size), (n, t), (n, t, k), (n, k, k), (n,), (n, 3), (2,), (2,), ())
    return Shared._make(jnp.zeros(shape) for shape in shapes)
