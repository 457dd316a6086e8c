"""Cut a panel into blocks of whole products, so that every elimination of series and products happens inside a block.

Each block holds at most `height` rows of one category. Series and products of a block have slots counted from 0, at
most one per row, so that rows, series and products of the whole market are all arrays [block, height].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from core.inference.hosts import fetched
from core.panel import Panel

CELLS_PER_BLOCK = 80_000
"""Enough for matrix products to run at speed, few enough for a block's temporaries to stay in cache."""
TALLEST = 2048
ROWS_PER_BLOCK_OVERHEAD = 12
"""What starting a block costs, in rows' worth of time."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Blocks:
    """A market's cells by block. Rows, series and products that only fill a block up have weight 0 and real False."""

    x: Float[Any, "block height slot"]
    """Centred log price."""
    weight: Float[Any, "block height slot"]
    units: Float[Any, "block height slot"]
    covariates: Float[Any, "block covariate height slot"]
    period: Int[Any, "block height slot"] | None
    series: Int[Any, "block height"]
    """Series slot of each row."""
    product: Int[Any, "block height"]
    """Product slot of each series."""
    reference: Float[Any, "block height"]
    """Mean log price of each series where the model takes it uncentred, else 0."""
    real_series: Bool[Any, "block height"]
    real_product: Bool[Any, "block height"]
    category: Int[Any, "block"]
    rows_are_series: bool = field(metadata={"static": True})
    series_are_products: bool = field(metadata={"static": True})


@dataclass(frozen=True)
class Places:
    """Where rows, series and products of the panel lie in the blocks, as flat positions; -1: nowhere, it is filler."""

    row: Int[np.ndarray, "row"]
    series: Int[np.ndarray, "series"]
    product: Int[np.ndarray, "product"]
    shape: tuple[int, int]

    def gather(self, values: Any, level: str) -> np.ndarray:
        """Values [block, height, ...] of a level ('row', 'series', 'product') in the panel's order; 0 for fillers.
        Of several processes all must call it at the same point."""
        flat = fetched(values).reshape(-1, *np.shape(values)[2:])
        at = getattr(self, level)
        return np.where((at >= 0).reshape(-1, *[1] * (flat.ndim - 1)), flat[np.maximum(at, 0)], 0)

    def scatter(self, values: np.ndarray, level: str) -> np.ndarray:
        """Values in the panel's order laid out as [block, height, ...]; 0 elsewhere."""
        at = getattr(self, level)
        flat = np.zeros((self.shape[0] * self.shape[1], *values.shape[1:]), values.dtype)
        flat[at[at >= 0]] = values[at >= 0]
        return flat.reshape(*self.shape, *values.shape[1:])


def cut(panel: Panel, uncentred: bool = False, multiple: int = 1) -> tuple[Blocks, Places]:
    """Blocks of a host panel (one shard), their number a multiple of `multiple`. NumPy arrays; no device is touched."""
    rows, series, product, category_of_row = _in_order(panel)
    block, at = _assign(product, category_of_row, panel.n_slots)
    n_blocks = -(-(int(block.max()) + 1) // multiple) * multiple
    height = _height_of(block, at)
    place = block * height + at
    series_slot, series_place = _slots(series, block, height, panel.n_series)
    product_slot, product_place = _slots(product, block, height, panel.n_products)
    places = Places(_inverse(rows, place, panel.n_rows), series_place, product_place, (n_blocks, height))
    product_of_slot = np.zeros(n_blocks * height, np.int32)
    product_of_slot[block * height + series_slot] = product_slot
    category = np.zeros(n_blocks, np.int32)
    category[block] = category_of_row
    category[int(block.max()) + 1 :] = category[int(block.max())]
    reference = np.asarray(panel.reference, np.float32) * np.float32(uncentred)

    def laid(values: Any) -> np.ndarray:
        return places.scatter(np.asarray(values), "row")

    return Blocks(
        x=laid(panel.log_price),
        weight=laid(panel.weight),
        units=laid(panel.units),
        covariates=_covariates(panel, places),
        period=None if panel.period is None else laid(panel.period),
        series=_filled(series_slot, place, (n_blocks, height)),
        product=product_of_slot.reshape(n_blocks, height),
        reference=places.scatter(reference, "series"),
        real_series=places.scatter(np.ones(panel.n_series, bool), "series"),
        real_product=places.scatter(np.ones(panel.n_products, bool), "product"),
        category=category,
        rows_are_series=bool(np.array_equal(series_slot, at)),
        series_are_products=bool(np.array_equal(product_slot, at)),
    ), places


def _in_order(panel: Panel) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows by category, product and series; and these three of each row."""
    series_of_row, product_of_series = np.asarray(panel.series_of_row), np.asarray(panel.product_of_series)
    rows = _rows_to_keep(panel, series_of_row)
    series = series_of_row[rows]
    product = product_of_series[series]
    category = np.asarray(panel.category_of_product)[product]
    order = np.lexsort((series, product, category))
    return rows[order], series[order], product[order], category[order]


def _rows_to_keep(panel: Panel, series_of_row: np.ndarray) -> np.ndarray:
    """Rows with data, and one row of each series that has none; rows that fill a block up are left out."""
    observed = np.asarray(panel.weight).any(axis=1)
    bare = np.asarray(panel.real_series).copy()
    bare[series_of_row[observed]] = False
    first = np.full(panel.n_series, -1)
    first[series_of_row[::-1]] = np.arange(panel.n_rows)[::-1]
    keep = observed.copy()
    keep[first[bare & (first >= 0)]] = True
    return np.flatnonzero(keep)


def _assign(product: np.ndarray, category: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Block of each row and its place there; rows come sorted by category and product, products are never cut."""
    _, start, count = np.unique(product, return_index=True, return_counts=True)
    order = np.argsort(start)
    count = count[order]
    category = category[start[order]]
    height = _best_height(np.bincount(category, count).astype(int), int(count.max()), slots)
    block = np.zeros(count.size, np.int64)
    at = np.zeros(count.size, np.int64)
    edges = np.flatnonzero(np.diff(category, prepend=-1, append=-2))
    number = 0
    for low, high in pairwise(edges):
        ends = np.cumsum(count[low:high])
        first = 0
        while first < ends.size:
            taken = ends[first - 1] if first else 0
            last = int(np.searchsorted(ends, taken + height, "right"))
            block[low + first : low + last] = number
            at[low + first : low + last] = ends[first:last] - count[low + first : low + last] - taken
            number, first = number + 1, last
    within = np.arange(product.size) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(block, count), np.repeat(at, count) + within


def _best_height(rows: np.ndarray, tallest_product: int, slots: int) -> int:
    limit = min(TALLEST, max(64, CELLS_PER_BLOCK // max(slots, 1)))
    if tallest_product >= limit:
        return tallest_product
    candidates = [h for h in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048) if tallest_product <= h <= limit] or [limit]
    rows = rows[rows > 0]
    return int(min(candidates, key=lambda h: int((-(-rows // h)).sum()) * (h + ROWS_PER_BLOCK_OVERHEAD)))


def _height_of(block: np.ndarray, at: np.ndarray) -> int:
    """The height in use: the tallest block, rounded up for the hardware."""
    return -(-(int(at.max()) + 1) // 4) * 4


def _slots(code: np.ndarray, block: np.ndarray, height: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Slot of each row's code in its block, counted from 0 by first appearance, and the flat place of every code."""
    new = np.diff(code, prepend=-1) != 0
    rank = np.cumsum(new) - 1
    first_of_block = np.full(int(block.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_of_block, block, rank)
    slot = (rank - first_of_block[block]).astype(np.int32)
    return slot, _inverse(code, block * height + slot, size)


def _inverse(code: np.ndarray, place: np.ndarray, size: int) -> np.ndarray:
    inverse = np.full(size, -1, np.int64)
    inverse[code] = place
    return inverse


def _filled(slot: np.ndarray, place: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Series slots of all rows; rows that fill up point at their own row's slot, which is no real series."""
    filled = np.tile(np.arange(shape[1], dtype=np.int32), shape[0])
    filled[place] = slot
    return filled.reshape(shape)


def _covariates(panel: Panel, places: Places) -> np.ndarray:
    if panel.n_covariates == 0:
        return np.zeros((places.shape[0], 0, places.shape[1], panel.n_slots), np.float32)
    laid = [places.scatter(np.asarray(column), "row") for column in panel.covariates]
    return np.stack(laid, axis=1)
