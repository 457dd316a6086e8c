"""Markets, panels and draws made by hand for the tests of posterior and report: no engine, no encoder."""

from __future__ import annotations

import numpy as np

from core.environment import Environment
from core.inference.fit import Draws, Ending, Fit, Outcome, Timing
from core.inference.plan import FitPlan
from core.panel import Panel, PanelLabels
from core.panel_sums import sum_units

ENVIRONMENT = Environment(
    python="3.13", packages={"jax": "0.12"}, system="test", processor="test", cores=2, memory_gb=8.0, backend="cpu",
    devices=("cpu",),
)  # fmt: skip


def market(
    products: int = 12, periods: int = 30, categories: int = 3, stores: int = 1, mean_units: float = 20.0, seed: int = 0
) -> tuple[Panel, PanelLabels, Draws]:
    """A dense Poisson market with category x period effects, and draws scattered around its true values.

    The last product's price never changes; a tenth of the cells is missing.
    """
    random = np.random.default_rng(seed)
    category = np.sort(np.arange(products) % categories)
    product_of_series = np.repeat(np.arange(products), stores)
    n_series = products * stores
    beta = -2.0 + 0.5 * random.standard_normal(products)
    alpha = np.log(mean_units) + 0.3 * random.standard_normal(n_series)
    gamma = 0.2 * random.standard_normal((categories, periods))
    x = 0.15 * random.standard_normal((n_series, periods))
    x[product_of_series == products - 1] = 0.0
    weight = (random.random((n_series, periods)) > 0.1).astype(np.float32)
    reference = np.log(random.uniform(1, 9, n_series))
    centre = (x * weight).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    x = (x - centre) * weight
    eta = alpha[:, None] + beta[product_of_series][:, None] * x + gamma[category[product_of_series]]
    units = random.poisson(np.exp(eta)) * weight
    panel = panel_of(x, weight, units, product_of_series, category, reference, categories, periods)
    return panel, labels_of(panel, stores), draws_around(beta, alpha, gamma, category, categories, seed)


def panel_of(
    x, weight, units, product_of_series, category, reference, categories, periods, covariates=None, series_of_row=None
) -> Panel:  # fmt: skip
    """A dense one-shard panel of arrays; each category is one block of its own where heights agree."""
    rows, slots = x.shape
    cells = {
        "log_price": x.astype(np.float32),
        "weight": weight.astype(np.float32),
        "units": units.astype(np.float32),
        "covariates": (np.zeros((0, rows, slots)) if covariates is None else covariates).astype(np.float32),
        "period": None,
        "series_of_row": np.asarray(np.arange(rows) if series_of_row is None else series_of_row, np.int32),
        "product_of_series": np.asarray(product_of_series, np.int32),
        "category_of_product": np.asarray(category, np.int32),
        "n_categories": categories,
        "n_periods": periods,
    }
    product = cells["product_of_series"][cells["series_of_row"]]
    return Panel(
        **cells, category_of_block=cells["category_of_product"][product], reference=reference.astype(np.float32),
        real_series=np.ones(len(cells["product_of_series"]), bool), real_product=np.ones(len(category), bool),
        sums=sum_units(**cells), shards=1,
    )  # fmt: skip


def labels_of(panel: Panel, stores: int = 1) -> PanelLabels:
    """Names with the traps of real files: leading zeros, a product that looks like a formula."""
    weight, x = np.asarray(panel.weight, float), np.asarray(panel.log_price, float)
    product = np.asarray(panel.product_of_series)[np.asarray(panel.series_of_row)]
    n_obs = np.bincount(product, weight.sum(axis=1), minlength=panel.n_products)
    squares = np.bincount(product, (weight * x**2).sum(axis=1), minlength=panel.n_products)
    cells = np.bincount(np.asarray(panel.series_of_row), weight.sum(axis=1), minlength=panel.n_series)
    return PanelLabels(
        products=tuple(f"{code:05d}" for code in range(panel.n_products)),
        categories=tuple(f"category {code}" for code in range(panel.n_categories)),
        stores=tuple(f"store {code}" for code in range(stores)) if stores > 1 else (),
        periods=tuple(
            str(np.datetime64("2024-01-01") + np.timedelta64(7 * week, "D")) for week in range(panel.n_periods)
        ),
        covariates=tuple(f"promo {k}" for k in range(panel.n_covariates)),
        store_of_series=tuple(np.arange(panel.n_series) % stores) if stores > 1 else (),
        n_obs=n_obs.astype(np.int64),
        price_sd=np.sqrt(squares / np.maximum(n_obs, 1)),
        reference_price=np.exp(np.asarray(panel.reference, float)),
        mean_units=np.asarray(panel.sums.series) / np.maximum(cells, 1),
    )


def draws_around(beta, alpha, gamma, category, categories, seed=0, n=400, sd=0.1) -> Draws:
    """Normal draws of sd `sd` around given values; a category's mean is the mean of its products."""
    random = np.random.default_rng(seed + 1)
    means = np.array([beta[category == c].mean() for c in range(categories)])

    def around(values, spread):
        return (values + spread * random.standard_normal((n, *np.shape(values)))).astype(np.float32)

    return Draws(
        elasticity_global=around(means.mean(), sd),
        elasticity_category=around(means, sd),
        elasticity_product=around(beta, sd),
        level_series=around(alpha, 0.02),
        others={
            "time_effect": around(gamma, 0.01),
            "elasticity_product_scale": np.abs(around(0.5, 0.05)),
        },
    )


def fit_of(plan: FitPlan | None = None, diagnostics=None, usable: bool = True) -> Fit:
    """A fit that ended; its state is empty because draws come from elsewhere."""
    outcome = Outcome(Ending.FINISHED, "All 100 steps done.", usable)
    return Fit(
        plan=plan or FitPlan(), state={}, losses=np.linspace(900.0, 500.0, 100), outcome=outcome,
        timing=Timing(1.5, 2.0, 100), environment=ENVIRONMENT, diagnostics=diagnostics or {},
    )  # fmt: skip
