"""Integrate the posterior over the learned scales: a mixture of Gaussians instead of one at the best scales.

Scales of products, series and periods that are not sharp get points along their axes (the star of Rue, Martino and
Chopin 2009, section 6.5, without its corners), each iterated to its own fixed point. Its weight is its bound, corrected
by what each product's Gaussian falls short of. Scales of categories are seen through the categories' messages alone, so
a grid over them costs small dense algebra only. Concentrations stay at their best values: what they add is of second
order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from core.inference.structured.blas import small_algebra
from core.inference.structured.columns import Columns
from core.inference.structured.importance import evidence_correction
from core.inference.structured.mixture import Component, Mixture, single, with_scales
from core.inference.structured.scales import TOP_SCALES, Scales, log_prior
from core.inference.structured.solver import Solver
from core.inference.structured.state import State
from core.inference.structured.upper import Means, Message, log_evidence, without_time

SHARP = 0.04
"""Posterior sd of a log scale below which its doubt changes no sd by more than its square, 0.2 %."""
WIDEST = 1.0
"""Posterior sd of a log scale that points count on at most; beyond, its prior takes over."""
RADIUS = 1.1
"""Distance of points from the centre, over the square root of their number of axes."""
LINE = (-2.4, -1.6, -0.8, 0.8, 1.6, 2.4)
"""Points where only one scale is not sharp, in its sd: an even grid."""
POINT_TOLERANCE = 0.02
"""Largest step of an elasticity, in its own sd, at which a point has converged."""
POINT_ITERATIONS = 8
GRID_SIZE = {0: 1, 1: 15, 2: 9, 3: 7}
"""Values per category scale, by how many there are."""
GRID_REACH = 3.0
MOST_CELLS = 100_000_000
"""Curvatures that all points may hold together, in cells."""


def integrate(solver: Solver, centre: State, should_stop: Callable[[], bool] = lambda: False) -> Mixture:
    """Points and grids around a converged state; itself where no scale is learned or the fit was told to stop."""
    learned = centre.scales.learned
    alone = replace(single(centre), bound=centre.bound + gaussian_volume(centre))
    if not learned or should_stop():
        return alone
    with small_algebra(solver.columns.size):
        return _around(solver, centre) or alone


def _around(solver: Solver, centre: State) -> Mixture | None:
    """The mixture of what points have a Gaussian; with the centre as the only one, no axes; None where not even it."""
    learned = centre.scales.learned
    sd = dict(zip(learned, np.minimum(centre.information[: len(learned)] ** -0.5, WIDEST), strict=True))
    axes = [name for name in learned if name not in TOP_SCALES and sd[name] > SHARP]
    left_out: tuple[str, ...] = ()
    if axes and (1 + max(2 * len(axes), len(LINE))) * solver.blocks.x.size > MOST_CELLS:
        left_out, axes = tuple(axes), []
    names = tuple(name for name in learned if name in TOP_SCALES)
    grid, log_cell = _grid(centre.scales, names, sd)
    points = _points(solver, centre, {axis: sd[axis] for axis in axes}, names, grid)
    if axes and len(points) < 2:
        axes, points = [], _points(solver, centre, {}, names, grid)
    if not points:
        return None
    raw = [log for _, log in points]
    total = logsumexp(np.concatenate(raw))
    volume = sum(np.log(sd[name]) for name in axes) + 0.5 * len(axes) * np.log(2 * np.pi) + log_cell
    done = {*axes, *names}
    rest = [i for i, name in enumerate(learned) if name not in done]
    rest += range(len(learned), centre.information.size)
    volume += 0.5 * float(np.sum(np.log(2 * np.pi / centre.information[rest])))
    parts = tuple(Component(state, log - total) for state, log in points)
    return Mixture(parts, names, grid, float(total + volume), sd, left_out)


def gaussian_volume(state: State) -> float:
    """What integrating the learned logarithms adds to the bound, in the Gaussian approximation; 0 where none is."""
    return 0.5 * float(np.sum(np.log(2 * np.pi / state.information))) if state.information.size else 0.0


def _rule(n_axes: int) -> tuple[list[np.ndarray], list[float]]:
    """Points in sds along the axes and the log weight of each beside the density, for a standard normal's volume 1."""
    if n_axes == 0:
        return [np.zeros(0)], [0.0]
    if n_axes == 1:
        step = LINE[1] - LINE[0]
        return [np.array([z]) for z in (0.0, *LINE)], [float(np.log(step / np.sqrt(2 * np.pi)))] * (1 + len(LINE))
    reach = RADIUS * np.sqrt(n_axes)
    points = [np.zeros(n_axes)] + [sign * reach * axis for axis in np.eye(n_axes) for sign in (1.0, -1.0)]
    outer = 0.5 * reach**2 - np.log(2 * n_axes * RADIUS**2)
    return points, [float(np.log(1 - RADIUS**-2)), *[float(outer)] * (2 * n_axes)]


_Point = tuple[State, Float[np.ndarray, "grid"]]
"""A state and the log weight of every grid value there, not yet normalised."""


def _points(
    solver: Solver, centre: State, axes: dict[str, float], names: tuple[str, ...], grid: np.ndarray
) -> list[_Point]:
    """The centre first, then the points along `axes` (sd by name) that have a Gaussian; the centre alone for no axes.

    Far out a fixed point may not exist. Without it the mixture is coarser; the converged centre is not lost over it.
    """
    found = []
    for offset, rule in zip(*_rule(len(axes)), strict=True):
        try:
            state = (
                _at(solver, centre, list(axes), offset * np.array(list(axes.values()))) if np.any(offset) else centre
            )
            log = rule + _profile(solver, state, names, grid)
            if axes:
                log = log + evidence_correction(solver, state)
        except np.linalg.LinAlgError:
            log = np.full(1, np.nan)
        if np.isfinite(log).any():
            found.append((state, np.where(np.isfinite(log), log, -np.inf)))
        elif not found:
            # A rule without its middle is none.
            break
    return found


def _at(solver: Solver, centre: State, axes: list[str], offset: np.ndarray) -> State:
    """The fixed point with some scales moved, found from the centre's."""
    log_scale = centre.scales.log_scale | {
        name: centre.scales.log_scale[name] + move for name, move in zip(axes, offset, strict=True)
    }
    state = replace(centre, scales=replace(centre.scales, log_scale=log_scale), damping=1.0, bound=-np.inf)
    for _ in range(POINT_ITERATIONS):
        state = solver.iterate(state, learn=False)
        if state.change < POINT_TOLERANCE:
            break
    return state


def _grid(scales: Scales, names: tuple[str, ...], sd: dict[str, float]) -> tuple[np.ndarray, float]:
    """Log scales of all combinations, and the log volume of one cell of the grid."""
    n = GRID_SIZE[len(names)]
    lines, log_cell = [], 0.0
    for name in names:
        line = scales.log_scale[name] + np.linspace(-GRID_REACH, GRID_REACH, n) * sd[name]
        lines.append(line)
        log_cell += float(np.log(line[1] - line[0]))
    return np.array(list(product(*lines))).reshape(-1, len(names)), log_cell


def _profile(solver: Solver, state: State, names: tuple[str, ...], grid: np.ndarray) -> Float[np.ndarray, "grid"]:
    """Bound plus log prior at every grid value, messages held."""
    if not names:
        return np.array([state.bound])
    columns, message, means = reduced(solver, state)
    own, values = _evidence(solver, state.scales, columns, message, means), []
    for row in grid:
        scales = with_scales(state.scales, names, row)
        there = _evidence(solver, scales, columns, message, means)
        prior = log_prior(scales, solver.plan) - log_prior(state.scales, solver.plan)
        values.append(state.bound + there - own + prior)
    return np.array(values)


def reduced(solver: Solver, state: State) -> tuple[Columns, Message, Means]:
    """Columns, message and means of the top unknowns (and shared time effects) alone."""
    coupling = solver.kernels.couple(solver.precisions(state.scales), state.position, state.means.shared)
    message = solver.message(state, coupling)
    return without_time(solver.columns, message, solver.head_prior(state.scales), state.means)


def _evidence(solver: Solver, scales: Scales, columns: Columns, message: Message, means: Means) -> float:
    return log_evidence(columns, message, solver.head_prior(scales), means)
