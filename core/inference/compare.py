"""Put a finished fit beside NUTS on the same data: mean, sd and interval of every elasticity, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from core.errors import Problem, UserError
from core.inference import nuts
from core.inference.engines import ENGINES
from core.inference.fit import Draws, Fit, Watcher
from core.inference.subset import subset
from core.panel import Panel


@dataclass(frozen=True)
class Side:
    """One engine's estimates of the compared elasticities: the market's, the categories', the products', in a row."""

    mean: Float[np.ndarray, "elasticity"]
    sd: Float[np.ndarray, "elasticity"]
    lower: Float[np.ndarray, "elasticity"]
    upper: Float[np.ndarray, "elasticity"]


@dataclass(frozen=True)
class Comparison:
    """Two engines side by side on the same products. `level` is global, category or product; `number` counts in it."""

    level: tuple[str, ...]
    number: tuple[int, ...]
    fitted: Side
    nuts: Side
    nuts_fit: Fit

    @property
    def shift(self) -> Float[np.ndarray, "elasticity"]:
        """Difference of means in NUTS' sd."""
        return (self.fitted.mean - self.nuts.mean) / self.nuts.sd

    @property
    def sd_ratio(self) -> Float[np.ndarray, "elasticity"]:
        return self.fitted.sd / self.nuts.sd


def compare_with_nuts(
    fit: Fit, panel: Panel, products: tuple[int, ...] | None = None, watcher: Watcher | None = None
) -> Comparison:
    """Fit NUTS to the same panel, or, with `products`, both engines anew to the market of these products alone."""
    watcher = watcher or Watcher()
    if products is not None:
        panel = subset(panel, products)
        fit = ENGINES[fit.plan.engine].fit(fit.plan, panel, Watcher(), None)
    _require(fit)
    exact = nuts.fit(replace(fit.plan, engine="nuts"), panel, watcher)
    _require(exact)
    own = ENGINES[fit.plan.engine].draw(fit, panel, 4_000, fit.plan.seed)
    other = nuts.draw(exact, panel, nuts.count_draws(exact))
    chosen = tuple(sorted(products)) if products is not None else tuple(range(panel.n_products))
    level = ("global",) + ("category",) * panel.n_categories + ("product",) * panel.n_products
    number = (0, *range(panel.n_categories), *chosen)
    return Comparison(level, number, _side(own, fit.plan.mass), _side(other, fit.plan.mass), exact)


def _require(fit: Fit) -> None:
    """Raise UserError where a fit has nothing to compare."""
    if not fit.outcome.usable:
        told = f"{fit.plan.engine} has no draws to compare. {fit.outcome.sentence.rstrip('.')}"
        raise UserError(Problem("nothing-to-compare", told, "Compare fewer products, or another fit."))


def _side(draws: Draws, mass: float) -> Side:
    values = np.concatenate([draws.elasticity_global[:, None], draws.elasticity_category, draws.elasticity_product], 1)
    lower, upper = np.quantile(values, [0.5 - mass / 2, 0.5 + mass / 2], axis=0)
    return Side(values.mean(axis=0), values.std(axis=0), lower, upper)
