"""Encode a validated sales table as the arrays the model reads. Last module that sees pandas."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.data.sales import SalesTable, covariate_column
from core.panel import Panel, PanelLabels
from core.panel_sums import sum_units

Layout = Literal["auto", "dense", "packed"]

PACK_BELOW = 0.1
"""Share of filled cells under which the automatic layout packs."""
TALLEST_BLOCK = 256
"""Rows; 256 rows of 157 float32 cells stay in a core's own cache, and a big category still divides over devices."""
STRIP_WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
SAME_PRICE = 1e-9
"""Distance in log price that is rounding, not a price change."""
ONE_CATEGORY = "all products"


@dataclass(frozen=True)
class Cells:
    """Sales by cell in codes: the numbers of a SalesTable without its names. Any order of cells."""

    product: Int[np.ndarray, "cell"]
    store: Int[np.ndarray, "cell"]
    """All 0 where there are no stores."""
    period: Int[np.ndarray, "cell"] | None
    log_price: Float[np.ndarray, "cell"]
    units: Float[np.ndarray, "cell"]
    covariates: Float[np.ndarray, "covariate cell"]
    category_of_product: Int[np.ndarray, "product"]
    """Non-decreasing: products are numbered category by category."""
    n_categories: int
    n_periods: int


@dataclass(frozen=True)
class CellStatistics:
    """What tables show of the data, by code."""

    store_of_series: Int[np.ndarray, "series"]
    n_obs: Int[np.ndarray, "product"]
    price_sd: Float[np.ndarray, "product"]
    mean_units: Float[np.ndarray, "series"]


def encode(sales: SalesTable, layout: Layout = "auto") -> tuple[Panel, PanelLabels]:
    """The panel of a sales table and the names behind its codes. Float32 NumPy arrays; no device is touched.

    Raises ValueError when a product has two categories or a cell occurs twice: validation leaves neither.
    """
    frame = sales.frame
    product, products = _codes(frame["product"])
    category, categories = _codes(frame["category"]) if "category" in frame else (np.zeros_like(product), None)
    store, stores = _codes(frame["store"]) if "store" in frame else (np.zeros_like(product), None)
    period, periods = _period_codes(frame["period"]) if "period" in frame else (None, ())
    category_of_product = _category_of_product(product, category, len(products))
    order = np.argsort(category_of_product, kind="stable")
    cells = Cells(
        product=np.argsort(order)[product],
        store=store,
        period=period,
        log_price=np.log(frame["price"].to_numpy(np.float64)),
        units=frame["units"].to_numpy(np.float64),
        covariates=_covariates(frame, sales.covariates),
        category_of_product=category_of_product[order],
        n_categories=len(categories) if categories is not None else 1,
        n_periods=len(periods),
    )
    panel, statistics = panel_of_cells(cells, layout)
    return panel, labels_of(
        panel,
        statistics,
        products=tuple(products[p] for p in order),
        categories=tuple(categories) if categories is not None else (ONE_CATEGORY,),
        stores=tuple(stores) if stores is not None else (),
        periods=periods,
        covariates=sales.covariates,
    )


def labels_of(
    panel: Panel,
    statistics: CellStatistics,
    products: tuple[str, ...],
    categories: tuple[str, ...],
    stores: tuple[str, ...] = (),
    periods: tuple[str, ...] = (),
    covariates: tuple[str, ...] = (),
) -> PanelLabels:
    """Put names, given in code order, beside the statistics of a panel."""
    return PanelLabels(
        products=products,
        categories=categories,
        stores=stores,
        periods=periods,
        covariates=covariates,
        store_of_series=tuple(statistics.store_of_series.tolist()) if stores else (),
        n_obs=statistics.n_obs,
        price_sd=statistics.price_sd,
        reference_price=np.exp(np.asarray(panel.reference, np.float64)),
        mean_units=statistics.mean_units,
    )


def panel_of_cells(cells: Cells, layout: Layout = "auto") -> tuple[Panel, CellStatistics]:
    """Centre, lay out and sum coded cells. Cells are
    sorted before anything is summed, in float64, so that no order of rows matters."""
    cells = _sorted(cells)
    series, product_of_series, store_of_series = _series(cells)
    n_obs = np.bincount(series)
    reference = np.bincount(series, cells.log_price) / n_obs
    x = cells.log_price - reference[series]
    x[np.abs(x) < SAME_PRICE] = 0.0
    z = _centred(cells.covariates)
    place = _Placement.of(cells, series, product_of_series, n_obs, layout)
    shape = (place.n_rows, place.n_slots)
    arrays: dict[str, Any] = {
        "log_price": place.lay(x, shape),
        "weight": place.lay(np.ones_like(x), shape),
        "units": place.lay(cells.units, shape),
        "covariates": np.stack([place.lay(column, shape) for column in z]) if len(z) else np.zeros((0, *shape), "f4"),
        "period": place.lay(cells.period, shape, np.int32) if place.packed and cells.period is not None else None,
        "series_of_row": place.series_of_row.astype(np.int32),
        "product_of_series": product_of_series.astype(np.int32),
        "category_of_product": cells.category_of_product.astype(np.int32),
        "n_categories": cells.n_categories,
        "n_periods": cells.n_periods,
    }
    others: dict[str, Any] = {
        "category_of_block": place.category_of_block.astype(np.int32),
        "reference": reference.astype(np.float32),
        "real_series": np.ones(product_of_series.size, bool),
        "real_product": np.ones(cells.category_of_product.size, bool),
        "shards": 1,
    }
    panel = Panel(sums=sum_units(**arrays), **arrays, **others)
    return panel, _statistics(cells, series, x, n_obs, store_of_series)


@dataclass(frozen=True)
class _Placement:
    """Where each sorted cell goes: its row and slot in a panel cut into blocks."""

    position: Int[np.ndarray, "cell"]
    series_of_row: Int[np.ndarray, "row"]
    category_of_block: Int[np.ndarray, "block"]
    n_slots: int
    packed: bool

    @property
    def n_rows(self) -> int:
        return self.series_of_row.size

    def lay(self, values: np.ndarray, shape: tuple[int, int], dtype: type = np.float32) -> np.ndarray:
        laid: np.ndarray = np.zeros(shape[0] * shape[1], dtype)
        laid[self.position] = values
        return laid.reshape(shape)

    @classmethod
    def of(
        cls, cells: Cells, series: np.ndarray, product_of_series: np.ndarray, n_obs: np.ndarray, layout: Layout
    ) -> _Placement:
        start = np.cumsum(n_obs) - n_obs
        rank = np.arange(series.size) - start[series]
        packed = cells.period is not None and _packs(layout, n_obs, cells.n_periods)
        if cells.period is not None and not packed:
            width, slot = cells.n_periods, cells.period
        else:
            width = int(n_obs.max()) if packed else strip_width(n_obs)
            slot = rank % width
        strips = -(-n_obs // width) if cells.period is None else np.ones_like(n_obs)
        first_strip = np.cumsum(strips) - strips
        strip = first_strip[series] + (rank // width if cells.period is None else 0)
        series_of_strip = np.repeat(np.arange(n_obs.size), strips)
        category_of_strip = cells.category_of_product[product_of_series[series_of_strip]]
        row_of_strip, series_of_row, category_of_block = _blocks(series_of_strip, category_of_strip, cells.n_categories)
        return cls(row_of_strip[strip] * width + slot, series_of_row, category_of_block, width, packed)


def _packs(layout: Layout, n_obs: np.ndarray, n_periods: int) -> bool:
    sparse = n_obs.sum() < PACK_BELOW * n_obs.size * n_periods
    return layout == "packed" or (layout == "auto" and bool(sparse) and 2 * int(n_obs.max()) <= n_periods)


def strip_width(n_obs: Int[np.ndarray, "series"]) -> int:
    """Slots per row that hold all replicates in the fewest cells, an eight-cell charge per row included."""
    cost = {width: int((-(-n_obs // width)).sum()) * (width + 8) for width in STRIP_WIDTHS}
    return min(cost, key=lambda width: cost[width])


def block_height(rows: Int[np.ndarray, "category"]) -> int:
    """Rows per block that waste least: padding rows, and one row's worth of work for every block."""
    heights = np.arange(1, TALLEST_BLOCK + 1)
    blocks = np.array([(-(-rows // height)).sum() for height in heights])
    return int(heights[np.argmin(blocks * (heights + 1))])


def _blocks(
    series_of_strip: np.ndarray, category_of_strip: np.ndarray, n_categories: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row of each strip, series of each row, category of each block. Fillers point at the category's last series."""
    rows = np.bincount(category_of_strip, minlength=n_categories)
    height = block_height(rows)
    blocks = -(-rows // height)
    padded = blocks * height
    first_strip, first_row = np.cumsum(rows) - rows, np.cumsum(padded) - padded
    row_of_strip = np.arange(series_of_strip.size) + (first_row - first_strip)[category_of_strip]
    category_of_row = np.repeat(np.arange(n_categories), padded)
    within = np.arange(padded.sum()) - first_row[category_of_row]
    strip_of_row = first_strip[category_of_row] + np.minimum(within, rows[category_of_row] - 1)
    return row_of_strip, series_of_strip[strip_of_row], np.repeat(np.arange(n_categories), blocks)


def _sorted(cells: Cells) -> Cells:
    """Cells by (product, store, period); replicates by their own numbers, so that the file's order does not matter."""
    n_stores = int(cells.store.max()) + 1
    key = cells.product.astype(np.int64) * n_stores + cells.store
    if cells.period is None:
        order = np.lexsort((*cells.covariates[::-1], cells.units, cells.log_price, key))
    else:
        key = key * cells.n_periods + cells.period
        if bool((key[1:] > key[:-1]).all()):
            return cells
        order = np.argsort(key, kind="stable")
        if not bool(np.diff(key[order]).all()):
            raise ValueError("a product, store and period occurs on two rows")
    return replace(
        cells,
        product=cells.product[order],
        store=cells.store[order],
        period=None if cells.period is None else cells.period[order],
        log_price=cells.log_price[order],
        units=cells.units[order],
        covariates=cells.covariates[:, order],
    )


def _series(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series of each sorted cell; product and store of each series."""
    new = np.ones(cells.product.size, bool)
    new[1:] = (np.diff(cells.product) != 0) | (np.diff(cells.store) != 0)
    return np.cumsum(new) - 1, cells.product[new], cells.store[new]


def _centred(covariates: Float[np.ndarray, "covariate cell"]) -> Float[np.ndarray, "covariate cell"]:
    """Covariates minus their mean over cells; indicators of 0 and 1 stay as they are."""
    indicator = ((covariates == 0) | (covariates == 1)).all(axis=1, keepdims=True)
    if covariates.shape[1] == 0:
        return covariates
    return np.where(indicator, covariates, covariates - covariates.mean(axis=1, keepdims=True))


def _statistics(
    cells: Cells, series: np.ndarray, x: np.ndarray, n_obs: np.ndarray, store_of_series: np.ndarray
) -> CellStatistics:
    per_product = np.bincount(cells.product, minlength=cells.category_of_product.size)
    squares = np.bincount(cells.product, x * x, minlength=per_product.size)
    return CellStatistics(
        store_of_series=store_of_series,
        n_obs=per_product,
        price_sd=np.sqrt(squares / np.maximum(per_product, 1)),
        mean_units=np.bincount(series, cells.units) / n_obs,
    )


def _codes(column: pd.Series) -> tuple[Int[np.ndarray, "row"], list[str]]:
    """Codes in the natural order of the names that occur, and those names."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = column.cat.codes.to_numpy(), [str(name) for name in column.cat.categories]
    else:
        codes, unique = pd.factorize(column.astype(str))
        names = [str(name) for name in unique]
    present = np.bincount(codes, minlength=len(names)) > 0
    order = sorted(np.flatnonzero(present).tolist(), key=lambda code: natural_key(names[code]))
    rank = np.zeros(len(names), np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], [names[code] for code in order]


def natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key under which 'item 9' comes before 'item 10', and spelling decides between equals."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], name


def _period_codes(column: pd.Series) -> tuple[Int[np.ndarray, "row"], tuple[str, ...]]:
    """Codes of the periods that occur, in time, and their names: ISO dates where they are dates."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = _ordered_category(column)
        return codes, names
    values, codes = np.unique(column.to_numpy("datetime64[s]"), return_inverse=True)
    whole_days = bool((values == values.astype("datetime64[D]")).all())
    return codes, tuple(np.datetime_as_string(values, unit="D" if whole_days else "s").tolist())


def _ordered_category(column: pd.Series) -> tuple[Int[np.ndarray, "row"], tuple[str, ...]]:
    codes = column.cat.codes.to_numpy()
    present = np.flatnonzero(np.bincount(codes, minlength=len(column.cat.categories)) > 0)
    return np.searchsorted(present, codes), tuple(str(name) for name in column.cat.categories[present])


def _category_of_product(product: np.ndarray, category: np.ndarray, n_products: int) -> Int[np.ndarray, "product"]:
    of_product = np.zeros(n_products, np.int64)
    of_product[product] = category
    if not np.array_equal(of_product[product], category):
        raise ValueError("a product belongs to two categories")
    return of_product


def _covariates(frame: pd.DataFrame, names: tuple[str, ...]) -> Float[np.ndarray, "covariate cell"]:
    columns = [frame[covariate_column(name)].to_numpy(np.float64) for name in names]
    return np.stack(columns) if columns else np.zeros((0, len(frame)))
