"""Encode a validated sales table as the arrays the model reads. Last module that sees pandas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.data.coded import Cells
from core.data.naming import NameCodes, ranks_of
from core.data.own_effects import FEW_PRODUCTS, own_columns, own_names
from core.data.paneling import CellStatistics, panel_of_cells
from core.data.placing import Layout
from core.data.sales import SalesTable, covariate_column
from core.panel import Panel, PanelLabels

PIECE_ROWS = 1 << 17
"""Rows that are looked up at a time, so that no 64-bit index of a whole column is held."""
ONE_CATEGORY = "all products"


def encode(sales: SalesTable, layout: Layout = "auto") -> tuple[Panel, PanelLabels]:
    """The panel of a sales table and the names behind its codes. Float32 NumPy arrays; no device is touched.

    Raises ValueError when a product has two categories or a cell occurs twice: validation leaves neither.
    """
    frame = sales.frame
    product = NameCodes.of(frame["product"])
    category = NameCodes.of(frame["category"]) if "category" in frame else None
    store = NameCodes.of(frame["store"]) if "store" in frame else None
    period, periods = _period_codes(frame["period"]) if "period" in frame else (None, ())
    category_of_name = _category_of_name(product, category)
    order = sorted(product.order, key=lambda code: category_of_name[code])
    cells = Cells(
        product=ranks_of(order, len(product.texts))[product.codes],
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
    return ranks_of(present.tolist(), len(column.cat.categories))[codes], tuple(
        str(name) for name in column.cat.categories[present]
    )


def _category_of_name(product: NameCodes, category: NameCodes | None) -> Int[np.ndarray, "text"]:
    """Rank of the category of each product text."""
    of_product = np.zeros(len(product.texts), np.int64)
    if category is None:
        return of_product
    of_product[product.codes] = category.codes
    if not np.array_equal(of_product[product.codes], category.codes):
        raise ValueError("a product belongs to two categories")
    return ranks_of(category.order, len(category.texts))[of_product]


def _covariates(frame: pd.DataFrame, names: tuple[str, ...]) -> Float[np.ndarray, "covariate cell"]:
    columns = [frame[covariate_column(name)].to_numpy(np.float64) for name in names]
    return np.stack(columns) if columns else np.zeros((0, len(frame)))
