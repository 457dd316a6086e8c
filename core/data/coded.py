"""Sales by cell in codes, in one order whatever the file's: what stands between names and a panel. NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int


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


def in_order(cells: Cells) -> Cells:
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


def series_of(cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series of each sorted cell; product and store of each series."""
    new = np.ones(cells.product.size, bool)
    new[1:] = (cells.product[1:] != cells.product[:-1]) | (cells.store[1:] != cells.store[:-1])
    series = np.cumsum(new, dtype=np.int64)
    series -= 1
    return series, cells.product[new], cells.store[new]
