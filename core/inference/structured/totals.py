"""Sum once what no iteration changes: units over everything that log demand is linear in, and members by category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns
from core.inference.structured.scales import Histogram


@dataclass(frozen=True)
class UnitTotals:
    """Sums of units in float64, by block, and by category and column: the linear part of the log likelihood."""

    level: Float[np.ndarray, "block series"]
    elasticity: Float[np.ndarray, "block product"]
    shared: Float[np.ndarray, "category column"]
    log_factorial: float

    def linear_part(self, elasticity: np.ndarray, level: np.ndarray, shared: np.ndarray) -> float:
        """Sum over cells of units x log demand; elasticities and levels by block."""
        value = float(np.sum(self.level * level)) + float(np.sum(self.elasticity * elasticity))
        return value + float(np.sum(self.shared * shared))


def unit_totals(columns: Columns, blocks: Blocks, n: int, histogram: Histogram) -> UnitTotals:
    """The sums of a market of `n` categories."""
    n_blocks, height = blocks.series.shape
    series = (np.arange(n_blocks)[:, None] * height + blocks.series).ravel()
    product = (np.arange(n_blocks)[:, None] * height + blocks.product).ravel()
    level = np.bincount(series, blocks.units.sum(axis=2, dtype=np.float64).ravel(), series.size)
    priced = np.einsum("bht,bht->bh", blocks.units, blocks.x, dtype=np.float64).ravel()
    elasticity = np.bincount(product, np.bincount(series, priced, series.size), product.size)
    shared = np.zeros((n, columns.size))
    if columns.periods and blocks.period is None:
        np.add.at(shared[:, : columns.periods], blocks.category, blocks.units.sum(axis=1, dtype=np.float64))
    elif columns.periods and blocks.period is not None:
        at = (blocks.category[:, None, None] * columns.size + blocks.period).ravel()
        shared += np.bincount(at, blocks.units.ravel().astype(np.float64), shared.size).reshape(shared.shape)
    for k in range(columns.covariates):
        by_block = np.einsum("bht,bht->b", blocks.units, blocks.covariates[:, k], dtype=np.float64)
        shared[:, columns.first_covariate + k] = np.bincount(blocks.category, by_block, n)
    log_factorial = float(np.sum(histogram.cells * gammaln(histogram.units + 1)))
    shape = blocks.series.shape
    return UnitTotals(level.reshape(shape), elasticity.reshape(shape), shared, log_factorial)


def count_members(blocks: Blocks, n: int) -> Float[np.ndarray, "2 category"]:
    """Products and series of each category."""
    parts = (blocks.real_product, blocks.real_series)
    return np.stack([np.bincount(blocks.category, part.sum(axis=1), n) for part in parts])
