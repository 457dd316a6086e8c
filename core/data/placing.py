"""Decide where each cell of a market goes: the row and slot of a panel cut into blocks. NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from core.data.coded import Cells

Layout = Literal["auto", "dense", "packed"]
PACK_BELOW = 0.1
"""Share of filled cells under which the automatic layout packs."""
TALLEST_BLOCK = 256
"""Rows; 256 rows of 157 float32 cells stay in a core's own cache, and a big category still divides over devices."""
STRIP_WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Placement:
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
        """The values of all cells as [row, slot]; 0 where there is no cell."""
        laid: np.ndarray = np.zeros(shape[0] * shape[1], dtype)
        laid[self.position] = values
        return laid.reshape(shape)

    @classmethod
    def of(
        cls, cells: Cells, series: np.ndarray, product_of_series: np.ndarray, n_obs: np.ndarray, layout: Layout
    ) -> Placement:
        """Dense: a row a series, a slot a period. Packed: a slot an observed cell. Strips where there is no period."""
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
