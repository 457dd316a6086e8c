"""Give a simulated market names and a calendar: arrays in; files, a source or a panel out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from core.data.encoding import Cells, Layout, labels_of, panel_of_cells
from core.panel import Panel, PanelLabels
from core.simulation import Market

FIRST_WEEK = np.datetime64("2022-01-03", "D")


def panel_of_market(market: Market, layout: Layout = "auto") -> tuple[Panel, PanelLabels]:
    """The panel of a market without the way through a file; products keep the market's numbers."""
    plan = market.plan
    stores = np.unique(market.store).size if plan.stores else 0
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
        products=code_names("product", plan.products),
        categories=code_names("category", plan.categories),
        stores=code_names("store", stores),
        periods=tuple(str(week) for week in weeks(plan.periods)),
        covariates=("promotion",) if plan.covariate else (),
    )


def code_names(kind: str, count: int) -> tuple[str, ...]:
    """Names such as 'product 0042', as wide as the largest needs."""
    width = len(str(count))
    return tuple(f"{kind} {number:0{width}d}" for number in range(1, count + 1))


def weeks(count: int) -> np.ndarray:
    """Mondays, datetime64[D], from the market's first week on."""
    return FIRST_WEEK + 7 * np.arange(count)


def market_frame(market: Market) -> pd.DataFrame:
    """The market as a sales file has it: product, category, period, price, units (and store, promotion)."""
    plan = market.plan
    product = _named(market.product, code_names("product", plan.products))
    category = _named(market.category_of_product[market.product], code_names("category", plan.categories))
    columns: dict[str, Any] = {
        "product": product,
        "category": category,
        "period": weeks(plan.periods)[market.period].astype("datetime64[s]"),
        "price": market.price,
        "units": market.units,
    }
    if plan.stores:
        columns["store"] = _named(market.store, code_names("store", plan.stores))
    if plan.covariate:
        columns["promotion"] = market.promotion.astype(np.int64)
    return pd.DataFrame(columns)


def _named(codes: np.ndarray, names: tuple[str, ...]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype="str"))
