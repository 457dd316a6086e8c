"""Turn draws into the numbers of a table: mean, sd, interval, median and the probability of being elastic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

UNIT_ELASTIC = -1.0
"""Below it revenue rises when the price falls: demand is elastic."""
BLOCK_BYTES = 64 * 2**20
"""Largest copy of draws that a summary makes at a time, so that a million products fit in memory."""


@dataclass(frozen=True)
class LevelSummary:
    """Elasticities of one level of the hierarchy, in % units per % price, one entry per member.

    `lower` and `upper` bound the central interval; `prob_elastic` is the share of draws below -1.
    """

    mean: Float[np.ndarray, "member"]
    sd: Float[np.ndarray, "member"]
    lower: Float[np.ndarray, "member"]
    median: Float[np.ndarray, "member"]
    upper: Float[np.ndarray, "member"]
    prob_elastic: Float[np.ndarray, "member"]

    @property
    def size(self) -> int:
        return self.mean.shape[0]


def summarise(draws: Float[np.ndarray, "draw member"], mass: float, block_bytes: int = BLOCK_BYTES) -> LevelSummary:
    """Summaries per column, over column blocks of at most `block_bytes`; quantiles interpolate between draws.

    `mass` is the posterior probability inside the interval. Raises ValueError for a mass outside (0, 1) or no draws.
    """
    if not 0.0 < mass < 1.0:
        raise ValueError(f"mass={mass} is not a probability between 0 and 1")
    n_draws, n_members = draws.shape
    if n_draws == 0:
        raise ValueError("there are no draws to summarise")
    columns = max(1, block_bytes // (n_draws * draws.itemsize))
    found = np.empty((6, n_members))
    for start in range(0, n_members, columns):
        part = slice(start, start + columns)
        found[:, part] = _summarise_block(draws[:, part], mass)
    return LevelSummary(*found)


def share_positive(draws: Float[np.ndarray, "draw member"], block_bytes: int = BLOCK_BYTES) -> np.ndarray:
    """Share of draws above 0 for each member (float64): the probability that units rise with price."""
    columns = max(1, block_bytes // max(1, draws.shape[0]))
    starts = range(0, draws.shape[1], columns)
    parts = [(draws[:, start : start + columns] > 0).mean(axis=0) for start in starts]
    return np.concatenate(parts) if parts else np.zeros(0)


def _summarise_block(draws: Float[np.ndarray, "draw member"], mass: float) -> Float[np.ndarray, "6 member"]:
    by_member = np.array(draws.T, order="C")
    mean = by_member.mean(axis=1, dtype=np.float64)
    sd = by_member.std(axis=1, dtype=np.float64, ddof=min(1, by_member.shape[1] - 1))
    elastic = (by_member < UNIT_ELASTIC).mean(axis=1)
    by_member.sort(axis=1)
    lower, median, upper = (_quantile(by_member, level) for level in ((1 - mass) / 2, 0.5, (1 + mass) / 2))
    return np.stack([mean, sd, lower, median, upper, elastic])


def _quantile(ordered: Float[np.ndarray, "member draw"], level: float) -> Float[np.ndarray, "member"]:
    position = level * (ordered.shape[1] - 1)
    below = int(np.floor(position))
    above = min(below + 1, ordered.shape[1] - 1)
    share = position - below
    return (1 - share) * ordered[:, below].astype(np.float64) + share * ordered[:, above]
