"""Describe a sales table before anything is fitted: its size, how prices vary by product, units and price over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.data.encoding import ONE_CATEGORY
from core.data.naming import natural_key
from core.data.sales import SalesTable

LITTLE_PRICE_SD = 0.02
"""Below this sd of log price, about 2 %, a product's own data say little about its elasticity."""
FEW_CELLS = 8
VERDICTS = {
    "good": "price varies enough to learn from",
    "little": "price hardly varies: leans on its category",
    "few": "few rows: leans on its category",
    "never": "price never changes: its elasticity is its category's",
}


@dataclass(frozen=True)
class Overview:
    """Figures of a sales table. Counts are of cells: aggregated rows."""

    cells: int
    products: int
    categories: int
    stores: int
    """0 without a store column."""
    periods: int
    """0 without a period column."""
    first_period: str
    last_period: str
    zero_share: float
    """Share of cells in which nothing was sold."""
    filled: float
    """Share of series-periods that are observed; 1 without periods."""
    total_units: float
    mean_price: float
    """Mean price weighted by units, in the file's currency."""
    by_product: pd.DataFrame
    """product, category, rows, units, zero_share, mean_price, price_changes, price_sd (of log price), verdict."""
    by_period: pd.DataFrame
    """period, units, mean_price (weighted by units), rows; empty without periods."""


def overview(sales: SalesTable) -> Overview:
    """Figures and tables of a sales table; one pass over its cells for each."""
    frame = sales.frame
    units, price = frame["units"].to_numpy(), frame["price"].to_numpy()
    by_product, by_period = _by_product(frame), _by_period(frame)
    n_periods = len(by_period)
    series = _series(frame)
    n_series = int(series.max()) + 1
    return Overview(
        cells=len(frame),
        products=len(by_product),
        categories=by_product["category"].nunique(),
        stores=frame["store"].nunique() if "store" in frame else 0,
        periods=n_periods,
        first_period=str(by_period["period"].iloc[0])[:10] if n_periods else "",
        last_period=str(by_period["period"].iloc[-1])[:10] if n_periods else "",
        zero_share=float((units == 0).mean()),
        filled=len(frame) / (n_series * n_periods) if n_periods else 1.0,
        total_units=float(units.sum()),
        mean_price=float(units @ price / units.sum()) if units.sum() else float(price.mean()),
        by_product=by_product,
        by_period=by_period,
    )


def _series(frame: pd.DataFrame) -> np.ndarray:
    codes, _ = pd.factorize(frame["product"])
    if "store" not in frame:
        return codes
    stores, names = pd.factorize(frame["store"])
    return pd.factorize(codes.astype(np.int64) * len(names) + stores)[0]


def _by_product(frame: pd.DataFrame) -> pd.DataFrame:
    codes, names = pd.factorize(frame["product"])
    series = _series(frame)
    units, log_price = frame["units"].to_numpy(), np.log(frame["price"].to_numpy())
    rows = np.bincount(codes)
    centred = log_price - (np.bincount(series, log_price) / np.bincount(series))[series]
    centred[np.abs(centred) < 1e-9] = 0.0
    price_sd = np.sqrt(np.bincount(codes, centred * centred) / rows)
    sold = np.bincount(codes, units)
    price = np.bincount(codes, np.exp(log_price)) / rows
    first = np.zeros(len(names), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    category = frame["category"].astype(str).to_numpy()[first] if "category" in frame else ONE_CATEGORY
    table = pd.DataFrame(
        {
            "product": [str(name) for name in names],
            "category": category,
            "rows": rows,
            "units": sold,
            "zero_share": np.bincount(codes, units == 0) / rows,
            "mean_price": price,
            "price_changes": _price_changes(frame, codes, series, len(names)),
            "price_sd": price_sd,
        }
    )
    table["verdict"] = _verdicts(rows, price_sd)
    order = sorted(range(len(table)), key=lambda row: natural_key(str(names[row])))
    return table.iloc[order].sort_values("category", kind="stable", key=_natural_rank).reset_index(drop=True)


def _natural_rank(column: pd.Series) -> pd.Series:
    names = sorted(column.unique(), key=natural_key)
    return column.map({name: rank for rank, name in enumerate(names)})


def _price_changes(frame: pd.DataFrame, codes: np.ndarray, series: np.ndarray, n_products: int) -> np.ndarray:
    """Times the price differs from the series' price before; without periods: different prices less one."""
    price = np.round(frame["price"].to_numpy(), 6)
    if "period" not in frame:
        pairs = pd.DataFrame({"series": series, "code": codes, "price": price}).drop_duplicates()
        return np.bincount(pairs["code"], minlength=n_products) - _series_count(codes, series, n_products)
    period = frame["period"]
    when = period.cat.codes.to_numpy() if isinstance(period.dtype, pd.CategoricalDtype) else period.to_numpy()
    order = np.lexsort((when, series))
    moved = (np.diff(price[order]) != 0) & (np.diff(series[order]) == 0)
    return np.bincount(codes[order][1:], moved, n_products).astype(np.int64)


def _series_count(codes: np.ndarray, series: np.ndarray, n_products: int) -> np.ndarray:
    _, first = np.unique(series, return_index=True)
    return np.bincount(codes[first], minlength=n_products)


def _verdicts(rows: np.ndarray, price_sd: np.ndarray) -> list[str]:
    keys = np.select([price_sd == 0, rows < FEW_CELLS, price_sd < LITTLE_PRICE_SD], ["never", "few", "little"], "good")
    return [VERDICTS[key] for key in keys.tolist()]


def _by_period(frame: pd.DataFrame) -> pd.DataFrame:
    if "period" not in frame:
        return pd.DataFrame({"period": [], "units": [], "mean_price": [], "rows": []})
    units, price = frame["units"].to_numpy(), frame["price"].to_numpy()
    period = frame["period"]
    if isinstance(period.dtype, pd.CategoricalDtype):
        codes, present = pd.factorize(period.cat.codes.to_numpy(), sort=True)
        values = period.cat.categories[present]
    else:
        codes, when = pd.factorize(period.to_numpy(), sort=True)
        values = pd.Index(when)
    sold, rows = np.bincount(codes, units), np.bincount(codes)
    weighted, plain = np.bincount(codes, units * price), np.bincount(codes, price) / rows
    mean = np.where(sold > 0, weighted / np.where(sold > 0, sold, 1), plain)
    return pd.DataFrame({"period": values, "units": sold, "mean_price": mean, "rows": rows})
