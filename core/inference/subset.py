"""Cut the panel of a few products out of a market's, with the categories and rows that are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int

from core.panel import Panel
from core.panel_sums import sum_units


def subset(panel: Panel, products: Sequence[int]) -> Panel:
    """The host panel of `products` (their numbers, in increasing order), renumbered from 0; categories without any of
    them drop out, periods stay. One block per category: meant for small markets."""
    chosen = np.unique(np.asarray(products, np.int64))
    series_of_row, product_of_series = np.asarray(panel.series_of_row), np.asarray(panel.product_of_series)
    category_of_product = np.asarray(panel.category_of_product)
    series = np.flatnonzero(np.isin(product_of_series, chosen))
    real = np.asarray(panel.weight).any(axis=1)
    rows = np.flatnonzero(np.isin(series_of_row, series) & real)
    categories = np.unique(category_of_product[chosen])
    category_of_row = category_of_product[product_of_series[series_of_row[rows]]]
    source, filler, category_of_block = _blocks(category_of_row, categories)
    rows = rows[source]

    def cells(values: Any) -> np.ndarray:
        taken: np.ndarray = np.asarray(values)[..., rows, :].copy()
        taken[..., filler, :] = 0
        return taken

    arrays: dict[str, Any] = {
        "log_price": cells(panel.log_price),
        "weight": cells(panel.weight),
        "units": cells(panel.units),
        "covariates": cells(panel.covariates),
        "period": None if panel.period is None else cells(panel.period),
        "series_of_row": np.searchsorted(series, series_of_row[rows]).astype(np.int32),
        "product_of_series": np.searchsorted(chosen, product_of_series[series]).astype(np.int32),
        "category_of_product": np.searchsorted(categories, category_of_product[chosen]).astype(np.int32),
        "n_categories": categories.size,
        "n_periods": panel.n_periods,
    }
    others: dict[str, Any] = {
        "category_of_block": np.searchsorted(categories, category_of_block).astype(np.int32),
        "reference": np.asarray(panel.reference)[series],
        "real_series": np.ones(series.size, bool),
        "real_product": np.ones(chosen.size, bool),
    }
    return replace(panel, sums=sum_units(**arrays), **arrays, **others)


def _blocks(
    category_of_row: Int[np.ndarray, "row"], categories: Int[np.ndarray, "category"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row behind each row of equal blocks, one a category; which of them only fill up; category of each block."""
    height = int(np.bincount(np.searchsorted(categories, category_of_row)).max())
    source, filler = [], []
    for category in categories:
        own = np.flatnonzero(category_of_row == category)
        source.append(np.concatenate([own, np.full(height - own.size, own[-1])]))
        filler.append(np.arange(height) >= own.size)
    return np.concatenate(source), np.concatenate(filler), categories
