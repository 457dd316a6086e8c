"""Draw a market whose elasticities are known: a plan and a seed in, arrays of sales and the truth behind them out.

The demand is that of the model's isoelastic form: log mean units = level + elasticity x centred log price + period
effect of the category (+ promotion effect). Prices are sticky, with promotions; how much they move differs by
product, and a few never move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from core.declare import declared, violations
from core.environment import free_memory_bytes
from core.errors import Problem, UserError

LIKELIHOODS = {
    "poisson": "Units vary as much as their mean.",
    "negbin": "Units vary more than their mean, each category by its own concentration.",
}
PROMOTION_DEPTHS = (0.1, 0.15, 0.2, 0.25, 0.33)
LARGEST_LOG_UNITS = 16.0
"""Expected units stay below e^16, about nine million a cell."""
TYPICAL_SEED = 9
"""Of the seeds 0 to 9 the one whose 90 % intervals hold most nearly 90 % of the truths both at 300 products x 52
weeks and at 500 x 104, so that a first look shows what is usual. The others range from 68 to 95 %."""
BYTES_PER_CELL = 100
"""Peak of memory while a market is drawn, measured: every array of prices, means and units is whole."""


@dataclass(frozen=True)
class MarketPlan:
    """Size and character of a simulated market. Raises UserError naming every field that is off."""

    products: int = declared(500, "Products", "Number of products", low=1, high=2_000_000)
    periods: int = declared(104, "Periods", "Number of weeks", low=1, high=2_000)
    categories: int = declared(10, "Categories", "Number of categories", low=1, high=10_000)
    likelihood: str = declared("negbin", "Likelihood", "How units scatter around demand", choices=LIKELIHOODS)
    mean_units: float = declared(20.0, "Mean units", "Mean units per product and week", low=1e-3, high=1e6)
    stores: int = declared(0, "Stores", "Number of stores; 0 leaves the store column out", low=0, high=10_000)
    covariate: bool = declared(False, "Promotion column", "Give promotions an effect of their own, beside the price")
    seed: int = declared(
        TYPICAL_SEED, "Seed", "Start of the random numbers: same seed, same market", low=0, high=2**31 - 1
    )
    filled: float = declared(1.0, "Filled", "Share of product-weeks that are observed", low=1e-3, high=1.0)
    constant_share: float = declared(0.02, "Fixed prices", "Share of products whose price never moves", low=0, high=1)
    elasticity_mean: float = declared(-2.0, "Mean elasticity", "The market's elasticity", low=-10, high=2)
    elasticity_category_scale: float = declared(
        0.4, "Categories", "Spread of categories around the market", low=0, high=10
    )
    elasticity_product_scale: float = declared(
        0.5, "Products", "Spread of products around their category", low=0, high=10
    )
    time_scale: float = declared(
        0.2, "Time effects", "Size of a week's effect on a category's log units", low=0, high=10
    )
    concentration: float = declared(
        4.0, "Concentration", "Typical concentration of the negative binomial", low=1e-2, high=1e6
    )

    def __post_init__(self) -> None:
        found = violations(self)
        if self.categories > self.products:
            found.append(f"categories={self.categories} are more than the {self.products} products")
        if found:
            raise UserError(Problem("market", what, "Change it and try again.", where="market") for what in found)


@dataclass(frozen=True)
class Truth:
    """What the market was drawn from. Elasticities in per cent of units per per cent of price."""

    elasticity_global: float
    elasticity_category: Float[np.ndarray, "category"]
    elasticity_product: Float[np.ndarray, "product"]
    level_series: Float[np.ndarray, "series"]
    time_effect: Float[np.ndarray, "category period"]
    covariate_category: Float[np.ndarray, "category"]
    """Effect of a promotion on log units; all 0 without the promotion column."""
    concentration_category: Float[np.ndarray, "category"]
    """Infinite for a Poisson market."""
    scales: dict[str, float]


@dataclass(frozen=True)
class Market:
    """Sales by cell, sorted by (product, store, period); products are numbered category by category."""

    plan: MarketPlan
    product: Int[np.ndarray, "cell"]
    store: Int[np.ndarray, "cell"]
    """All 0 without stores."""
    period: Int[np.ndarray, "cell"]
    price: Float[np.ndarray, "cell"]
    """Currency, whole cents."""
    units: Int[np.ndarray, "cell"]
    promotion: Bool[np.ndarray, "cell"]
    category_of_product: Int[np.ndarray, "product"]
    truth: Truth

    @property
    def n_cells(self) -> int:
        return self.product.shape[0]


def simulate(plan: MarketPlan) -> Market:
    """Draw the market of `plan`. Uses NumPy alone; the same plan gives the same market.

    Raises UserError where the market would not fit into the free memory.
    """
    _refuse_if_too_big(plan)
    rng = np.random.default_rng(plan.seed)
    stores = max(plan.stores, 1)
    category_of_product = np.arange(plan.products) * plan.categories // plan.products
    product_of_series = np.repeat(np.arange(plan.products), stores)
    price, promotion = _prices(rng, plan, category_of_product, stores)
    observed = _observed(rng, plan, price.shape)
    effects = _draw_effects(rng, plan, category_of_product, product_of_series)
    log_mean = _log_mean(plan, effects, price, promotion, observed, category_of_product[product_of_series])
    shift = np.log(plan.mean_units) - np.log(np.exp(log_mean, where=observed, out=np.zeros_like(log_mean)).sum())
    shift += np.log(observed.sum())
    mean = np.exp(np.minimum(log_mean + shift, LARGEST_LOG_UNITS))
    units = _scatter(rng, mean, effects.concentration_category[category_of_product[product_of_series]])
    series, period = np.nonzero(observed)
    return Market(
        plan=plan,
        product=product_of_series[series],
        store=series % stores,
        period=period,
        price=price[observed],
        units=units[observed],
        promotion=promotion[observed],
        category_of_product=category_of_product,
        truth=_shifted(effects, shift),
    )


def _refuse_if_too_big(plan: MarketPlan) -> None:
    needed, free = plan.products * max(plan.stores, 1) * plan.periods * BYTES_PER_CELL, free_memory_bytes()
    if needed > free:
        raise UserError(
            Problem(
                "market-too-big",
                f"Drawing this market takes about {needed / 1e9:,.1f} GB and {free / 1e9:,.1f} GB are free",
                "Ask for fewer products, periods or stores.",
                where="market",
            )
        )


def _draw_effects(
    rng: np.random.Generator, plan: MarketPlan, category_of_product: np.ndarray, product_of_series: np.ndarray
) -> Truth:
    n_categories, n_series = plan.categories, product_of_series.size
    category = plan.elasticity_mean + plan.elasticity_category_scale * rng.standard_normal(n_categories)
    product = category[category_of_product] + plan.elasticity_product_scale * rng.standard_normal(plan.products)
    level_category = 0.5 * rng.standard_normal(n_categories)
    level_product = level_category[category_of_product] + 0.8 * rng.standard_normal(plan.products)
    spread = 0.3 if plan.stores else 0.0
    promoted = 0.3 + 0.1 * rng.standard_normal(n_categories) if plan.covariate else np.zeros(n_categories)
    noisy = plan.concentration * np.exp(0.3 * rng.standard_normal(n_categories))
    return Truth(
        elasticity_global=plan.elasticity_mean,
        elasticity_category=category,
        elasticity_product=product,
        level_series=level_product[product_of_series] + spread * rng.standard_normal(n_series),
        time_effect=plan.time_scale * rng.standard_normal((n_categories, plan.periods)),
        covariate_category=promoted,
        concentration_category=noisy if plan.likelihood == "negbin" else np.full(n_categories, np.inf),
        scales={
            "elasticity_category_scale": plan.elasticity_category_scale,
            "elasticity_product_scale": plan.elasticity_product_scale,
            "time_scale": plan.time_scale,
        },
    )


def _prices(
    rng: np.random.Generator, plan: MarketPlan, category_of_product: np.ndarray, stores: int
) -> tuple[Float[np.ndarray, "series period"], Bool[np.ndarray, "series period"]]:
    """Shelf prices in currency, rounded to the cent, and where a promotion runs."""
    n_series = plan.products * stores
    shape = (n_series, plan.periods)
    usual = np.exp(rng.normal(1.3, 0.6, plan.categories)[category_of_product] + rng.normal(0, 0.4, plan.products))
    mobility = rng.gamma(2.0, 0.5, plan.products)
    mobility[rng.random(plan.products) < plan.constant_share] = 0.0
    mobility = np.repeat(mobility, stores)[:, None]
    by_store = np.exp(rng.normal(0, 0.03 if plan.stores else 0.0, n_series))[:, None]
    moves = (rng.random(shape) < 0.05) & (mobility > 0)
    steps = rng.normal(0.0, 0.06, shape) * mobility * moves
    base = np.repeat(usual, stores)[:, None] * by_store * np.exp(np.clip(np.cumsum(steps, axis=1), -0.7, 0.7))
    promotion = rng.random(shape) < 0.12 * np.minimum(mobility, 1.5)
    depth = rng.choice(PROMOTION_DEPTHS, shape)
    return np.maximum(np.round(base * (1 - depth * promotion), 2), 0.05), promotion


def _observed(rng: np.random.Generator, plan: MarketPlan, shape: tuple[int, int]) -> Bool[np.ndarray, "series period"]:
    """Which cells the market reports; every series keeps at least one, and every period occurs."""
    if plan.filled >= 1.0:
        return np.ones(shape, dtype=bool)
    observed = rng.random(shape) < plan.filled
    series = np.arange(shape[0])
    observed[series, rng.integers(0, shape[1], shape[0])] = True
    observed[np.arange(shape[1]) % shape[0], np.arange(shape[1])] = True
    return observed


def _log_mean(
    plan: MarketPlan,
    effects: Truth,
    price: np.ndarray,
    promotion: np.ndarray,
    observed: np.ndarray,
    category_of_series: np.ndarray,
) -> Float[np.ndarray, "series period"]:
    """Log mean units before the market's level is set."""
    log_price = np.log(price)
    centre = (log_price * observed).sum(axis=1) / observed.sum(axis=1)
    log_price -= centre[:, None]
    log_price *= np.repeat(effects.elasticity_product, max(plan.stores, 1))[:, None]
    log_price += effects.level_series[:, None]
    log_price += effects.time_effect[category_of_series]
    log_price += effects.covariate_category[category_of_series][:, None] * promotion
    return log_price


def _scatter(
    rng: np.random.Generator, mean: np.ndarray, concentration: Float[np.ndarray, "series"]
) -> Int[np.ndarray, "series period"]:
    if np.isinf(concentration).all():
        return rng.poisson(mean)
    shape = concentration[:, None]
    return rng.poisson(rng.gamma(shape, 1.0, mean.shape) * (mean / shape))


def _shifted(effects: Truth, shift: float) -> Truth:
    return replace(effects, level_series=effects.level_series + shift)
