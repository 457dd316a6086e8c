"""Draw from the mixture of Gaussians: scales, market, categories, then products given them. Exact for the mixture,
correlations included."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from core.inference.fit import Draws
from core.inference.structured.blas import small_algebra
from core.inference.structured.columns import Columns
from core.inference.structured.mixture import Component, Mixture, with_scales
from core.inference.structured.scales import Scales
from core.inference.structured.solver import Solver
from core.inference.structured.upper import Head, Message, inverse_and_log_det, solve, without_time
from core.model import sites

CHUNKS = (64, 256)
"""Draws that one pass over the panel makes; the larger size for all it fits."""


class SharedDraws(NamedTuple):
    """Distances from the component's means, and the log scale of every grid scale, draw by draw."""

    shared: Float[np.ndarray, "draw category column"]
    market: Float[np.ndarray, "draw market"]
    grid: Float[np.ndarray, "draw name"]


def draw_mixture(solver: Solver, mixture: Mixture, n_draws: int, seed: int) -> Draws:
    """Joint draws of everything. Draws of one component are spread at random over the draw axis."""
    random = np.random.default_rng(seed)
    which = _choose(random, mixture, n_draws)
    parts = []
    for number, component in enumerate(mixture.components):
        chosen = which[1][which[0] == number]
        if chosen.size:
            parts.append(_of_component(solver, mixture, component, chosen, random, number, seed))
    order = random.permutation(n_draws)
    joined = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    return Draws(
        elasticity_global=joined.pop(sites.GLOBAL), elasticity_category=joined.pop(sites.CATEGORY),
        elasticity_product=joined.pop(sites.PRODUCT), level_series=joined.pop(sites.LEVEL_SERIES), others=joined,
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
    random: np.random.Generator, number: int, seed: int,
) -> dict[str, np.ndarray]:  # fmt: skip
    state, columns = component.state, solver.columns
    shared = draw_shared(solver, mixture, component, chosen, random)
    key = jax.random.fold_in(jax.random.key(seed), number)
    elasticity, level = _draw_leaves(solver, component, shared.shared, key)
    top = shared.market[:, : columns.top] + state.means.market[: columns.top]
    own = shared.shared + state.means.shared
    found = {
        sites.GLOBAL: top[:, 0],
        sites.CATEGORY: own[:, :, columns.elasticity],
        sites.PRODUCT: elasticity,
        sites.LEVEL_SERIES: level,
    }
    if columns.has_level:
        found |= {sites.LEVEL_GLOBAL: top[:, 1], sites.LEVEL_CATEGORY: own[:, :, columns.level]}
    if columns.covariates:
        found[sites.COVARIATE_GLOBAL] = top[:, columns.top - columns.covariates :]
        found[sites.COVARIATE_CATEGORY] = own[:, :, columns.first_covariate :]
    if columns.periods:
        time = own[:, :, : columns.periods]
        found[sites.TIME] = time[:, 0] if columns.shared_time else time
    found |= _draw_learned(solver, mixture, state.scales, shared.grid, state.information, random)
    return {name: np.asarray(values, np.float32) for name, values in found.items()}


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


def _draw_leaves(solver: Solver, component: Component, change: np.ndarray, key: Any) -> tuple[np.ndarray, np.ndarray]:
    state, n = component.state, change.shape[0]
    size = CHUNKS[1] if n > 2 * CHUNKS[0] else CHUNKS[0]
    prior = solver.precisions(state.scales)
    elasticity = np.empty((n, solver.places.product.size), np.float32)
    level = np.empty((n, solver.places.series.size), np.float32)
    for low in range(0, n, size):
        part = np.zeros((size, *change.shape[1:]), np.float32)
        high = min(low + size, n)
        part[: high - low] = change[low:high]
        slopes, levels = solver.kernels.sample(prior, state.position, part, jax.random.fold_in(key, low))
        elasticity[low:high] = solver.places.gather(slopes, "product").T[: high - low]
        level[low:high] = solver.places.gather(levels, "series").T[: high - low]
    return elasticity, level


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
