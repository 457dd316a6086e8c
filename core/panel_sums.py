"""Sum a panel's units over everything that a log-linear likelihood asks of them. NumPy, float64, once per panel."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from core.panel import UnitHistogram, UnitSums

BINCOUNT_LIMIT = 10_000_000
"""Largest count that is tallied in an array of all counts; above it the distinct counts are sorted."""


def sum_units(
    *,
    log_price: Float[np.ndarray, "row slot"],
    weight: Float[np.ndarray, "row slot"],
    units: Float[np.ndarray, "row slot"],
    covariates: Float[np.ndarray, "covariate row slot"],
    period: Int[np.ndarray, "row slot"] | None,
    series_of_row: Int[np.ndarray, "row"],
    product_of_series: Int[np.ndarray, "series"],
    category_of_product: Int[np.ndarray, "product"],
    n_categories: int,
    n_periods: int,
) -> UnitSums:
    """The sums of a panel on one device (fields as in `Panel`; rows of a category lie together). Leaves: float32."""
    n_series, n_products = len(product_of_series), len(category_of_product)
    product_of_row = product_of_series[series_of_row]
    category_of_row = category_of_product[product_of_row]
    sold = np.zeros(n_series)
    observed = np.zeros(n_series)
    priced = np.zeros(n_products)
    by_period = np.zeros((n_categories, n_periods))
    by_covariate = np.zeros((n_categories, len(covariates)))
    bins: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for category in range(n_categories):
        rows = np.flatnonzero(category_of_row == category)
        if not len(rows):
            continue
        at = slice(rows[0], rows[-1] + 1)
        w, x = weight[at], log_price[at]
        y = np.where(w > 0, units[at], 0)
        sold += np.bincount(series_of_row[at], y.sum(axis=1, dtype=np.float64), n_series)
        observed += np.bincount(series_of_row[at], w.sum(axis=1, dtype=np.float64), n_series)
        priced += np.bincount(product_of_row[at], np.einsum("rt,rt->r", y, x, dtype=np.float64), n_products)
        if n_periods:
            by_period[category] = (
                y.sum(axis=0, dtype=np.float64)
                if period is None
                else np.bincount(period[at].ravel(), y.ravel(), n_periods)
            )
        for k, z in enumerate(covariates):
            by_covariate[category, k] = np.einsum("rt,rt->", y, z[at], dtype=np.float64)
        bins.append(_tally(y[(w > 0) & (y > 0)], category))
    values, cells, categories = (
        np.concatenate(part) if bins else np.zeros(0) for part in (zip(*bins, strict=True) if bins else ((), (), ()))
    )
    log_factorial = np.sum(cells * gammaln(values + 1.0))
    log_mean = np.log(np.maximum(sold, 0.5) / np.maximum(observed, 1.0), dtype=np.float32, casting="same_kind")
    log_mean = np.where(observed > 0, log_mean, np.float32(0))
    totals: dict[str, Any] = {
        "series": sold,
        "product_price": priced,
        "category_period": by_period,
        "category_covariate": by_covariate,
        "log_factorial": log_factorial,
        "observations": observed,
        "log_mean": log_mean,
        "market_log_mean": np.log(max(sold.sum(), 0.5) / max(observed.sum(), 1.0)),
        "constant": np.sum(sold * (log_mean.astype(np.float64) - 1.0)) - log_factorial,
    }
    histogram: dict[str, Any] = {
        "units": values.astype(np.float32),
        "cells": cells.astype(np.float32),
        "category": categories.astype(np.int32),
    }
    float32: dict[str, Any] = {name: np.asarray(total, np.float32) for name, total in totals.items()}
    return UnitSums(**float32, histogram=UnitHistogram(**histogram))


def _tally(units: Float[np.ndarray, "cell"], category: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct counts above 0, how many cells have each, and the category repeated; all as float64 or int."""
    if len(units) and units.max() <= min(BINCOUNT_LIMIT, 50 * len(units)):
        cells = np.bincount(units.astype(np.int64))
        values = np.flatnonzero(cells).astype(np.float64)
        cells = cells[cells > 0].astype(np.float64)
    else:
        distinct, counts = np.unique(units, return_counts=True)
        values, cells = distinct.astype(np.float64), counts.astype(np.float64)
    return values, cells, np.full(len(values), category, np.int64)
