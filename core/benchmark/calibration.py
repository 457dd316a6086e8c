"""What a calibration study is asked for, and what it finds in one market."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.benchmark.options import names_in
from core.declare import declared, violations
from core.errors import Problem, UserError
from core.inference.plan import ENGINES
from core.model.plan import LIKELIHOODS, SCALES

MASSES = (0.9, 0.5)
BINS = np.linspace(-4, 4, 33)
"""Edges of the histogram of z scores."""
MEAN_UNITS = (0.3, 50.0)
"""Mean units of the first and of the last market; even steps of the logarithm between them."""


@dataclass(frozen=True)
class Calibration:
    """One market: what was drawn and fitted, the share of truths inside each interval, and the z scores' histogram."""

    likelihood: str
    seed: int
    mean_units: float
    products: int
    categories: int
    product_90: float
    product_50: float
    category_90: float
    category_50: float
    global_90: float
    global_50: float
    z_mean: float
    z_sd: float
    bias: float
    """Mean of estimate less truth, in elasticity."""
    spread: float
    """Estimated spread of products around their category; drawn with 0.5. NaN where scales were fixed."""
    poor: float
    """Share of products whose k-hat is not good; NaN where the engine has none."""
    seconds: float
    outcome: str
    histogram: tuple[int, ...]


@dataclass(frozen=True)
class CalibrationPlan:
    """How many markets of each likelihood, how large, and which engine."""

    markets: int = declared(20, "Markets", "Markets of each likelihood, from few to many units", low=1)
    products: int = declared(1_000, "Products", "Products of each market", low=1)
    periods: int = declared(104, "Periods", "Weeks of each market", low=1)
    categories: int = declared(10, "Categories", "Categories of each market", low=1)
    likelihoods: str = declared("poisson,negbin", "Likelihoods", "Which to study, with commas between")
    scales: str = declared("learned", "Scales", "Learn the hierarchy's spreads or fix them", choices=SCALES)
    engine: str = declared("structured", "Engine", "Whose intervals are studied", choices=ENGINES)
    seed: int = declared(1, "Seed", "Start of the random numbers; markets differ by it", low=0)

    def __post_init__(self) -> None:
        found = violations(self)
        unknown = [name for name in self.likelihood_names if name not in LIKELIHOODS]
        found += [f"likelihood '{name}' is not one of {', '.join(LIKELIHOODS)}" for name in unknown]
        if not self.likelihood_names:
            found.append(f"likelihoods='{self.likelihoods}' names none; name at least one of {', '.join(LIKELIHOODS)}")
        if found:
            raise UserError(
                Problem("calibrate", what, "Change it and start again.", where="calibrate") for what in found
            )

    @property
    def likelihood_names(self) -> tuple[str, ...]:
        return names_in(self.likelihoods)
