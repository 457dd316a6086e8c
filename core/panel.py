"""The sales of a market as arrays: the one value that every engine reads. No names, no pandas, no device.

A *series* is one product in one store (without stores: one product). A panel *row* holds one strip of a series: with
periods, its whole history, so row and series coincide; without periods, up to `slot` of its replicates, so that a
series with many replicates takes several rows. A *slot* is a column: period t in the dense layout; in the packed
layout the t-th observed cell, whose period `period` tells.

Rows are sorted by (category, product, store) and cut into blocks of equal height that never straddle categories: the
last block of a category is filled up with rows of weight 0, which point at the category's last series and add exactly
0 to every sum. Divided over `shards` devices, each holds a run of whole blocks with all rows of its products; index
arrays then count from the shard's own first series and product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array, Bool, Float, Int


def _static() -> Any:
    return field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class UnitHistogram:
    """How often each count of units occurs in each category: all that a dispersion needs to know of the cells."""

    units: Float[Array, "bin"]
    """A count of units above 0."""
    cells: Float[Array, "bin"]
    """Observed cells of the bin's category with that count."""
    category: Int[Array, "bin"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class UnitSums:
    """The sums through which units enter a log-linear likelihood: `core.panel_sums.sum_units` takes them from a panel's
    cells in float64; stored as float32."""

    series: Float[Array, "series"]
    """Units per series."""
    product_price: Float[Array, "product"]
    """Sum over a product's cells of units x centred log price."""
    category_period: Float[Array, "category period"]
    """Units per category and period; zero columns where there is no period."""
    category_covariate: Float[Array, "category covariate"]
    """Sum over a category's cells of units x covariate."""
    log_factorial: Float[Array, ""]
    """Sum over cells of log(units!)."""
    observations: Float[Array, "series"]
    """Observed cells per series; 0 for fillers."""
    log_mean: Float[Array, "series"]
    """Log of mean units per observed cell, of half a unit in all where nothing sold; 0 for fillers."""
    market_log_mean: Float[Array, ""]
    """Log of the market's mean units per observed cell; of half a unit in all where nothing sold."""
    constant: Float[Array, ""]
    """Sum over cells of units x log_mean - units - log(units!): what the log likelihood owes to no unknown."""
    histogram: UnitHistogram


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Panel:
    """Cells, the maps between levels, and the sums of units. Leaves are NumPy arrays until placed on devices."""

    log_price: Float[Array, "row slot"]
    """log(price / the series' own mean price); -0.1 is about 10 % cheaper than usual; 0 where missing."""
    weight: Float[Array, "row slot"]
    """1 where observed, 0 where missing or padding."""
    units: Float[Array, "row slot"]
    """Units sold, whole numbers; 0 where missing."""
    covariates: Float[Array, "covariate row slot"]
    """Covariates as used by the model (centred over observed cells where not 0/1); 0 where missing."""
    period: Int[Array, "row slot"] | None
    """Packed layout: the period of each slot. Dense layout: None."""
    series_of_row: Int[Array, "row"]
    product_of_series: Int[Array, "series"]
    category_of_product: Int[Array, "product"]
    """Always counted over the whole market."""
    category_of_block: Int[Array, "block"]
    reference: Float[Array, "series"]
    """Mean log price of each series: what was taken off log_price."""
    real_series: Bool[Array, "series"]
    """False for series that only fill up a shard."""
    real_product: Bool[Array, "product"]
    """False for products that only fill up a shard."""
    sums: UnitSums
    n_categories: int = _static()
    n_periods: int = _static()
    """0 where the file has no period column."""
    shards: int = _static()
    """Number of equal runs of blocks, one a device; 1 until placed."""
    batches: int = field(default=1, metadata={"static": True})
    """Of how many mini-batches of whole products this panel is one: its rows stand for that many times as many."""

    @property
    def filled(self) -> bool:
        """Whether some series and products may only fill up a shard or a batch."""
        return self.shards > 1 or self.batches > 1

    @property
    def n_rows(self) -> int:
        return self.log_price.shape[0]

    @property
    def n_slots(self) -> int:
        return self.log_price.shape[1]

    @property
    def n_series(self) -> int:
        """Length of the series axis, fillers included."""
        return self.product_of_series.shape[0]

    @property
    def n_products(self) -> int:
        """Length of the product axis, fillers included."""
        return self.category_of_product.shape[0]

    @property
    def n_covariates(self) -> int:
        return self.covariates.shape[0]

    @property
    def n_blocks(self) -> int:
        return self.category_of_block.shape[0]

    @property
    def block_rows(self) -> int:
        """Rows in each block."""
        return self.n_rows // self.n_blocks

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(self))


@dataclass(frozen=True)
class PanelLabels:
    """The names behind a panel's codes, and what tables show of each product beside its estimate.

    Tuples of text, in code order: `products[p]` is spelt as the file spelt it. `periods` are ISO dates where the file
    had dates, else its own text.
    """

    products: tuple[str, ...]
    categories: tuple[str, ...]
    stores: tuple[str, ...]
    """Empty where the file has no store column."""
    periods: tuple[str, ...]
    covariates: tuple[str, ...]
    store_of_series: tuple[int, ...]
    """Store code per series; empty without stores."""
    n_obs: Any
    """Int[product]: cells (aggregated rows) of each product that carry data."""
    price_sd: Any
    """Float[product]: sd of centred log price over the product's cells; 0 where its price never changes."""
    reference_price: Any
    """Float[series]: geometric mean price, in the file's currency."""
    mean_units: Any
    """Float[series]: mean units per observed cell."""
