"""Sum a panel's units over everything that a log-linear likelihood asks of them. NumPy, float64, once per panel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from core.panel import UnitHistogram, UnitSums

BINCOUNT_LIMIT = 10_000_000
"""Largest number of bins that is tallied in an array of them all; above it the cells are sorted."""
STRETCH_CELLS = 1 << 20
"""Cells looked at together, unless one category has more: what is made of them on the way stays small."""


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
    product_of_row = product_of_series[series_of_row]
    category_of_row = category_of_product[product_of_row]
    by_period = np.zeros((n_categories, n_periods))
    by_row, bins = [np.zeros((3 + len(covariates), 0))], [(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))]
    for at in _stretches(category_of_row, log_price.shape[1]):
        y = np.where(weight[at] > 0, units[at], 0)
        by_row.append(_row_sums(y, weight[at], log_price[at], covariates[:, at]))
        bins.append(_tally(y, category_of_row[at]))
        if n_periods:
            _add_periods(by_period, y, category_of_row[at], None if period is None else period[at])
    units_in_row, cells_of_row, price_in_row, *covariates_in_row = list(np.concatenate(by_row, axis=1))
    of_category = [np.bincount(category_of_row, row, n_categories) for row in covariates_in_row]
    histogram, log_factorial = _histogram(bins)
    totals: dict[str, Any] = {
        "product_price": np.bincount(product_of_row, price_in_row, len(category_of_product)),
        "category_period": by_period,
        "category_covariate": np.stack(of_category, axis=1) if of_category else np.zeros((n_categories, 0)),
        **_levels(
            sold=np.bincount(series_of_row, units_in_row, len(product_of_series)),
            observed=np.bincount(series_of_row, cells_of_row, len(product_of_series)),
            log_factorial=log_factorial,
        ),
    }
    float32: dict[str, Any] = {name: np.asarray(total, np.float32) for name, total in totals.items()}
    return UnitSums(**float32, histogram=histogram)


def _stretches(category_of_row: Int[np.ndarray, "row"], n_slots: int) -> Iterator[slice]:
    """Runs of rows that never cut a category."""
    ends = [*_starts(category_of_row)[1:].tolist(), category_of_row.size]
    height = STRETCH_CELLS // max(n_slots, 1)
    first = last = 0
    for end in ends:
        if end - first > height and last > first:
            yield slice(first, last)
            first = last
        last = end
    if last > first:
        yield slice(first, last)


def _starts(values: np.ndarray) -> Int[np.ndarray, "run"]:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: values.size])


def _row_sums(
    y: Float[np.ndarray, "row slot"],
    weight: Float[np.ndarray, "row slot"],
    log_price: Float[np.ndarray, "row slot"],
    covariates: Float[np.ndarray, "covariate row slot"],
) -> Float[np.ndarray, "sum row"]:
    """Per row: units, observed cells, units x log price, and units x each covariate."""
    by_row = [y.sum(axis=1, dtype=np.float64), weight.sum(axis=1, dtype=np.float64)]
    by_row += [np.einsum("rt,rt->r", y, by, dtype=np.float64) for by in (log_price, *covariates)]
    return np.stack(by_row)


def _add_periods(
    by_period: Float[np.ndarray, "category period"],
    y: Float[np.ndarray, "row slot"],
    category_of_row: Int[np.ndarray, "row"],
    period: Int[np.ndarray, "row slot"] | None,
) -> None:
    """Add the units of a stretch of whole categories to their rows of `by_period`."""
    starts = _starts(category_of_row)
    categories = category_of_row[starts]
    if period is None:
        by_period[categories] += np.add.reduceat(y, starts, axis=0, dtype=np.float64)
        return
    nth = np.repeat(np.arange(starts.size), np.diff(starts, append=category_of_row.size))
    shape = (starts.size, by_period.shape[1])
    cell = nth[:, None] * shape[1] + period
    by_period[categories] += np.bincount(cell.ravel(), y.ravel(), shape[0] * shape[1]).reshape(shape)


def _levels(
    sold: Float[np.ndarray, "series"], observed: Float[np.ndarray, "series"], log_factorial: np.floating[Any]
) -> dict[str, Any]:
    """What follows from the units and the observed cells of each series."""
    log_mean = np.log(np.maximum(sold, 0.5) / np.maximum(observed, 1.0), dtype=np.float32, casting="same_kind")
    log_mean = np.where(observed > 0, log_mean, np.float32(0))
    return {
        "series": sold,
        "observations": observed,
        "log_mean": log_mean,
        "market_log_mean": np.log(max(sold.sum(), 0.5) / max(observed.sum(), 1.0)),
        "log_factorial": log_factorial,
        "constant": np.sum(sold * (log_mean.astype(np.float64) - 1.0)) - log_factorial,
    }


def _histogram(bins: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[UnitHistogram, np.floating[Any]]:
    """The bins of all stretches together, and the sum over their cells of log(units!)."""
    values, cells, category = (np.concatenate(part) for part in zip(*bins, strict=True))
    arrays: dict[str, Any] = {
        "units": values.astype(np.float32),
        "cells": cells.astype(np.float32),
        "category": category.astype(np.int32),
    }
    return UnitHistogram(**arrays), np.sum(cells * gammaln(values + 1.0))


def _tally(
    y: Float[np.ndarray, "row slot"], category_of_row: Int[np.ndarray, "row"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct counts above 0 in each category, how many cells have each (both float64), and the category."""
    sold = y > 0
    units, category = y[sold], np.repeat(category_of_row, np.count_nonzero(sold, axis=1))
    if not units.size:
        return np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
    first = int(category.min())
    span = float(units.max()) + 1.0
    n_bins = (int(category.max()) - first + 1) * span
    if n_bins <= min(BINCOUNT_LIMIT, 50 * units.size):
        tally = np.bincount((category - first) * int(span) + units.astype(np.intp))
        found = np.flatnonzero(tally)
        return (found % int(span)).astype(np.float64), tally[found].astype(np.float64), found // int(span) + first
    order = np.lexsort((units, category))
    units, category = units[order], category[order]
    starts = np.flatnonzero(np.append(True, (units[1:] != units[:-1]) | (category[1:] != category[:-1])))
    return units[starts].astype(np.float64), np.diff(starts, append=units.size).astype(np.float64), category[starts]
