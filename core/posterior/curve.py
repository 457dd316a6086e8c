"""Turn draws into the demand curve of one product, beside the cells it was learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.model.sites import COVARIATE_CATEGORY, TIME
from core.panel import Panel, PanelLabels
from core.posterior.posterior import Posterior
from core.posterior.summaries import summarise

POINTS = 60
MARGIN = 0.1
"""The curve is drawn this much, on the log scale, past the lowest and highest price seen."""

MOST_AT_ONCE = 2_000_000
"""Draws x cells worked on at once, which take 8 bytes each a few times over."""


@dataclass(frozen=True)
class Observations:
    """Observed cells of one product. `period` and `store` are codes into the labels, -1 where the file has none."""

    price: Float[np.ndarray, "cell"]
    """In the file's currency."""
    units: Float[np.ndarray, "cell"]
    period: Int[np.ndarray, "cell"]
    store: Int[np.ndarray, "cell"]


@dataclass(frozen=True)
class DemandCurve:
    """Expected units per cell (one store, one period) at each price, averaged over the product's observed cells."""

    price: Float[np.ndarray, "point"]
    mean: Float[np.ndarray, "point"]
    lower: Float[np.ndarray, "point"]
    median: Float[np.ndarray, "point"]
    upper: Float[np.ndarray, "point"]
    mass: float
    """Posterior probability between lower and upper: of the expected units, not of a single week's sales."""


@dataclass(frozen=True)
class _ProductCells:
    series: Int[np.ndarray, "cell"]
    slot_row: Int[np.ndarray, "cell"]
    slot: Int[np.ndarray, "cell"]
    period: Int[np.ndarray, "cell"]


def product_code(labels: PanelLabels, product: str) -> int:
    """Code of a product by its name. Raises KeyError for a name that is not in the market."""
    try:
        return labels.products.index(product)
    except ValueError:
        raise KeyError(f"there is no product {product!r}") from None


def observations_of(panel: Panel, labels: PanelLabels, product: int) -> Observations:
    """The observed cells of product `product` (its code), with prices as the file gave them."""
    cells = _cells(panel, product)
    log_price = np.asarray(panel.log_price)[cells.slot_row, cells.slot].astype(np.float64)
    stores = np.asarray(labels.store_of_series, dtype=np.int64)
    return Observations(
        price=np.exp(log_price + np.asarray(panel.reference)[cells.series]),
        units=np.asarray(panel.units)[cells.slot_row, cells.slot].astype(np.float64),
        period=cells.period,
        store=stores[cells.series] if len(stores) else np.full(len(cells.series), -1),
    )


def demand_curve(
    posterior: Posterior, panel: Panel, product: int, mass: float | None = None, points: int = POINTS
) -> DemandCurve:
    """Expected units over a grid of prices, with an interval of `mass` (default: the posterior's) from the draws.

    At price p a cell of series s and period t expects exp(level[s] + beta (log p - reference[s]) + effects[s,t]); the
    curve averages that over the product's observed cells, so that it passes through the cloud of its observations.
    """
    mass = posterior.mass if mass is None else mass
    cells = _cells(panel, product)
    reference = np.asarray(panel.reference, dtype=np.float64)
    log_price = np.asarray(panel.log_price)[cells.slot_row, cells.slot] + reference[cells.series]
    grid = np.linspace(log_price.min() - MARGIN, log_price.max() + MARGIN, points)
    beta = posterior.draws.elasticity_product[:, product].astype(np.float64)
    series, inverse = np.unique(cells.series, return_inverse=True)
    weights = _series_weights(posterior, panel, cells, product, inverse, len(series))
    expected = np.zeros((len(beta), points))
    for at, code in enumerate(series):
        level = posterior.draws.level_series[:, code].astype(np.float64)
        expected += weights[:, at, None] * np.exp(level[:, None] + beta[:, None] * (grid - reference[code]))
    found = summarise(expected, mass)
    return DemandCurve(np.exp(grid), found.mean, found.lower, found.median, found.upper, mass)


def _series_weights(
    posterior: Posterior, panel: Panel, cells: _ProductCells, product: int, series: np.ndarray, n_series: int
) -> Float[np.ndarray, "draw series"]:
    """Each draw's sum over a series' cells of exp(time and covariate effects), per cell of the product."""
    member = (series[:, None] == np.arange(n_series)).astype(np.float64)
    category = int(posterior.category_of_product[product])
    each = max(1, MOST_AT_ONCE // len(series))
    parts = [
        np.exp(_effect_draws(posterior, panel, cells, category, slice(first, first + each))) @ member
        for first in range(0, posterior.n_draws, each)
    ]
    return np.concatenate(parts) / len(series)


def _effect_draws(
    posterior: Posterior, panel: Panel, cells: _ProductCells, category: int, some: slice
) -> Float[np.ndarray, "draw cell"]:
    """Time and covariate effects of each cell in `some` of the draws."""
    draws = posterior.draws
    total = np.zeros((len(draws.elasticity_global[some]), len(cells.slot)))
    time = draws.others.get(TIME)
    if time is not None and time.size and panel.n_periods > 0:
        of_category = time[some, category] if time.ndim == 3 else time[some]
        total += of_category[:, cells.period]
    slope = draws.others.get(COVARIATE_CATEGORY)
    if slope is not None and slope.size:
        total += slope[some, category] @ np.asarray(panel.covariates)[:, cells.slot_row, cells.slot]
    return total


def _cells(panel: Panel, product: int) -> _ProductCells:
    series_of_row = np.asarray(panel.series_of_row)
    rows = np.flatnonzero(np.asarray(panel.product_of_series)[series_of_row] == product)
    at_row, slot = np.nonzero(np.asarray(panel.weight)[rows] > 0)
    slot_row = rows[at_row]
    if panel.n_periods == 0:
        period = np.full(len(slot), -1)
    else:
        period = slot if panel.period is None else np.asarray(panel.period)[slot_row, slot].astype(np.int64)
    return _ProductCells(series_of_row[slot_row].astype(np.int64), slot_row, slot, period)
