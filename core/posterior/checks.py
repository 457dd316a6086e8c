"""Ask whether the fitted model could have produced the data: replicate cells from the posterior, compare plain numbers.

Three questions (Gelman, Carlin, Stern et al. 2013, chapter 6): does it produce as many zeros, does it scatter as much,
and do its predictive intervals hold as many cells as they promise. Whole panel rows are sampled, so that the cost does
not grow with the market.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.model.sites import CONCENTRATION_CATEGORY
from core.panel import Panel
from core.posterior.effects import category_of_row, drawn_effects, offset
from core.posterior.posterior import Posterior

CELLS = 40_000
REPLICATES = 200
MASSES = (0.5, 0.8, 0.9, 0.95)
LARGEST_LOG_UNITS = 30.0
"""Replicates are drawn at no more than this: NumPy's Poisson ends at a mean of about e^43."""
COVERAGE_SLACK = 0.03
"""How far the share of cells inside may be from the interval's mass before a sentence calls it off."""
RARE = 0.05


@dataclass(frozen=True)
class Compared:
    """One number of the data beside the same number of replicated data: mean and central 90 % of the replicates."""

    name: str
    observed: float
    replicated: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PredictiveChecks:
    """What replicated data say about the model; `sentences` say it in words."""

    n_cells: int
    n_replicates: int
    zeros: Compared
    """Share of cells that sold nothing."""
    dispersion: Compared
    """Mean of (units - expected)^2 / expected: 1 for a Poisson market whose expectations are right."""
    coverage: Mapping[float, float]
    """Interval mass -> share of cells inside the predictive interval of that mass."""
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class _Sample:
    rows: Int[np.ndarray, "row"]
    units: Float[np.ndarray, "cell"]
    observed: np.ndarray
    log_price: Float[np.ndarray, "row slot"]


def predictive_checks(
    posterior: Posterior, panel: Panel, seed: int = 0, cells: int = CELLS, replicates: int = REPLICATES
) -> PredictiveChecks:
    """Compare about `cells` sampled cells with `replicates` replicated data sets, one per posterior draw used.

    Coverage uses randomised ranks of each cell among its replicates, which are uniform for a right model even where
    counts are small and intervals of whole numbers hold more than they promise (Czado, Gneiting & Held 2009).
    """
    random = np.random.default_rng(seed)
    sample = _sample_rows(panel, random, cells)
    rank = np.zeros(len(sample.units))
    ties = np.zeros(len(sample.units))
    zeros, scatter, scatter_observed = [], [], []
    for expected, units in _replicated(posterior, panel, sample, random, replicates):
        rank += units < sample.units
        ties += units == sample.units
        zeros.append((units == 0).mean())
        scatter.append(((units - expected) ** 2 / expected).mean())
        scatter_observed.append(((sample.units - expected) ** 2 / expected).mean())
    place = (rank + random.random(len(rank)) * (ties + 1)) / (len(zeros) + 1)
    compared_zeros = _compared("share of cells without sales", float((sample.units == 0).mean()), zeros)
    compared_scatter = _compared("dispersion", float(np.mean(scatter_observed)), scatter)
    coverage = {mass: float((np.abs(2 * place - 1) <= mass).mean()) for mass in sorted({*MASSES, posterior.mass})}
    return PredictiveChecks(
        n_cells=len(sample.units),
        n_replicates=len(zeros),
        zeros=compared_zeros,
        dispersion=compared_scatter,
        coverage=coverage,
        sentences=_sentences(compared_zeros, compared_scatter, coverage, posterior.mass),
    )


def _sample_rows(panel: Panel, random: np.random.Generator, cells: int) -> _Sample:
    weight = np.asarray(panel.weight)
    filled = np.flatnonzero(weight.any(axis=1))
    per_row = weight.sum(dtype=np.float64) / max(1, len(filled))
    wanted = min(len(filled), max(1, int(np.ceil(cells / max(per_row, 1.0)))))
    rows = np.sort(random.choice(filled, wanted, replace=False))
    observed = weight[rows] > 0
    return _Sample(rows, np.asarray(panel.units)[rows][observed], observed, np.asarray(panel.log_price)[rows])


def _replicated(
    posterior: Posterior, panel: Panel, sample: _Sample, random: np.random.Generator, replicates: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Expected and replicated units of the sampled cells, one pair per draw used; draws evenly spaced."""
    draws = posterior.draws
    series = np.asarray(panel.series_of_row)[sample.rows]
    product = np.asarray(panel.product_of_series)[series]
    category = np.broadcast_to(category_of_row(panel)[sample.rows][:, None], sample.observed.shape)[sample.observed]
    used = np.unique(np.linspace(0, posterior.n_draws - 1, replicates).astype(int))
    for draw in used:
        eta = draws.level_series[draw, series][:, None] + draws.elasticity_product[draw, product][:, None] * (
            sample.log_price
        )
        eta = eta + offset(drawn_effects(draws, int(draw), panel.n_categories), panel, sample.rows)
        expected = np.exp(np.clip(eta[sample.observed], -LARGEST_LOG_UNITS, LARGEST_LOG_UNITS)).astype(np.float64)
        rate = expected
        if CONCENTRATION_CATEGORY in draws.others:
            shape = np.exp(draws.others[CONCENTRATION_CATEGORY][draw].astype(np.float64))[category]
            rate = random.standard_gamma(shape) * expected / shape
        yield expected, random.poisson(rate)


def _compared(name: str, observed: float, replicated: list[float]) -> Compared:
    lower, upper = np.quantile(replicated, [RARE, 1 - RARE])
    return Compared(name, observed, float(np.mean(replicated)), float(lower), float(upper))


def _sentences(zeros: Compared, dispersion: Compared, coverage: Mapping[float, float], mass: float) -> tuple[str, ...]:
    inside = coverage[mass]
    fit = (
        "as promised" if abs(inside - mass) <= COVERAGE_SLACK else "too few" if inside < mass else "more than promised"
    )
    return (
        f"{zeros.observed:.1%} of the cells sold nothing; the model expects {zeros.replicated:.1%} "
        f"({zeros.lower:.1%} to {zeros.upper:.1%}).",
        f"Sales scatter {dispersion.observed:.2f} times as much as Poisson counts around the model's expectation; "
        f"the model itself scatters {dispersion.replicated:.2f} times ({dispersion.lower:.2f} to "
        f"{dispersion.upper:.2f})." + _advice(dispersion),
        f"{inside:.1%} of the cells lie inside their {mass:.0%} predictive interval: {fit}.",
    )


def _advice(dispersion: Compared) -> str:
    if dispersion.observed > 1.2 * dispersion.upper:
        return " Sales are noisier than the model believes, so its intervals are too narrow: use a negative binomial."
    return ""
