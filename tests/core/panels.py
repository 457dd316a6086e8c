"""Small panels of simulated markets for the tests of model and inference."""

from __future__ import annotations

import numpy as np

from core.data.coded import Cells
from core.data.markets import panel_of_market
from core.data.paneling import panel_of_cells
from core.data.placing import Layout
from core.panel import Panel
from core.simulation import MarketPlan, simulate


def market_panel(layout: Layout = "dense", **plan) -> Panel:
    """The panel of a market with gaps; `plan` overrides fields of MarketPlan."""
    defaults = {"products": 12, "periods": 9, "categories": 3, "mean_units": 8.0, "filled": 0.8, "seed": 3}
    return panel_of_market(simulate(MarketPlan(**{**defaults, **plan})), layout)[0]


def replicate_panel(products: int = 5, rows: int = 60, seed: int = 0) -> Panel:
    """A market without periods: every row a replicate, very unevenly spread over products."""
    random = np.random.default_rng(seed)
    product = np.sort(np.concatenate([np.arange(products), random.integers(0, products, rows) ** 2 // products]))
    cells = Cells(
        product=product,
        store=np.zeros_like(product),
        period=None,
        log_price=random.normal(1.0, 0.2, product.size),
        units=random.poisson(6.0, product.size).astype(float),
        covariates=(random.random((1, product.size)) < 0.3).astype(float),
        category_of_product=np.arange(products) * 2 // products,
        n_categories=2,
        n_periods=0,
    )
    return panel_of_cells(cells)[0]
