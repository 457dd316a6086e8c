"""Iterate to the best Gaussian posterior: one Newton step of all unknowns and one quasi-Newton step of the scales each.

An iteration couples the leaves (`passes.couple`), solves the head (`upper.solve`), moves (`passes.move`), takes the
bound there, and steps the scales. It has converged when no elasticity or level moved by more than the tolerance in its
own sd, and no scale by more than the tolerance or a fiftieth of its own posterior sd.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from core.inference.hosts import fetched
from core.inference.structured import scales as scaling
from core.inference.structured.blas import small_algebra
from core.inference.structured.blocks import cut
from core.inference.structured.columns import Columns, columns_of
from core.inference.structured.kernels import Kernels
from core.inference.structured.passes import Coupling, Position, Precisions, Shared, Step
from core.inference.structured.scales import Histogram, QuasiNewton, Scales, Slope, Spread
from core.inference.structured.start import start
from core.inference.structured.state import State, next_damping
from core.inference.structured.totals import count_members, unit_totals
from core.inference.structured.upper import Head, HeadPrior, Means, Message, solve
from core.model.demand import ARTICLE_CLIP, log_mean_units
from core.model.plan import ModelPlan
from core.panel import Panel

LARGEST_STEP = 2.0
"""Most that one iteration moves a shared unknown."""
SCALES_FROM = 2
"""Iterations of Newton steps alone before the scales start to move."""
CAUGHT_UP = 1.0
"""Largest step of an elasticity, in its sd, at which the slope in the scales is worth remembering."""
SCALE_SHARE = 0.02
"""Step of a scale, in its own posterior sd, that counts as none."""


class Solver:
    """The iteration for one market and plan. Call within `jax.enable_x64(True)`."""

    def __init__(self, plan: ModelPlan, panel: Panel, devices: Any, tolerance: float = 1e-3):
        self.plan, self.tolerance = plan, tolerance
        self.columns = columns_of(panel, plan)
        article = plan.preset == "article"
        self.blocks, self.places = cut(panel, uncentred=article, multiple=len(devices))
        self.n_categories = panel.n_categories
        self.histogram = Histogram.of(panel)
        self.totals = unit_totals(self.columns, self.blocks, self.n_categories, self.histogram)
        self.linear = not article
        self.counts = count_members(self.blocks, self.n_categories)
        self.market_prior = _market_prior(self.columns, plan, panel)
        clip = ARTICLE_CLIP if article else None
        self.kernels = Kernels(self.columns, plan.likelihood, clip, devices, self.blocks)

    @property
    def n_unknowns(self) -> int:
        columns = self.columns
        return int(self.counts.sum()) + self.n_categories * (columns.own_time + columns.top) + columns.market

    def first_scales(self, level_spread: float = 1.0) -> Scales:
        """Scales to start from; which of them are learned."""
        return scaling.first_scales(self.columns, self.plan, self.n_categories, level_spread)

    def grid_names(self) -> tuple[str, ...]:
        """Learned scales that only categories see."""
        return tuple(name for name in self.first_scales().learned if name in scaling.TOP_SCALES)

    def start(self) -> State:
        """The first state: means that match sums of units, moments taken there."""
        plan, columns, n = self.plan, self.columns, self.n_categories
        phi = float(np.exp(plan.priors.concentration_mean)) if plan.likelihood == "negbin" else None
        first = start(columns, self.blocks, n, plan.priors.elasticity_mean, phi)
        scales = self.first_scales(first.spread)
        nothing = np.zeros(first.level.shape)
        position = Position(first.elasticity, first.level, first.curvature, nothing, nothing)
        position = self.kernels.put(position, divided=True)
        rests = self.kernels.put((nothing, nothing), divided=True)
        covariance = np.zeros((n, columns.size, columns.size))
        step = Step(first.shared, np.zeros_like(first.shared), covariance, rests[0], rests[1], 1.0)
        position, variance, sums = self.kernels.move(self.precisions(scales), position, step, self.log_phi(scales))
        return State(
            position, variance, Means(first.shared, first.market), _host(sums), scales, QuasiNewton(), covariance,
            np.zeros((columns.market, columns.market)),
        )  # fmt: skip

    def iterate(self, state: State, learn: bool = True) -> State:
        """One step of everything; `learn=False` leaves the scales where they are. Numbers that are no longer finite
        show in the bound."""
        with small_algebra(self.columns.size):
            coupling, head = self.head(state)
            state, slope = self._move(state, coupling, head)
        return self._learn(state, slope) if learn else replace(state, scale_change=0.0)

    def head(self, state: State) -> tuple[Coupling, Head]:
        """Eliminate the leaves at the state's curvature and solve for the shared unknowns."""
        prior = self.precisions(state.scales)
        coupling = self.kernels.couple(prior, state.position, state.means.shared)
        message = self.message(state, coupling)
        return coupling, solve(self.columns, message, self.head_prior(state.scales), state.means)

    def message(self, state: State, coupling: Coupling) -> Message:
        """What cells and leaves say about each category's shared unknowns."""
        columns, sums, prior = self.columns, state.sums, self.precisions(state.scales)
        precision = -np.asarray(coupling.schur)
        t, c = np.arange(columns.periods), slice(columns.first_covariate, None)
        precision[:, t, t] += sums.time
        precision[:, : columns.periods, c] += sums.time_covariate
        precision[:, c, : columns.periods] += sums.time_covariate.transpose(0, 2, 1)
        precision[:, c, c] += sums.covariate
        precision[:, columns.elasticity, columns.elasticity] += prior.product * self.counts[0]
        if columns.has_level:
            precision[:, columns.level, columns.level] += prior.series * self.counts[1]
        return Message(precision, sums.score + np.asarray(coupling.score))

    def precisions(self, scales: Scales) -> Precisions:
        return Precisions(scales.precision(scaling.PRODUCT), scales.precision(scaling.SERIES))

    def head_prior(self, scales: Scales) -> HeadPrior:
        time = scales.precision(scaling.TIME) if self.columns.periods else 0.0
        top = np.array([scales.precision(name) for name in self.columns.scale_of_top])
        return HeadPrior(time, top, *self.market_prior)

    def log_phi(self, scales: Scales) -> np.ndarray:
        return scales.log_phi if scales.log_phi.size else np.zeros(self.n_categories)

    def _move(self, state: State, coupling: Coupling, head: Head) -> tuple[State, Slope]:
        change = np.clip(state.damping * head.step.shared, -LARGEST_STEP, LARGEST_STEP)
        market = np.clip(state.damping * head.step.market, -LARGEST_STEP, LARGEST_STEP)
        means = Means(state.means.shared + change, state.means.market + market)
        covariance = head.covariance(self.columns)
        step = Step(means.shared, change, covariance, coupling.rest_level, coupling.rest_elasticity, state.damping)
        position, variance, sums = self.kernels.move(
            self.precisions(state.scales), state.position, step, self.log_phi(state.scales)
        )
        sums = _host(sums)
        moved = replace(
            state, position=position, variance=variance, means=means, sums=sums, covariance=covariance,
            market_covariance=head.market_covariance, iteration=state.iteration + 1, change=float(sums.change),
        )  # fmt: skip
        spreads = self.spreads(moved, head)
        bound = self._bound(moved, spreads, float(coupling.log_det) + head.log_det)
        damping, stalled = next_damping(state, moved.change)
        slope = scaling.slope_of(state.scales, self.plan, spreads, self.histogram, np.asarray(sums.dispersion))
        return replace(moved, bound=bound, damping=damping, stalled=stalled, information=slope.observed), slope

    def _learn(self, state: State, slope: Slope) -> State:
        vector = state.scales.vector()
        if not vector.size:
            return replace(state, scale_change=0.0)
        if state.iteration <= SCALES_FROM:
            return state
        step, newton = state.newton.step(vector, slope, state.bound, state.change < CAUGHT_UP and state.damping == 1)
        none = np.maximum(self.tolerance, SCALE_SHARE / np.sqrt(state.information))
        return replace(
            state, scales=state.scales.with_vector(vector + step), newton=newton,
            scale_change=float(np.max(np.abs(step) / none)),
        )  # fmt: skip

    def spreads(self, state: State, head: Head) -> dict[str, Spread]:
        """E[sum of squares] and its variance for what each scale governs."""
        columns, sums = self.columns, state.sums
        found = {
            name: Spread(int(self.counts[i].sum()), float(sums.spread[i]), float(sums.wobble[i]))
            for i, name in enumerate((scaling.PRODUCT, scaling.SERIES))
        }
        if columns.periods:
            found[scaling.TIME] = self._time_spread(state)
        parent = state.means.market[: columns.top]
        for i, name in enumerate(columns.scale_of_top):
            gap = state.means.shared[:, columns.periods + i] - parent[i]
            part = _spread_of(gap, head.distances(columns, i))
            found[name] = found[name].plus(part) if name in found else part
        return found

    def _time_spread(self, state: State) -> Spread:
        t = self.columns.periods
        if self.columns.shared_time:
            return _spread_of(state.means.shared[0, :t], state.covariance[0, :t, :t])
        parts = [
            _spread_of(mean[:t], covariance[:t, :t])
            for mean, covariance in zip(state.means.shared, state.covariance, strict=True)
        ]
        return reduce(Spread.plus, parts)

    def _bound(self, state: State, spreads: dict[str, Spread], log_det: float) -> float:
        """Evidence lower bound of q and the scales, plus the log prior of what is learned."""
        value = float(np.sum(state.sums.rest)) - self.totals.log_factorial + self._linear_part(state)
        for name, spread in spreads.items():
            value -= spread.count * (state.scales.log_scale[name] + 0.5 * np.log(2 * np.pi))
            value -= 0.5 * spread.squares * state.scales.precision(name)
        mean, precision = self.market_prior
        at = state.means.market[: mean.size] - mean
        own = at**2 + np.diagonal(state.market_covariance)[: mean.size]
        value += float(np.sum(0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * own))
        value += 0.5 * self.n_unknowns * (1 + np.log(2 * np.pi)) - 0.5 * log_det
        return value + scaling.log_prior(state.scales, self.plan)

    def _linear_part(self, state: State) -> float:
        totals, log_phi = self.totals, state.scales.log_phi
        value = 0.0
        if self.linear:
            elasticity, level = fetched((state.position.elasticity, state.position.level))
            value += totals.linear_part(elasticity, level, state.means.shared)
        if log_phi.size:
            value += float(np.sum(self.histogram.terms(log_phi, 0) - log_phi * self.histogram.total))
        return value


def _host(sums: Shared) -> Shared:
    return Shared(*(np.asarray(part) for part in sums))


def _spread_of(mean: np.ndarray, covariance: np.ndarray) -> Spread:
    """Of sum(value^2) for value ~ N(mean, covariance)."""
    squares = float(mean @ mean + np.trace(covariance))
    wobble = float(2 * np.sum(covariance**2) + 4 * mean @ covariance @ mean)
    return Spread(mean.size, squares, wobble)


def _market_prior(columns: Columns, plan: ModelPlan, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    priors = plan.priors
    mean, sd = [priors.elasticity_mean], [priors.elasticity_sd]
    if columns.has_level:
        mean.append(float(log_mean_units(panel)))
        sd.append(priors.level_sd)
    mean += [0.0] * columns.covariates
    sd += [priors.covariate_sd] * columns.covariates
    return np.array(mean), np.array(sd) ** -2.0
