"""Turn draws of time and covariate effects into what they add to the log demand of a panel's cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.inference.fit import Draws
from core.model.sites import COVARIATE_CATEGORY, TIME
from core.panel import Panel


@dataclass(frozen=True)
class Effects:
    """What moves log demand besides level and price; None where the model has no such effect."""

    time: Float[np.ndarray, "category period"] | None
    covariate: Float[np.ndarray, "category covariate"] | None


def mean_effects(draws: Draws, n_categories: int) -> Effects:
    """Posterior mean effects; one shared time effect is repeated for every category."""
    means = {
        site: draws.others[site].mean(axis=0, dtype=np.float64)
        for site in (TIME, COVARIATE_CATEGORY)
        if _has(draws, site)
    }
    return _effects(means, n_categories)


def drawn_effects(draws: Draws, draw: int, n_categories: int) -> Effects:
    """Effects of one draw."""
    return _effects(
        {site: draws.others[site][draw] for site in (TIME, COVARIATE_CATEGORY) if _has(draws, site)}, n_categories
    )


def _has(draws: Draws, site: str) -> bool:
    return site in draws.others and draws.others[site].size > 0


def _effects(values: Mapping[str, np.ndarray], n_categories: int) -> Effects:
    time = values.get(TIME)
    if time is not None and time.ndim == 1:
        time = np.broadcast_to(time, (n_categories, time.shape[0]))
    return Effects(time, values.get(COVARIATE_CATEGORY))


def category_of_row(panel: Panel) -> Int[np.ndarray, "row"]:
    """The category of each panel row."""
    series = np.asarray(panel.series_of_row)
    return np.asarray(panel.category_of_product)[np.asarray(panel.product_of_series)[series]]


def offset(effects: Effects, panel: Panel, rows: slice | np.ndarray) -> Float[np.ndarray, "row slot"]:
    """Sum of time and covariate effects on the log demand of the cells of `rows`; 0 where the model has none."""
    category = category_of_row(panel)[rows]
    total = np.zeros((len(category), panel.n_slots))
    if effects.time is not None and panel.n_periods > 0:
        period = np.arange(panel.n_slots)[None, :] if panel.period is None else np.asarray(panel.period)[rows]
        total += effects.time[category[:, None], period]
    if effects.covariate is not None:
        total += np.einsum("krs,rk->rs", np.asarray(panel.covariates)[:, rows], effects.covariate[category])
    return total
