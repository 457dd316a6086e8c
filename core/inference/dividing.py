"""Divide a panel over devices by whole products: a host panel in, the same market as equal shards out.

Each shard holds a run of neighbouring products with all their rows, cut into blocks anew; shards are filled up to equal
size with blocks of weight 0 and with filler series and products. Index arrays then count within a shard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from core.panel import Panel

TALLEST_BLOCK = 256
"""Rows per block at most: 256 rows of 157 float32 cells stay in a core's own cache."""


def divide(panel: Panel, shards: int) -> Panel:
    """The panel as `shards` equal runs of blocks; the panel itself when one is asked for. NumPy arrays, no device."""
    if panel.shards != 1:
        raise ValueError(f"the panel is already divided over {panel.shards} devices")
    if shards == 1:
        return panel
    parts = _parts(panel, shards)
    height = _height([part.rows_by_category for part in parts])
    row, series, product, category_of_block = (
        _stack(group) for group in zip(*(_numbers(part, height) for part in parts), strict=True)
    )
    first_series = np.array([part.series[0] if part.series.size else 0 for part in parts])
    first_product = np.array([part.products[0] if part.products.size else 0 for part in parts])
    covariates = [_take(z, row) for z in panel.covariates]
    cells: dict[str, Any] = {
        "log_price": _take(panel.log_price, row),
        "weight": _take(panel.weight, row),
        "units": _take(panel.units, row),
        "covariates": np.stack(covariates) if covariates else np.zeros((0, row.size, panel.n_slots), np.float32),
        "period": None if panel.period is None else _take(panel.period, row),
        "series_of_row": _local(panel.series_of_row, row, first_series),
        "category_of_block": _continued(category_of_block).astype(np.int32).ravel(),
    }
    levels: dict[str, Any] = {
        "product_of_series": _local(panel.product_of_series, series, first_product),
        "category_of_product": _local(panel.category_of_product, product, np.zeros_like(first_product)),
        "reference": _take(panel.reference, series),
        "real_series": series.ravel() >= 0,
        "real_product": product.ravel() >= 0,
    }
    by_series = ("series", "observations", "log_mean")
    sums: dict[str, Any] = {name: _take(getattr(panel.sums, name), series) for name in by_series}
    sums["product_price"] = _take(panel.sums.product_price, product)
    return replace(panel, **cells, **levels, sums=replace(panel.sums, **sums), shards=shards)


def cut_fillers(values: np.ndarray, real: Bool[np.ndarray, "any"]) -> np.ndarray:
    """The last axis of `values` without fillers, in the undivided panel's order."""
    return values if real.all() else values[..., real]


def pad_fillers(values: np.ndarray, real: Bool[np.ndarray, "any"], fill: float = 0.0) -> np.ndarray:
    """The opposite of `cut_fillers`: fillers get `fill`."""
    if real.all():
        return values
    padded = np.full((*values.shape[:-1], real.size), fill, values.dtype)
    padded[..., real] = values
    return padded


@dataclass(frozen=True)
class _Part:
    """What one device gets: products, series and real rows by their numbers in the whole panel."""

    products: Int[np.ndarray, "product"]
    series: Int[np.ndarray, "series"]
    rows: Int[np.ndarray, "row"]
    category_of_row: Int[np.ndarray, "row"]
    n_categories: int

    @property
    def rows_by_category(self) -> Int[np.ndarray, "category"]:
        return np.bincount(self.category_of_row, minlength=self.n_categories)

    def blocks(self, height: int) -> tuple[Int[np.ndarray, "slot"], Int[np.ndarray, "block"]]:
        """Row number of each place in each block (-1: fill), and the category of each block."""
        places, categories = [], []
        for category in np.unique(self.category_of_row):
            rows = self.rows[self.category_of_row == category]
            blocks = -(-rows.size // height)
            places.append(np.append(rows, np.full(blocks * height - rows.size, -1)))
            categories.append(np.full(blocks, category))
        if not places:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate(places), np.concatenate(categories)


def _parts(panel: Panel, shards: int) -> list[_Part]:
    product_of_series = np.asarray(panel.product_of_series)
    category_of_product = np.asarray(panel.category_of_product)
    real_rows = np.flatnonzero(np.asarray(panel.weight).any(axis=1))
    series_of_row = np.asarray(panel.series_of_row)[real_rows]
    product_of_row = product_of_series[series_of_row]
    shard_of_product = _balanced(np.bincount(product_of_row, minlength=category_of_product.size), shards)
    parts = []
    for shard in range(shards):
        rows = shard_of_product[product_of_row] == shard
        parts.append(
            _Part(
                products=np.flatnonzero(shard_of_product == shard),
                series=np.flatnonzero(shard_of_product[product_of_series] == shard),
                rows=real_rows[rows],
                category_of_row=category_of_product[product_of_row[rows]],
                n_categories=panel.n_categories,
            )
        )
    return parts


def _balanced(rows: Int[np.ndarray, "product"], shards: int) -> Int[np.ndarray, "product"]:
    """Shard of each product: neighbours together, each cut where the rows so far are nearest to an equal share."""
    before = np.cumsum(rows) - rows
    middle = before + rows / 2
    return np.minimum((middle * shards / max(rows.sum(), 1)).astype(np.int64), shards - 1)


def _height(rows: list[Int[np.ndarray, "category"]]) -> int:
    """Rows per block that make the fullest shard smallest, one row's worth of work for every block included."""
    table = np.stack(rows)
    heights = np.arange(1, TALLEST_BLOCK + 1)
    cost = [(-(-table // height)).sum(axis=1).max() * (height + 1) for height in heights]
    return int(heights[np.argmin(cost)])


def _numbers(part: _Part, height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rows, categories = part.blocks(height)
    return rows, part.series, part.products, categories


def _stack(group: tuple[np.ndarray, ...]) -> Int[np.ndarray, "shard place"]:
    """Numbers of every shard side by side, filled up with -1 to the longest."""
    length = max(1, *(numbers.size for numbers in group))
    return np.stack([np.append(numbers, np.full(length - numbers.size, -1)) for numbers in group]).astype(np.int64)


def _take(values: Any, index: Int[np.ndarray, "shard place"]) -> np.ndarray:
    """Entries by number along the first axis; 0 for fillers."""
    taken = np.asarray(values)[index.ravel()]
    taken[index.ravel() < 0] = 0
    return taken


def _local(values: Any, index: Int[np.ndarray, "shard place"], first: np.ndarray) -> Int[np.ndarray, "place"]:
    """Entries by number, counted from each shard's own first; fillers repeat the entry before them."""
    taken = np.where(index < 0, -1, np.asarray(values)[index] - first[:, None])
    return _continued(taken).astype(np.int32).ravel()


def _continued(values: Int[np.ndarray, "shard place"]) -> Int[np.ndarray, "shard place"]:
    """Fillers (-1) repeat what stands before them; 0 where nothing does."""
    places = np.where(values >= 0, np.arange(values.shape[1]), 0)
    last = np.maximum.accumulate(places, axis=1)
    return np.maximum(np.take_along_axis(values, last, axis=1), 0)
