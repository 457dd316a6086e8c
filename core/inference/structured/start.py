"""Where the iteration starts: levels and period effects that match the sums of units, elasticities at their prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns

LARGEST_TIME_EFFECT = 3.0


class Start(NamedTuple):
    """First means and curvature, by block; `spread` is the sd of levels within their category."""

    elasticity: Float[np.ndarray, "block product"]
    level: Float[np.ndarray, "block series"]
    curvature: Float[np.ndarray, "block row slot"]
    shared: Float[np.ndarray, "category column"]
    market: Float[np.ndarray, "market"]
    spread: float


def start(columns: Columns, blocks: Blocks, n_categories: int, elasticity: float, phi: float | None) -> Start:
    """Match each series' and each category-period's units in turn, as iterative proportional fitting does, twice."""
    shape = blocks.series.shape
    base = blocks.weight * np.exp(elasticity * blocks.x)
    time = np.zeros((n_categories, columns.periods))
    level = _levels(blocks, base)
    if columns.periods:
        demand = base * np.exp(_by_row(blocks, level)).astype(np.float32)[..., None]
        time = _time_effects(columns, blocks, demand, n_categories)
        base = base * np.exp(_by_cell(blocks, time))
        level = _levels(blocks, base)
    curvature = base * np.exp(_by_row(blocks, level)).astype(np.float32)[..., None]
    if phi is not None:
        curvature /= 1 + curvature / np.float32(phi)
    shared, market, spread = _parents(columns, blocks, level, time, elasticity)
    slopes = np.where(blocks.real_product, elasticity, 0.0)
    return Start(slopes.reshape(shape), level, curvature.astype(np.float32), shared, market, spread)


def _flat_series(blocks: Blocks) -> np.ndarray:
    n_blocks, height = blocks.series.shape
    flat: np.ndarray = (np.arange(n_blocks)[:, None] * height + blocks.series).ravel()
    return flat


def _by_row(blocks: Blocks, series: np.ndarray) -> np.ndarray:
    return series.ravel()[_flat_series(blocks)].reshape(blocks.series.shape)


def _levels(blocks: Blocks, base: np.ndarray) -> np.ndarray:
    size = blocks.series.size
    at = _flat_series(blocks)
    units = np.bincount(at, blocks.units.sum(axis=2, dtype=np.float64).ravel(), size)
    expected = np.bincount(at, base.sum(axis=2, dtype=np.float64).ravel(), size)
    mean = max(units.sum(), 0.5) / max(expected.sum(), 1e-9)
    level = np.log((units + 0.5) / (expected + 0.5 / mean))
    return np.where(blocks.real_series, level.reshape(blocks.series.shape), 0.0)


def _time_effects(columns: Columns, blocks: Blocks, demand: np.ndarray, n_categories: int) -> np.ndarray:
    units, expected = (_by_category(columns, blocks, v, n_categories) for v in (blocks.units, demand))
    if columns.shared_time:
        units, expected = (np.broadcast_to(v.sum(axis=0), v.shape) for v in (units, expected))
    ratio = np.log((units + 1) / (expected + 1))
    return np.clip(ratio, -LARGEST_TIME_EFFECT, LARGEST_TIME_EFFECT)


def _by_category(columns: Columns, blocks: Blocks, cells: np.ndarray, n: int) -> np.ndarray:
    if blocks.period is None:
        total = np.zeros((n, columns.periods))
        np.add.at(total, blocks.category, cells.sum(axis=1, dtype=np.float64))
        return total
    at = blocks.category[:, None, None] * columns.periods + blocks.period
    return np.bincount(at.ravel(), cells.ravel().astype(np.float64), n * columns.periods).reshape(n, -1)


def _by_cell(blocks: Blocks, time: np.ndarray) -> np.ndarray:
    of_block = time[blocks.category].astype(np.float32)
    if blocks.period is None:
        return of_block[:, None, :]
    return np.take_along_axis(of_block[:, None, :], blocks.period, axis=2)


def _parents(
    columns: Columns, blocks: Blocks, level: np.ndarray, time: np.ndarray, elasticity: float
) -> tuple[np.ndarray, np.ndarray, float]:
    n = time.shape[0]
    at = np.repeat(blocks.category, level.shape[1])[blocks.real_series.ravel()]
    values = level[blocks.real_series]
    count = np.maximum(np.bincount(at, minlength=n), 1)
    mean = np.bincount(at, values, n) / count
    spread = float(np.sqrt(np.mean((values - mean[at]) ** 2)))
    shared = np.zeros((n, columns.size))
    shared[:, : columns.periods] = time
    shared[:, columns.elasticity] = elasticity
    market = np.zeros(columns.market)
    market[0] = elasticity
    if columns.has_level:
        shared[:, columns.level] = mean
        market[1] = values.mean()
    if columns.shared_time:
        market[columns.top :] = time[0]
    return shared, market, spread
