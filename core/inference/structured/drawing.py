"""Draw from the mixture of Gaussians: scales, market, categories, then products given them. Exact for the mixture,
correlations included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from core.inference.fit import Draws
from core.inference.hosts import fetched
from core.inference.structured.blas import small_algebra
from core.inference.structured.columns import Columns
from core.inference.structured.mixture import Component, Mixture, with_scales
from core.inference.structured.scales import Scales
from core.inference.structured.solver import Solver
from core.inference.structured.state import State
from core.inference.structured.upper import Head, Message, inverse_and_log_det, solve, without_time
from core.model import sites

SHARED, LEAVES, CHECKED, CHECKED_LEAVES = 1, 2, 3, 4
"""First words of the seeds of random numbers, by what they are for: no two uses share a stream."""
CHUNKS = (64, 200)
"""Draws that one pass over the panel makes; the larger size for all it fits."""


class SharedDraws(NamedTuple):
    """Distances from the component's means, and the log scale of every grid scale, draw by draw."""

    shared: Float[np.ndarray, "draw category column"]
    market: Float[np.ndarray, "draw market"]
    grid: Float[np.ndarray, "draw name"]


def draw_mixture(solver: Solver, mixture: Mixture, n_draws: int, seed: int) -> Draws:
    """Joint draws of everything. Draws of one component are spread at random over the draw axis."""
    random = np.random.default_rng([SHARED, seed])
    which, value = _choose(random, mixture, n_draws)
    row = random.permutation(n_draws)
    found: dict[str, np.ndarray] = {}
    for number, component in enumerate(mixture.components):
        mine = np.flatnonzero(which == number)
        if mine.size:
            for at, drawn in _of_component(solver, mixture, component, value[mine], random, [LEAVES, seed, number]):
                for name, values in drawn.items():
                    if name not in found:
                        found[name] = np.empty((n_draws, *values.shape[1:]), np.float32)
                    found[name][row[mine[at]]] = values
    return Draws(
        elasticity_global=found.pop(sites.GLOBAL), elasticity_category=found.pop(sites.CATEGORY),
        elasticity_product=found.pop(sites.PRODUCT), level_series=found.pop(sites.LEVEL_SERIES), others=found,
    )  # fmt: skip


def _choose(random: np.random.Generator, mixture: Mixture, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Component and grid value of each draw: a systematic sample of their weights."""
    weights = np.exp(np.concatenate([part.log_weight for part in mixture.components]))
    edges = np.cumsum(weights) / weights.sum()
    at = np.minimum(np.searchsorted(edges, (np.arange(n) + random.random()) / n), weights.size - 1)
    size = mixture.components[0].log_weight.size
    return at // size, at % size


def _of_component(
    solver: Solver, mixture: Mixture, component: Component, chosen: np.ndarray,
    random: np.random.Generator, seeds: Sequence[int],
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:  # fmt: skip
    """One component's draws by name, the shared unknowns first, then products and series a pass at a time."""
    state, columns = component.state, solver.columns
    shared = draw_shared(solver, mixture, component, chosen, random)
    top = shared.market[:, : columns.top] + state.means.market[: columns.top]
    own = shared.shared + state.means.shared
    found = {sites.GLOBAL: top[:, 0], sites.CATEGORY: own[:, :, columns.elasticity]}
    if columns.has_level:
        found |= {sites.LEVEL_GLOBAL: top[:, 1], sites.LEVEL_CATEGORY: own[:, :, columns.level]}
    if columns.covariates:
        found[sites.COVARIATE_GLOBAL] = top[:, columns.top - columns.covariates :]
        found[sites.COVARIATE_CATEGORY] = own[:, :, columns.first_covariate :]
    if columns.periods:
        time = own[:, :, : columns.periods]
        found[sites.TIME] = time[:, 0] if columns.shared_time else time
    yield slice(None), found | _draw_learned(solver, mixture, state.scales, shared.grid, state.information, random)
    yield from _draw_leaves(solver, state, shared.shared, seeds)


def draw_shared(
    solver: Solver, mixture: Mixture, component: Component, chosen: np.ndarray, random: np.random.Generator
) -> SharedDraws:
    """Draws of all shared unknowns; `chosen` is the grid value of each draw, which must come sorted."""
    with small_algebra(solver.columns.size):
        return _draw_shared(solver, mixture, component, chosen, random)


def _draw_shared(
    solver: Solver, mixture: Mixture, component: Component, chosen: np.ndarray, random: np.random.Generator
) -> SharedDraws:
    state, columns = component.state, solver.columns
    prior = solver.head_prior(state.scales)
    coupling = solver.kernels.couple(solver.precisions(state.scales), state.position, state.means.shared)
    message = solver.message(state, coupling)
    small, top_message, means = without_time(columns, message, prior, state.means)
    shared, market = [], []
    own_prior = solve(small, top_message, prior, means).step
    for value in np.unique(chosen):
        n = int(np.sum(chosen == value))
        scales = with_scales(state.scales, mixture.names, mixture.grid[value])
        head = solve(small, top_message, solver.head_prior(scales), means)
        drawn = _draw_head(small, head, random, n)
        shared.append(drawn[0] - own_prior.shared)
        market.append(drawn[1] - own_prior.market)
    top = np.concatenate(shared)
    if columns.own_time:
        top = _with_time(columns, message, prior.time, top, random)
    return SharedDraws(top, np.concatenate(market), mixture.grid[np.sort(chosen)])


def _draw_head(columns: Columns, head: Head, random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    factor = np.linalg.cholesky(head.market_covariance)
    noise = random.standard_normal((n, factor.shape[0])) @ factor.T
    own_factor = np.linalg.cholesky(head.own_inverse)
    own = np.einsum("cij,ncj->nci", own_factor, random.standard_normal((n, *head.slope.shape[:2])))
    own -= np.einsum("cim,nm->nci", head.slope, noise)
    if columns.shared_time:
        time = np.broadcast_to(noise[:, None, columns.top :], (n, own.shape[1], columns.periods))
        step = head.step.shared + np.concatenate([time, own], axis=2)
    else:
        step = head.step.shared + own
    return step, head.step.market + noise


def _with_time(
    columns: Columns, message: Message, precision: float, top: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Add each category's own time effects, given its top unknowns."""
    t = columns.own_time
    inverse, _ = inverse_and_log_det(message.precision[:, :t, :t] + precision * np.eye(t))
    slope = inverse @ message.precision[:, :t, t:]
    factor = np.linalg.cholesky(inverse)
    drawn = np.empty((*top.shape[:2], columns.size))
    drawn[:, :, t:] = top
    for c in range(top.shape[1]):
        noise = random.standard_normal((top.shape[0], t)) @ factor[c].T
        drawn[:, c, :t] = noise - top[:, c] @ slope[c].T
    return drawn


def _draw_leaves(
    solver: Solver, state: State, change: np.ndarray, seeds: Sequence[int]
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
    """Elasticities and levels given distances of the shared unknowns from their means, a pass at a time."""
    n = change.shape[0]
    size = CHUNKS[1] if n > 2 * CHUNKS[0] else CHUNKS[0]
    elasticity = solver.places.gather(state.position.elasticity, "product").astype(np.float32)
    level = solver.places.gather(state.position.level, "series").astype(np.float32)
    for low in range(0, n, size):
        at = slice(low, min(low + size, n))
        part = np.zeros((size, *change.shape[1:]), np.float32)
        part[: at.stop - low] = change[at]
        turns, rises = leaf_draws(solver, state, part, [*seeds, low])
        yield (
            at,
            {
                sites.PRODUCT: in_order(solver, turns, "product")[: at.stop - low] + elasticity,
                sites.LEVEL_SERIES: in_order(solver, rises, "series")[: at.stop - low] + level,
            },
        )


def leaf_draws(solver: Solver, state: State, change: np.ndarray, seeds: Sequence[int]) -> tuple[Any, Any]:
    """Distances of elasticities and levels from their means by block, on the devices: see `sampling.sample_leaves`."""
    return solver.kernels.sample(solver.precisions(state.scales), state.position, change, seeds)


def in_order(solver: Solver, values: Any, level: str) -> Float[np.ndarray, "draw leaf"]:
    """Values [block, draw, height] of a level in the panel's order; 0 for fillers."""
    held = fetched(values)
    by_draw = np.ascontiguousarray(held.transpose(1, 0, 2)).reshape(held.shape[1], -1)
    at = getattr(solver.places, level)
    found = np.take(by_draw, np.maximum(at, 0), axis=1)
    found[:, at < 0] = 0
    return found


def _draw_learned(
    solver: Solver, mixture: Mixture, scales: Scales, grid: np.ndarray, information: np.ndarray,
    random: np.random.Generator,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Scales: those on the grid as chosen, the others at the component's; concentrations by their own curvature."""
    n, found = grid.shape[0], {}
    for name in scales.learned:
        at = mixture.names.index(name) if name in mixture.names else None
        found[name] = np.exp(grid[:, at] if at is not None else np.full(n, scales.log_scale[name]))
    if scales.log_phi.size and information.size:
        sd = information[len(scales.learned) :] ** -0.5
        found[sites.CONCENTRATION_GLOBAL] = scales.log_phi_market + sd[0] * random.standard_normal(n)
        noise = random.standard_normal((n, scales.log_phi.size))
        found[sites.CONCENTRATION_CATEGORY] = scales.log_phi + sd[1:] * noise
    return found
