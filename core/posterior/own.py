"""Estimate every product's elasticity from its own rows alone, and tell how far pooling moved it.

Per product, a quasi-Poisson regression of units on log price with one level per series, time and covariate effects
held at their posterior means. Given its total, a series' units are multinomial over its cells, so the levels drop out
and one concave function of one unknown is left per product, whose score is

    sum_s Y[s] (mean of x under units - mean of x under p[s]),    p[s,t] proportional to exp(beta x[s,t] + offset[s,t])

with information sum_s Y[s] Var_p[s](x) (McCullagh & Nelder 1989, sections 6.4 and 9.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from core.inference.fit import Draws
from core.panel import Panel
from core.posterior.effects import mean_effects, offset

BOUND = 50.0
"""Elasticities beyond it mean that all sales fell on the lowest or highest price: no finite estimate."""
ITERATIONS = 60
TOLERANCE = 1e-7
CHUNK_CELLS = 100_000
"""Panel cells per pass: a few arrays of this size stay in the processor's cache."""
WORTH_CUTTING = 0.7
"""Share of products still moving below which the others' cells are left out: cutting them copies the rest."""
SAME_PRICE_SD = 1e-6
"""Spread of log price below which a price counts as never changed; float32 noise of a centred log is below it."""
NO_DISTANCE = 0.05
"""Own estimates closer than this to the category's elasticity had nowhere to move."""


@dataclass(frozen=True)
class OwnEstimates:
    """Elasticities without pooling, % units per % price. NaN where the price never changes, where nothing was sold,
    or where no finite estimate exists; `se` also where there are too few cells to judge the scatter."""

    estimate: Float[np.ndarray, "product"]
    se: Float[np.ndarray, "product"]
    """Quasi-Poisson standard error: Poisson's times the root of the Pearson dispersion, which counts at least 1."""


@dataclass(frozen=True)
class _Cells:
    """Rows of a few whole products; series and products counted from 0."""

    x: Float[np.ndarray, "row slot"]
    offset: Float[np.ndarray, "row slot"]
    """Log demand apart from level and price; -inf where missing."""
    units: Float[np.ndarray, "row slot"]
    series: Int[np.ndarray, "row"]
    product: Int[np.ndarray, "series"]
    n_products: int

    @cached_property
    def total(self) -> Float[np.ndarray, "series"]:
        """Units of each series."""
        return self.by_series(self.units.sum(axis=1))

    @cached_property
    def priced(self) -> Float[np.ndarray, "product"]:
        """Units times x of each product: what its score aims at."""
        return self.by_product(self.by_series(np.einsum("rs,rs->r", self.units, self.x)))

    def by_series(self, values: Float[np.ndarray, "row"]) -> Float[np.ndarray, "series"]:
        return np.bincount(self.series, values, minlength=len(self.product))

    def by_product(self, values: Float[np.ndarray, "series"]) -> Float[np.ndarray, "product"]:
        return np.bincount(self.product, values, minlength=self.n_products)

    def of_products(self, kept: Bool[np.ndarray, "product"]) -> _Cells:
        """The cells of some products alone, counted anew."""
        series = kept[self.product]
        rows = series[self.series]
        return _Cells(
            self.x[rows], self.offset[rows], self.units[rows],
            (np.cumsum(series) - 1)[self.series[rows]], (np.cumsum(kept) - 1)[self.product[series]], int(kept.sum()),
        )  # fmt: skip


def own_estimates(panel: Panel, draws: Draws) -> OwnEstimates:
    """One regression per product, vectorised over chunks of products. Source: module docstring."""
    effects = mean_effects(draws, panel.n_categories)
    start = np.zeros(panel.n_products)
    start[np.asarray(panel.real_product)] = draws.elasticity_product.mean(axis=0, dtype=np.float64)
    estimate = np.full(panel.n_products, np.nan)
    se = np.full(panel.n_products, np.nan)
    for rows, products in _chunks(panel):
        cells = _cells(panel, offset(effects, panel, rows), rows)
        estimate[products], se[products] = _fit(cells, start[products][: cells.n_products])
    return OwnEstimates(estimate, se)


def shrinkage(
    own: Float[np.ndarray, "product"],
    pooled: Float[np.ndarray, "product"],
    category: Float[np.ndarray, "product"],
) -> Float[np.ndarray, "product"]:
    """Share of the way from the own-data estimate to the category's elasticity that pooling moved a product.

    (own - pooled) / (own - category), kept within 0 and 1: 0 trusts the product's own rows alone, 1 has moved all the
    way to its category. 1 where the own rows say nothing; NaN where own estimate and category agree within 0.05.
    """
    distance = own - category
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((own - pooled) / distance, 0.0, 1.0)
    return np.where(np.isnan(own), 1.0, np.where(np.abs(distance) < NO_DISTANCE, np.nan, share))


def _chunks(panel: Panel) -> Iterator[tuple[slice, slice]]:
    """Runs of rows that hold whole products, with the products they hold."""
    product = np.asarray(panel.product_of_series)[np.asarray(panel.series_of_row)]
    first_row = np.searchsorted(product, np.arange(panel.n_products + 1))
    wanted = max(1, CHUNK_CELLS // max(1, panel.n_slots))
    start = 0
    while start < panel.n_products:
        end = int(np.searchsorted(first_row, first_row[start] + wanted, side="right")) - 1
        end = min(max(end, start + 1), panel.n_products)
        if first_row[end] > first_row[start]:
            yield slice(int(first_row[start]), int(first_row[end])), slice(start, end)
        start = end


def _cells(panel: Panel, effect: Float[np.ndarray, "row slot"], rows: slice) -> _Cells:
    series = np.asarray(panel.series_of_row)[rows]
    first, last = int(series[0]), int(series[-1])
    product = np.asarray(panel.product_of_series)[first : last + 1]
    observed = np.asarray(panel.weight)[rows] > 0
    return _Cells(
        x=np.where(observed, np.asarray(panel.log_price)[rows], 0.0).astype(np.float64),
        offset=np.where(observed, effect, -np.inf),
        units=np.where(observed, np.asarray(panel.units)[rows], 0.0).astype(np.float64),
        series=series - first,
        product=product - product[0],
        n_products=int(product[-1] - product[0]) + 1,
    )


def _fit(
    cells: _Cells, start: Float[np.ndarray, "product"]
) -> tuple[Float[np.ndarray, "product"], Float[np.ndarray, "product"]]:
    """Estimate and standard error per product, `start` being where to look first."""
    beta = _solve(cells, start)
    _, information, share = _score(cells, beta)
    told = _varies(cells) & (np.abs(beta) < 0.99 * BOUND) & (information > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(_dispersion(cells, share) / information)
    return np.where(told, beta, np.nan), np.where(told, se, np.nan)


def _solve(cells: _Cells, start: Float[np.ndarray, "product"]) -> Float[np.ndarray, "product"]:
    """Newton's method inside a bracket that the sign of the score narrows, so that it cannot run away. Products that
    have arrived leave the passes."""
    found, moving = np.clip(start, -BOUND / 2, BOUND / 2), np.arange(cells.n_products)
    beta, low, high = found.copy(), np.full(found.size, -BOUND), np.full(found.size, BOUND)
    for _ in range(ITERATIONS):
        score, information, _ = _score(cells, beta)
        low, high = np.where(score >= 0, beta, low), np.where(score <= 0, beta, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = beta + score / information
        after = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        still = np.abs(after - beta) >= TOLERANCE
        found[moving] = beta = after
        if not still.any():
            break
        if still.mean() < WORTH_CUTTING:
            moving, cells, beta, low, high = (
                moving[still],
                cells.of_products(still),
                beta[still],
                low[still],
                high[still],
            )
    return found


def _score(cells: _Cells, beta: Float[np.ndarray, "product"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score and information per product, and each cell's expected share of its series' units."""
    share = cells.offset + beta[cells.product[cells.series]][:, None] * cells.x
    top = np.full(len(cells.product), -np.inf)
    np.maximum.at(top, cells.series, share.max(axis=1))
    share -= np.where(np.isfinite(top), top, 0.0)[cells.series][:, None]
    np.exp(share, out=share)
    share /= np.maximum(cells.by_series(share.sum(axis=1)), 1.0)[cells.series][:, None]
    mean = cells.by_series(np.einsum("rs,rs->r", share, cells.x))
    apart = cells.x - mean[cells.series][:, None]
    variance = cells.by_series(np.einsum("rs,rs->r", share * apart, apart))
    score = cells.priced - cells.by_product(cells.total * mean)
    return score, cells.by_product(cells.total * variance), share


def _dispersion(cells: _Cells, share: np.ndarray) -> Float[np.ndarray, "product"]:
    """Pearson's statistic per degree of freedom, at least 1; NaN without a degree of freedom."""
    expected = share * cells.total[cells.series][:, None]
    counted = expected > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        pearson = np.where(counted, (cells.units - expected) ** 2 / expected, 0.0)
    freedom = cells.by_product(cells.by_series(counted.sum(axis=1)) - (cells.total > 0)) - 1
    statistic = cells.by_product(cells.by_series(pearson.sum(axis=1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(freedom > 0, np.maximum(statistic / freedom, 1.0), np.nan)


def _varies(cells: _Cells) -> np.ndarray:
    """Products whose price changes within at least one series that sold anything."""
    observed = np.isfinite(cells.offset) & (cells.total > 0)[cells.series][:, None]
    squares = cells.by_product(cells.by_series(np.sum(observed * cells.x**2, axis=1)))
    return squares > SAME_PRICE_SD**2 * np.maximum(cells.by_product(cells.by_series(observed.sum(axis=1))), 1)
