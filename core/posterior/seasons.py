"""Turn draws of time effects into per cent of units by period, for one category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.model.sites import TIME
from core.posterior.posterior import Posterior
from core.posterior.summaries import summarise


@dataclass(frozen=True)
class PeriodEffects:
    """What a period does to a category's units, in per cent of a usual period, with an interval of `mass`."""

    periods: tuple[str, ...]
    mean: Float[np.ndarray, "period"]
    lower: Float[np.ndarray, "period"]
    upper: Float[np.ndarray, "period"]
    mass: float


def period_effects(posterior: Posterior, category: int) -> PeriodEffects | None:
    """Effects on category `category` (its code), the market's where they are shared; None for a model without any."""
    effects = posterior.draws.others.get(TIME)
    if effects is None or not effects.size:
        return None
    log_units = effects[:, category] if effects.ndim == 3 else effects
    found = summarise(100 * np.expm1(log_units.astype(np.float64)), posterior.mass)
    return PeriodEffects(posterior.labels.periods, found.mean, found.lower, found.upper, posterior.mass)
