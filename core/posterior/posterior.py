"""Turn a usable fit into a Posterior: draws, summaries by level, own-data estimates and diagnostics under one roof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from core.inference.engines import draw
from core.inference.fit import Draws, Fit
from core.panel import Panel, PanelLabels
from core.posterior.own import OwnEstimates, own_estimates, shrinkage
from core.posterior.summaries import LevelSummary, share_positive, summarise
from core.posterior.verdicts import price_varies, verdict_names

LEVELS = ("global", "category", "product")


@dataclass(frozen=True)
class Posterior:
    """What is known about every elasticity after the fit, with the names to show it by.

    `levels` holds one summary for each of 'global' (one member), 'category' and 'product', in the order of `labels`.
    """

    draws: Draws
    labels: PanelLabels
    category_of_product: Int[np.ndarray, "product"]
    product_of_series: Int[np.ndarray, "series"]
    mass: float
    """Posterior probability inside the intervals of `levels`."""
    levels: Mapping[str, LevelSummary]
    own: OwnEstimates
    shrinkage: Float[np.ndarray, "product"]
    """Share of the way from own-data estimate to category that pooling moved a product: see core.posterior.own."""
    diagnostics: Mapping[str, Float[np.ndarray, "product"]] = field(default_factory=dict)
    """What the engine says about each product by name, `k_hat` for one; empty where it says nothing."""

    @property
    def n_draws(self) -> int:
        return self.draws.elasticity_global.shape[0]

    @property
    def n_products(self) -> int:
        return len(self.labels.products)

    def verdicts(self, level: str) -> np.ndarray:
        """Names of verdicts (text) for every member of `level`."""
        varies = price_varies(self.labels.price_sd) if level == "product" else None
        draws = {
            "global": self.draws.elasticity_global[:, None],
            "category": self.draws.elasticity_category,
            "product": self.draws.elasticity_product,
        }[level]
        return verdict_names(self.levels[level].prob_elastic, varies, prob_positive=share_positive(draws))


def posterior_of(fit: Fit, panel: Panel, labels: PanelLabels, seed: int = 0) -> Posterior:
    """Draw `fit.plan.draws` times from a usable fit and summarise at the plan's mass.

    Raises ValueError when the fit ended without a usable result; its outcome says why.
    """
    if not fit.outcome.usable:
        raise ValueError(f"no posterior can be drawn: {fit.outcome.sentence}")
    return posterior_from_draws(
        draw(fit, panel, fit.plan.draws, seed), panel, labels, fit.plan.mass, per_product(fit, len(labels.products))
    )


def posterior_from_draws(
    draws: Draws,
    panel: Panel,
    labels: PanelLabels,
    mass: float = 0.9,
    diagnostics: Mapping[str, np.ndarray] | None = None,
) -> Posterior:
    """Summarise draws made elsewhere or kept from before. `panel` is the host panel that the fit read."""
    category = np.asarray(panel.category_of_product)[np.asarray(panel.real_product)]
    levels = _summaries(draws, mass)
    own = own_estimates(panel, draws)
    real = np.asarray(panel.real_product)
    own = OwnEstimates(own.estimate[real], own.se[real])
    return Posterior(
        draws=draws,
        labels=labels,
        category_of_product=category,
        product_of_series=np.asarray(panel.product_of_series)[np.asarray(panel.real_series)],
        mass=mass,
        levels=levels,
        own=own,
        shrinkage=shrinkage(own.estimate, levels["product"].mean, levels["category"].mean[category]),
        diagnostics=dict(diagnostics or {}),
    )


def at_mass(posterior: Posterior, mass: float) -> Posterior:
    """The same draws summarised at another interval mass; nothing is drawn or estimated again."""
    if mass == posterior.mass:
        return posterior
    return replace(posterior, mass=mass, levels=_summaries(posterior.draws, mass))


def per_product(fit: Fit, n_products: int) -> dict[str, np.ndarray]:
    """The diagnostics of a fit that hold one number per product."""
    arrays = {name: np.asarray(value) for name, value in fit.diagnostics.items() if not isinstance(value, str)}
    return {
        name: value.astype(np.float64)
        for name, value in arrays.items()
        if value.shape == (n_products,) and value.dtype.kind in "fiub"
    }


def _summaries(draws: Draws, mass: float) -> dict[str, LevelSummary]:
    by_level = (draws.elasticity_global[:, None], draws.elasticity_category, draws.elasticity_product)
    return {name: summarise(values, mass) for name, values in zip(LEVELS, by_level, strict=True)}
