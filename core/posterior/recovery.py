"""Compare a posterior with the truth of a simulated market: errors, z scores and how often intervals hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.posterior.accuracy import rms
from core.posterior.posterior import Posterior
from core.posterior.summaries import BLOCK_BYTES

MASSES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
USUAL = (0.80, 0.97)
"""Shares of truths inside 90 % intervals that a single market may show. Its products share one learned spread, so their
intervals err together: docs/studies/calibration.md has the shares of many markets."""
WIDTHS = {"narrow": "too narrow", "usual": "about as wide as they should be", "wide": "too wide"}


@dataclass(frozen=True)
class Recovery:
    """How well one level was recovered. `z` is (mean - truth) / sd, standard normal for a calibrated posterior."""

    level: str
    truth: Float[np.ndarray, "member"]
    z: Float[np.ndarray, "member"]
    rmse: float
    """Root mean square error of the posterior means, % units per % price."""
    coverage: Mapping[float, float]
    """Interval mass -> share of members whose central interval of that mass holds the truth."""


def recovery(
    posterior: Posterior, level: str, truth: Float[np.ndarray, "member"], masses: tuple[float, ...] = MASSES
) -> Recovery:
    """Compare `level` ('global', 'category', 'product') with its true elasticities, in the order of the labels.

    Members without a known truth (NaN) are left out of the numbers and NaN in `z`.
    """
    truth = np.atleast_1d(np.asarray(truth, dtype=np.float64))
    summary = posterior.levels[level]
    if truth.shape != summary.mean.shape:
        raise ValueError(f"{truth.size} true elasticities for {summary.size} members of level {level}")
    known = np.isfinite(truth)
    error = summary.mean - truth
    with np.errstate(divide="ignore", invalid="ignore"):
        z = error / summary.sd
    centrality = np.abs(2 * _rank(level_draws(posterior, level), truth) - 1)[known]
    return Recovery(
        level=level,
        truth=truth,
        z=z,
        rmse=rms(error[known]) if known.any() else float("nan"),
        coverage={mass: float((centrality <= mass).mean()) if known.any() else float("nan") for mass in masses},
    )


def width_verdict(found: Recovery) -> str:
    """What the share of truths inside 90 % intervals says of their width, one of WIDTHS.

    A share outside USUAL is held against them only where chance among so few members would not explain it.
    """
    share, members = found.coverage[0.9], int(np.isfinite(found.truth).sum())
    if not np.isfinite(share) or abs(share - 0.9) <= 2 * np.sqrt(0.9 * 0.1 / members):
        return WIDTHS["usual"]
    return WIDTHS["narrow"] if share < USUAL[0] else WIDTHS["wide"] if share > USUAL[1] else WIDTHS["usual"]


def level_draws(posterior: Posterior, level: str) -> Float[np.ndarray, "draw member"]:
    """Elasticity draws of a level."""
    draws = posterior.draws
    if level == "global":
        return draws.elasticity_global[:, None]
    return draws.elasticity_category if level == "category" else draws.elasticity_product


def _rank(draws: Float[np.ndarray, "draw member"], truth: Float[np.ndarray, "member"]) -> np.ndarray:
    """Share of draws below the truth, over column blocks; ties count half."""
    columns = max(1, BLOCK_BYTES // (draws.shape[0] * draws.itemsize))
    rank = np.empty(draws.shape[1])
    for start in range(0, draws.shape[1], columns):
        part = slice(start, start + columns)
        rank[part] = (draws[:, part] < truth[part]).mean(axis=0) / 2 + (draws[:, part] <= truth[part]).mean(axis=0) / 2
    return rank
