"""Centre, lay out and sum coded cells as a panel. NumPy alone: a simulated market comes this way too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from core.data.coded import Cells, in_order, series_of
from core.data.placing import Layout, Placement
from core.panel import Panel
from core.panel_sums import sum_units

SAME_PRICE = 1e-9
"""Distance in log price that is rounding, not a price change."""


@dataclass(frozen=True)
class CellStatistics:
    """What tables show of the data, by code."""

    store_of_series: Int[np.ndarray, "series"]
    n_obs: Int[np.ndarray, "product"]
    price_sd: Float[np.ndarray, "product"]
    mean_units: Float[np.ndarray, "series"]


def panel_of_cells(cells: Cells, layout: Layout = "auto") -> tuple[Panel, CellStatistics]:
    """The panel of coded cells, and what tables show of them.

    Cells are sorted before anything is summed, in float64, so that no order of rows matters.
    """
    cells = in_order(cells)
    series, product_of_series, store_of_series = series_of(cells)
    n_obs = np.bincount(series)
    prices = _CentredPrices.of(cells.log_price, series, n_obs)
    place = Placement.of(cells, series, product_of_series, n_obs, layout)
    arrays = _laid_out(cells, prices.centred, product_of_series, place)
    others: dict[str, Any] = {
        "category_of_block": place.category_of_block.astype(np.int32),
        "reference": prices.reference.astype(np.float32),
        "real_series": np.ones(product_of_series.size, bool),
        "real_product": np.ones(cells.category_of_product.size, bool),
        "shards": 1,
    }
    panel = Panel(sums=sum_units(**arrays), **arrays, **others)
    n_products = cells.category_of_product.size
    per_product = np.bincount(product_of_series, n_obs, n_products)
    spread = np.bincount(product_of_series, prices.squares, n_products) / np.maximum(per_product, 1)
    return panel, CellStatistics(
        store_of_series=store_of_series,
        n_obs=per_product.astype(np.int64),
        price_sd=np.sqrt(spread),
        mean_units=np.bincount(series, cells.units) / n_obs,
    )


@dataclass(frozen=True)
class _CentredPrices:
    """Log prices about each series' own mean. Exactly 0 where a series never changes its price."""

    reference: Float[np.ndarray, "series"]
    centred: Float[np.ndarray, "cell"]
    squares: Float[np.ndarray, "series"]
    """Sums of the centred prices' squares."""

    @classmethod
    def of(cls, log_price: np.ndarray, series: np.ndarray, n_obs: np.ndarray) -> _CentredPrices:
        reference = np.bincount(series, log_price) / n_obs
        centred = reference[series]
        np.subtract(log_price, centred, out=centred)
        squares = np.bincount(series, centred * centred)
        constant = squares < n_obs * SAME_PRICE**2
        if constant.any():
            centred[constant[series]] = squares[constant] = 0.0
        return cls(reference, centred, squares)


def _laid_out(cells: Cells, price: np.ndarray, product_of_series: np.ndarray, place: Placement) -> dict[str, Any]:
    """The fields of a panel from which its sums are taken."""
    shape = (place.n_rows, place.n_slots)
    z = _centred(cells.covariates)
    return {
        "log_price": place.lay(price, shape),
        "weight": place.lay(1.0, shape),
        "units": place.lay(cells.units, shape),
        "covariates": np.stack([place.lay(column, shape) for column in z]) if len(z) else np.zeros((0, *shape), "f4"),
        "period": place.lay(cells.period, shape, np.int32) if place.packed and cells.period is not None else None,
        "series_of_row": place.series_of_row.astype(np.int32),
        "product_of_series": product_of_series.astype(np.int32),
        "category_of_product": cells.category_of_product.astype(np.int32),
        "n_categories": cells.n_categories,
        "n_periods": cells.n_periods,
    }


def _centred(covariates: Float[np.ndarray, "covariate cell"]) -> Float[np.ndarray, "covariate cell"]:
    """Covariates minus their mean over cells; indicators of 0 and 1 stay as they are."""
    indicator = ((covariates == 0) | (covariates == 1)).all(axis=1, keepdims=True)
    if covariates.shape[1] == 0:
        return covariates
    return np.where(indicator, covariates, covariates - covariates.mean(axis=1, keepdims=True))
