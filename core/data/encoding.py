"""Encode a validated sales table as the arrays the model reads. Last module that sees pandas."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.data.own_effects import FEW_PRODUCTS, own_columns, own_names
from core.data.sales import SalesTable, covariate_column
from core.panel import Panel, PanelLabels
from core.panel_sums import sum_units

Layout = Literal["auto", "dense", "packed"]

PACK_BELOW = 0.1
"""Share of filled cells under which the automatic layout packs."""
TALLEST_BLOCK = 256
"""Rows; 256 rows of 157 float32 cells stay in a core's own cache, and a big category still divides over devices."""
STRIP_WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
PIECE_ROWS = 1 << 17
"""Rows that are looked up at a time, so that no 64-bit index of a whole column is held."""
SAME_PRICE = 1e-9
"""Distance in log price that is rounding, not a price change."""
ONE_CATEGORY = "all products"
LONGEST_NUMBER = 20
"""Digits up to which numbers in names sort as numbers."""
_DIGITS = re.compile(r"[0-9]+")


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
    product = _Names.of(frame["product"])
    category = _Names.of(frame["category"]) if "category" in frame else None
    store = _Names.of(frame["store"]) if "store" in frame else None
    period, periods = _period_codes(frame["period"]) if "period" in frame else (None, ())
    category_of_name = _category_of_name(product, category)
    order = sorted(product.order, key=lambda code: category_of_name[code])
    cells = Cells(
        product=_ranks(order, len(product.texts))[product.codes],
        store=store.ranks() if store is not None else np.broadcast_to(np.int32(0), len(frame)),
        period=period,
        log_price=np.log(frame["price"].to_numpy(np.float64)),
        units=frame["units"].to_numpy(np.float64),
        covariates=_covariates(frame, sales.covariates),
        category_of_product=category_of_name[order],
        n_categories=len(category.order) if category is not None else 1,
        n_periods=len(periods),
    )
    products, covariates = tuple(product.texts[code] for code in order), sales.covariates
    if category is None and covariates and len(products) <= FEW_PRODUCTS:
        cells = replace(cells, covariates=own_columns(cells.covariates, cells.product, len(products)))
        covariates = own_names(covariates, products)
    panel, statistics = panel_of_cells(cells, layout)
    return panel, labels_of(
        panel,
        statistics,
        products=products,
        categories=category.ordered if category is not None else (ONE_CATEGORY,),
        stores=store.ordered if store is not None else (),
        periods=periods,
        covariates=covariates,
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
    x = reference[series]
    np.subtract(cells.log_price, x, out=x)
    squares = np.bincount(series, x * x)
    constant = squares < n_obs * SAME_PRICE**2
    if constant.any():
        x[constant[series]] = squares[constant] = 0.0
    z = _centred(cells.covariates)
    place = _Placement.of(cells, series, product_of_series, n_obs, layout)
    shape = (place.n_rows, place.n_slots)
    arrays: dict[str, Any] = {
        "log_price": place.lay(x, shape),
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
    others: dict[str, Any] = {
        "category_of_block": place.category_of_block.astype(np.int32),
        "reference": reference.astype(np.float32),
        "real_series": np.ones(product_of_series.size, bool),
        "real_product": np.ones(cells.category_of_product.size, bool),
        "shards": 1,
    }
    panel = Panel(sums=sum_units(**arrays), **arrays, **others)
    n_products = cells.category_of_product.size
    per_product = np.bincount(product_of_series, n_obs, n_products)
    statistics = CellStatistics(
        store_of_series=store_of_series,
        n_obs=per_product.astype(np.int64),
        price_sd=np.sqrt(np.bincount(product_of_series, squares, n_products) / np.maximum(per_product, 1)),
        mean_units=np.bincount(series, cells.units) / n_obs,
    )
    return panel, statistics


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

    def lay(self, values: np.ndarray | float, shape: tuple[int, int], dtype: type = np.float32) -> np.ndarray:
        laid: np.ndarray = np.zeros(shape[0] * shape[1], dtype)
        laid[self.position] = values
        return laid.reshape(shape)

    @classmethod
    def of(
        cls, cells: Cells, series: np.ndarray, product_of_series: np.ndarray, n_obs: np.ndarray, layout: Layout
    ) -> _Placement:
        packed = cells.period is not None and _packs(layout, n_obs, cells.n_periods)
        dense = cells.period is not None and not packed
        width = cells.n_periods if dense else int(n_obs.max()) if packed else strip_width(n_obs)
        strips = np.ones_like(n_obs) if packed or dense else -(-n_obs // width)
        series_of_strip = np.repeat(np.arange(n_obs.size), strips)
        category_of_strip = cells.category_of_product[product_of_series[series_of_strip]]
        row_of_strip, series_of_row, category_of_block = _blocks(series_of_strip, category_of_strip, cells.n_categories)
        first_slot = row_of_strip[np.cumsum(strips) - strips] * width
        if dense:
            position = first_slot[series]
            position += cells.period
        else:
            start = np.cumsum(n_obs) - n_obs
            position = np.arange(series.size) + (first_slot - start)[series]
        return cls(position, series_of_row, category_of_block, width, packed)


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
    key = cells.product.astype(np.int64)
    if n_stores > 1:
        key *= n_stores
        key += cells.store
    if cells.period is None:
        order = np.lexsort((*cells.covariates[::-1], cells.units, cells.log_price, key))
    else:
        key *= cells.n_periods
        key += cells.period
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
    new[1:] = (cells.product[1:] != cells.product[:-1]) | (cells.store[1:] != cells.store[:-1])
    series = np.cumsum(new, dtype=np.int64)
    series -= 1
    return series, cells.product[new], cells.store[new]


def _centred(covariates: Float[np.ndarray, "covariate cell"]) -> Float[np.ndarray, "covariate cell"]:
    """Covariates minus their mean over cells; indicators of 0 and 1 stay as they are."""
    indicator = ((covariates == 0) | (covariates == 1)).all(axis=1, keepdims=True)
    if covariates.shape[1] == 0:
        return covariates
    return np.where(indicator, covariates, covariates - covariates.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Names:
    """A column of names as codes, and the natural order of those that occur."""

    codes: Int[np.ndarray, "row"]
    texts: list[str]
    order: list[int]
    """Codes that occur, in natural order of their texts."""

    @classmethod
    def of(cls, column: pd.Series) -> _Names:
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy()
            texts = [str(name) for name in column.cat.categories.to_numpy(object)]
        else:
            codes, unique = pd.factorize(column.astype(str))
            texts = [str(name) for name in unique]
        present = np.zeros(len(texts), bool)
        present[codes] = True
        order = sorted(np.flatnonzero(present).tolist(), key=lambda code: natural_key(texts[code]))
        return cls(codes, texts, order)

    @property
    def ordered(self) -> tuple[str, ...]:
        return tuple(self.texts[code] for code in self.order)

    def ranks(self) -> Int[np.ndarray, "row"]:
        """Each row's place in the natural order."""
        return _ranks(self.order, len(self.texts))[self.codes]


def _ranks(order: list[int], n_texts: int) -> Int[np.ndarray, "text"]:
    ranks = np.zeros(n_texts, np.int32)
    ranks[order] = np.arange(len(order))
    return ranks


def natural_key(name: str) -> tuple[str, str]:
    """Sort key under which 'item 9' comes before 'item 10', and spelling decides between equals."""
    return _DIGITS.sub(_padded, name.casefold()), name


def _padded(digits: re.Match[str]) -> str:
    return digits[0].zfill(LONGEST_NUMBER)


def _period_codes(column: pd.Series) -> tuple[Int[np.ndarray, "row"], tuple[str, ...]]:
    """Codes of the periods that occur, in time, and their names: ISO dates where they are dates."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = _ordered_category(column)
        return codes, names
    moments = column.to_numpy("datetime64[s]")
    values = np.sort(pd.unique(moments))
    codes = np.empty(moments.size, np.int32)
    for start in range(0, moments.size, PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        codes[piece] = np.searchsorted(values, moments[piece])
    whole_days = bool((values == values.astype("datetime64[D]")).all())
    return codes, tuple(np.datetime_as_string(values, unit="D" if whole_days else "s").tolist())


def _ordered_category(column: pd.Series) -> tuple[Int[np.ndarray, "row"], tuple[str, ...]]:
    codes = column.cat.codes.to_numpy()
    present = np.flatnonzero(np.bincount(codes, minlength=len(column.cat.categories)) > 0)
    return _ranks(present.tolist(), len(column.cat.categories))[codes], tuple(
        str(name) for name in column.cat.categories[present]
    )


def _category_of_name(product: _Names, category: _Names | None) -> Int[np.ndarray, "text"]:
    """Rank of the category of each product text."""
    of_product = np.zeros(len(product.texts), np.int64)
    if category is None:
        return of_product
    of_product[product.codes] = category.codes
    if not np.array_equal(of_product[product.codes], category.codes):
        raise ValueError("a product belongs to two categories")
    return _ranks(category.order, len(category.texts))[of_product]


def _covariates(frame: pd.DataFrame, names: tuple[str, ...]) -> Float[np.ndarray, "covariate cell"]:
    columns = [frame[covariate_column(name)].to_numpy(np.float64) for name in names]
    return np.stack(columns) if columns else np.zeros((0, len(frame)))
