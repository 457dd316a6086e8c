"""Give a simulated market names and a calendar: arrays in; files, a source or a panel out, the truth beside them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.data.coded import Cells
from core.data.encoding import labels_of
from core.data.market_names import shop_names
from core.data.paneling import panel_of_cells
from core.data.placing import Layout
from core.data.source import Source
from core.errors import Problem, UserError
from core.panel import Panel, PanelLabels
from core.simulation import Market, MarketPlan, simulate

FIRST_WEEK = np.datetime64("2023-01-02", "D")
DEMO_MARKET = MarketPlan(
    products=500, periods=104, categories=10, likelihood="negbin", mean_units=20.0, seed=5, filled=0.97
)
DEMO_NAME = "Demo market"
WRITABLE = (".csv", ".parquet")


@dataclass(frozen=True)
class MarketNames:
    """What the codes of a market are called; each tuple in natural order, products within their category."""

    products: tuple[str, ...]
    categories: tuple[str, ...]
    stores: tuple[str, ...]


def market_names(market: Market, shop: bool = False) -> MarketNames:
    """Plain code names, or with `shop` the names of groceries, which files and pages use."""
    plan = market.plan
    stores = code_names("store", plan.stores)
    if shop:
        return MarketNames(*shop_names(market.category_of_product, plan.categories), stores)
    return MarketNames(code_names("product", plan.products), code_names("category", plan.categories), stores)


def code_names(kind: str, count: int) -> tuple[str, ...]:
    """Names such as 'product 0042', as wide as the largest needs."""
    width = len(str(count))
    return tuple(f"{kind} {number:0{width}d}" for number in range(1, count + 1))


def weeks(count: int) -> np.ndarray:
    """Mondays, datetime64[D], from the market's first week on."""
    return FIRST_WEEK + 7 * np.arange(count)


def market_frame(market: Market, shop: bool = True) -> pd.DataFrame:
    """The market as a sales file has it: product, category, period, price, units (and store, promotion)."""
    plan, names = market.plan, market_names(market, shop)
    columns: dict[str, Any] = {
        "product": _named(market.product, names.products),
        "category": _named(market.category_of_product[market.product], names.categories),
        "period": weeks(plan.periods)[market.period].astype("datetime64[s]"),
        "price": market.price,
        "units": market.units,
    }
    if plan.stores:
        columns["store"] = _named(market.store, names.stores)
    if plan.covariate:
        columns["promotion"] = market.promotion.astype(np.int64)
    return pd.DataFrame(columns)


def truth_frame(market: Market, shop: bool = True) -> pd.DataFrame:
    """The market's true elasticities: level (global, category, product), category, product, elasticity."""
    truth, names = market.truth, market_names(market, shop)
    categories = pd.array(names.categories, dtype="str")
    return pd.DataFrame(
        {
            "level": ["global"] + ["category"] * len(categories) + ["product"] * len(names.products),
            "category": ["", *categories, *categories[market.category_of_product]],
            "product": [""] * (1 + len(categories)) + list(names.products),
            "elasticity": [
                truth.elasticity_global,
                *truth.elasticity_category.tolist(),
                *truth.elasticity_product.tolist(),
            ],
        }
    )


def write_market(market: Market, path: str | Path) -> None:
    """Write the market as a sales file; the suffix, .csv or .parquet, decides the format. Raises UserError."""
    _write(market_frame(market), path)


def write_truth(market: Market, path: str | Path) -> None:
    """Write the true elasticities; the suffix, .csv or .parquet, decides the format. Raises UserError."""
    _write(truth_frame(market), path)


def check_writable(path: str | Path) -> None:
    """Raise UserError where a market cannot be written to `path`: wrong suffix, no such folder, a folder itself."""
    path = Path(path)
    problems = []
    if path.suffix.lower() not in WRITABLE:
        problems.append(
            Problem("suffix", f"'{path.name}' ends neither in .csv nor in .parquet", "End it in one.", where=str(path))
        )
    if not path.absolute().parent.is_dir():
        problems.append(
            Problem("no-folder", f"There is no folder {path.parent}", "Make the folder first.", where=str(path))
        )
    if path.is_dir():
        problems.append(Problem("is-a-folder", f"{path} is a folder", "Name a file in it.", where=str(path)))
    if problems:
        raise UserError(problems)


def market_source(market: Market, name: str = DEMO_NAME, shop: bool = True) -> Source:
    """The market as if it had been uploaded: it goes through the same checks. `sha256` is of plan and numbers."""
    frame = market_frame(market, shop)
    digest = hashlib.sha256(repr((market.plan, shop)).encode())
    for array in (market.product, market.period, market.price, market.units):
        digest.update(np.ascontiguousarray(array).tobytes())
    return Source(frame, name, int(frame.memory_usage(index=False).sum()), digest.hexdigest())


def demo_market() -> tuple[Source, pd.DataFrame]:
    """The market that every visitor finds ready, and its truth."""
    market = simulate(DEMO_MARKET)
    return market_source(market), truth_frame(market)


def panel_of_market(market: Market, layout: Layout = "auto") -> tuple[Panel, PanelLabels]:
    """The panel of a market without the way through a file; products keep the market's numbers."""
    plan, names = market.plan, market_names(market)
    cells = Cells(
        product=market.product,
        store=market.store,
        period=market.period,
        log_price=np.log(market.price),
        units=market.units.astype(np.float64),
        covariates=market.promotion[None].astype(np.float64) if plan.covariate else np.zeros((0, market.n_cells)),
        category_of_product=market.category_of_product,
        n_categories=plan.categories,
        n_periods=plan.periods,
    )
    panel, statistics = panel_of_cells(cells, layout)
    return panel, labels_of(
        panel,
        statistics,
        products=names.products,
        categories=names.categories,
        stores=names.stores,
        periods=tuple(str(week) for week in weeks(plan.periods)),
        covariates=("promotion",) if plan.covariate else (),
    )


def _write(frame: pd.DataFrame, path: str | Path) -> None:
    check_writable(path)
    path = Path(path)
    # Under another name first: a full disk leaves what was there before, never half a market.
    partial = path.with_name(f".{path.name}.part")
    try:
        if path.suffix.lower() == ".csv":
            frame.to_csv(partial, index=False, date_format="%Y-%m-%d")
        else:
            frame.to_parquet(partial, index=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _named(codes: np.ndarray, names: tuple[str, ...]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype="str"))
