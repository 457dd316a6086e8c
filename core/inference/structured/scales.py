"""The hierarchy's scales and the counts' concentrations: their priors, the bound's slope in them, and the step.

All are handled as logarithms, with the priors of the demand model and the Jacobian of the logarithm throughout, so that
the mode, the grid and the bound refer to one density. At a fixed Gaussian q the bound is, in log tau,
-n log tau - s / (2 tau^2), with s = E_q[sum of squared distances from the parent]; its curvature less Var_q of its
slope is the observed information (Louis 1982), which makes the steps Newton's where plain EM would crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln, polygamma

from core.inference.structured.columns import Columns
from core.model import sites
from core.model.plan import ModelPlan
from core.panel import Panel

PRODUCT = sites.SITES[sites.PRODUCT].scale
SERIES = sites.SITES[sites.LEVEL_SERIES].scale
CATEGORY = sites.SITES[sites.CATEGORY].scale
LEVEL = sites.SITES[sites.LEVEL_CATEGORY].scale
TIME = sites.SITES[sites.TIME].scale
COVARIATE = sites.SITES[sites.COVARIATE_CATEGORY].scale
TOP_SCALES = (CATEGORY, LEVEL, COVARIATE)
"""Scales of unknowns whose parent is the market's: seen only through the categories."""
LEAST_INFORMATION = 0.01
"""Share of the complete-data information that a step counts on at least."""
LONGEST_STEP = 0.7
"""Most that one step changes a logarithm."""
SHORTEST_RADIUS = 0.02
SAME_BOUND, SAME_SHARE = 0.05, 2e-7
"""Fall of the bound, in nats and as a share of it, that is rounding and not a bad step."""
SHORTEST_PAIR = 0.03
"""Squared length in sd from which on a secant says more than noise."""
LEAST_SECANT = 0.1
"""Curvature along a secant, as a share of the information, from which on it is believed."""
LONGEST_STRETCH = 4.0
"""Length of a corrected step over the plain one, up to which secants are believed."""
MEMORY = 6
"""Secant pairs that the quasi-Newton steps remember."""


@dataclass(frozen=True)
class Scales:
    """Logarithms of the scales by name, and of the concentrations (empty for Poisson)."""

    log_scale: dict[str, float]
    log_phi_market: float
    log_phi: Float[np.ndarray, "category"]
    learned: tuple[str, ...]

    def precision(self, name: str) -> float:
        return float(np.exp(-2 * self.log_scale[name]))

    def vector(self) -> np.ndarray:
        """What is learned: scales, then the market's and the categories' concentrations."""
        market = [self.log_phi_market] if self.log_phi.size else []
        return np.array([*(self.log_scale[name] for name in self.learned), *market, *self.log_phi])

    def with_vector(self, vector: np.ndarray) -> Scales:
        n = len(self.learned)
        log_scale = self.log_scale | {name: float(vector[i]) for i, name in enumerate(self.learned)}
        if not self.log_phi.size:
            return replace(self, log_scale=log_scale)
        return replace(self, log_scale=log_scale, log_phi_market=float(vector[n]), log_phi=vector[n + 1 :].copy())


def scale_names(columns: Columns) -> tuple[str, ...]:
    """The scales that a model has, leaves first."""
    time = (TIME,) if columns.periods else ()
    return (PRODUCT, SERIES, *time, *dict.fromkeys(columns.scale_of_top))


def first_scales(columns: Columns, plan: ModelPlan, categories: int, level_spread: float) -> Scales:
    """Where the iteration starts: the plan's own numbers where they are fixed."""
    names = scale_names(columns)
    fixed = plan.scales == "fixed"
    start = {name: getattr(plan.priors, name) for name in names}
    if not fixed:
        start |= {PRODUCT: min(0.5, start[PRODUCT]), SERIES: float(np.clip(level_spread, 0.1, 5.0))}
        start |= {name: 0.5 * start[name] for name in names if name not in (PRODUCT, SERIES)}
    phi = np.full(categories if plan.likelihood == "negbin" else 0, plan.priors.concentration_mean)
    return Scales(
        {name: float(np.log(value)) for name, value in start.items()},
        plan.priors.concentration_mean, phi, () if fixed else names,
    )  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """Of the unknowns that one scale governs: how many, E[sum of squares], and the variance of that sum under q."""

    count: int
    squares: float
    wobble: float

    def plus(self, other: Spread) -> Spread:
        return Spread(self.count + other.count, self.squares + other.squares, self.wobble + other.wobble)


@dataclass(frozen=True)
class Histogram:
    """Counts of units by category, and sums: what the concentrations' terms need beside the pass."""

    units: Float[np.ndarray, "bin"]
    cells: Float[np.ndarray, "bin"]
    category: np.ndarray
    observed: Float[np.ndarray, "category"]
    total: Float[np.ndarray, "category"]

    @classmethod
    def of(cls, panel: Panel) -> Histogram:
        n = panel.n_categories
        category = np.asarray(panel.category_of_product)[np.asarray(panel.product_of_series)]
        bins = panel.sums.histogram
        return cls(
            np.asarray(bins.units, np.float64), np.asarray(bins.cells, np.float64), np.asarray(bins.category),
            np.bincount(category, np.asarray(panel.sums.observations), n),
            np.bincount(category, np.asarray(panel.sums.series, np.float64), n),
        )  # fmt: skip

    def terms(self, log_phi: np.ndarray, order: int) -> Float[np.ndarray, "category"]:
        """Sum over cells of f(y + phi) - f(phi), with f log gamma (order 0) or its derivatives."""
        f = gammaln if order == 0 else digamma if order == 1 else lambda v: polygamma(1, v)
        phi = np.exp(log_phi)
        values = self.cells * (f(self.units + phi[self.category]) - f(phi[self.category]))
        return np.bincount(self.category, values, log_phi.size)


@dataclass(frozen=True)
class Slope:
    """Of the bound in the learned vector: gradient, and information: diagonal for scales and categories'
    concentrations, whose parent couples to each of them by `pull`."""

    gradient: np.ndarray
    information: np.ndarray
    """What steps count on: not less than a share of the complete data's."""
    observed: np.ndarray
    """As it is: what the posterior sd of a logarithm follows from."""
    pull: float = 0.0
    n_scales: int = 0

    def solve(self, vector: np.ndarray) -> np.ndarray:
        """Information^-1 vector."""
        n = self.n_scales
        solved = vector / self.information
        if vector.size > n:
            solved[n] += self.pull * solved[n + 1 :].sum() / self.information[n]
            solved[n + 1 :] += self.pull * solved[n] / self.information[n + 1 :]
        return solved


def log_prior(scales: Scales, plan: ModelPlan) -> float:
    """Log density of everything learned, on the logarithms: half-normal scales with their Jacobian, normal log phi."""
    value = 0.0
    for name in scales.learned:
        log_tau, width = scales.log_scale[name], getattr(plan.priors, name)
        value += 0.5 * np.log(2 / np.pi) - np.log(width) - 0.5 * np.exp(2 * log_tau) / width**2 + log_tau
    if scales.log_phi.size:
        priors = plan.priors
        value += _log_normal(scales.log_phi_market, priors.concentration_mean, priors.concentration_sd)
        value += _log_normal(scales.log_phi, scales.log_phi_market, priors.concentration_scale)
    return float(value)


def _log_normal(value: object, mean: float, sd: float) -> float:
    z = (np.asarray(value) - mean) / sd
    return float(np.sum(-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)))


def slope_of(
    scales: Scales, plan: ModelPlan, spreads: dict[str, Spread], histogram: Histogram, dispersion: np.ndarray
) -> Slope:
    """Gradient of the bound plus log prior at fixed q, and the information in each direction."""
    gradient, information, observed = [], [], []
    for name in scales.learned:
        spread, precision = spreads[name], scales.precision(name)
        width = 1 / (precision * getattr(plan.priors, name) ** 2)
        gradient.append(-spread.count + spread.squares * precision + 1 - width)
        complete = 2 * spread.squares * precision
        seen = complete - spread.wobble * precision**2
        information.append(max(seen, LEAST_INFORMATION * complete) + 2 * width)
        observed.append(max(seen, 0.0) + 2 * width)
    if scales.log_phi.size:
        priors = plan.priors
        pull, phi = priors.concentration_scale**-2, np.exp(scales.log_phi)
        first = histogram.terms(scales.log_phi, 1) + dispersion[:, 1] - dispersion[:, 0]
        second = histogram.terms(scales.log_phi, 2) + dispersion[:, 2]
        apart = scales.log_phi - scales.log_phi_market
        market = pull * apart.sum() - (scales.log_phi_market - priors.concentration_mean) / priors.concentration_sd**2
        gradient += [market, *(phi * first - pull * apart)]
        curvature = np.maximum(-(phi**2 * second + phi * first), 0.0) + pull
        own = priors.concentration_sd**-2 + np.sum(pull - pull**2 / curvature)
        information += [own, *curvature]
        observed += [own, *curvature]
    else:
        pull = 0.0
    return Slope(np.array(gradient), np.array(information), np.array(observed), pull, len(scales.learned))


@dataclass(frozen=True)
class QuasiNewton:
    """Steps to the root of the slope: the information, corrected by the last secant pairs (L-BFGS).

    A step that lowered the bound is taken back halfway, and what led to it forgotten. A new value after each step.
    """

    pairs: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    last: tuple[np.ndarray, np.ndarray] | None = None
    """Where the last accepted step started, and the gradient there."""
    best: float = -np.inf
    """The bound there."""
    radius: float = LONGEST_STEP

    def step(self, at: np.ndarray, slope: Slope, bound: float, caught_up: bool) -> tuple[np.ndarray, QuasiNewton]:
        """The next step from `at`; secants are kept only where q has `caught_up` with the scales."""
        if self.last is not None and bound < self.best - max(SAME_BOUND, SAME_SHARE * abs(bound)):
            back = 0.5 * (self.last[0] - at)
            return back, replace(self, pairs=(), radius=max(0.5 * self.radius, SHORTEST_RADIUS))
        pairs = self.pairs
        if self.last is not None and caught_up:
            moved, fell = at - self.last[0], self.last[1] - slope.gradient
            length = np.sum(slope.information * moved**2)
            if length > SHORTEST_PAIR and moved @ fell > LEAST_SECANT * length:
                pairs = (*pairs, (moved, fell))[-MEMORY:]
        step = np.clip(_trusted(_direction(pairs, slope), slope), -self.radius, self.radius)
        radius = min(LONGEST_STEP, 1.5 * self.radius)
        return step, QuasiNewton(pairs, (at, slope.gradient), bound, radius)


def _trusted(step: np.ndarray, slope: Slope) -> np.ndarray:
    """The step, or the plain one where secants would stretch it by more than a few times."""
    plain = slope.solve(slope.gradient)
    stretch = np.sum(slope.information * step**2) / max(float(np.sum(slope.information * plain**2)), 1e-300)
    return step if stretch < LONGEST_STRETCH**2 else plain


def _direction(pairs: tuple[tuple[np.ndarray, np.ndarray], ...], slope: Slope) -> np.ndarray:
    q, kept = slope.gradient.copy(), []
    for moved, fell in reversed(pairs):
        share = (moved @ q) / (moved @ fell)
        q -= share * fell
        kept.append((moved, fell, share))
    q = slope.solve(q)
    for moved, fell, share in reversed(kept):
        q += moved * (share - (fell @ q) / (moved @ fell))
    return q
