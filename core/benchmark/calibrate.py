"""Do the intervals mean what they say? Simulate markets with known elasticities, fit each, and count how often 90 % and
50 % intervals hold the truth. A line per market is written as it comes; the report is made from the lines.

`python -m core calibrate --out docs/studies` is the committed study.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from core.benchmark.calibration import BINS, MASSES, MEAN_UNITS, Calibration, CalibrationPlan
from core.benchmark.calibration_report import write_lines, write_report
from core.data.markets import panel_of_market
from core.inference.engines import draw, fit
from core.inference.fit import Draws
from core.inference.plan import FitPlan
from core.inference.structured.psis import GOOD
from core.model.plan import ModelPlan
from core.posterior.accuracy import share_inside
from core.simulation import Market, MarketPlan, simulate


def run_calibration(
    plan: CalibrationPlan, out: Path | None = None, on_market: Callable[[Calibration], None] = lambda market: None
) -> tuple[Calibration, ...]:
    """Fit all markets of the plan. With `out`, writes calibration.csv line by line and calibration.md at the end."""
    found: list[Calibration] = []
    for market in _markets(plan):
        found.append(calibrate_market(market, plan))
        on_market(found[-1])
        if out is not None:
            write_lines(out / "calibration.csv", found)
    if out is not None:
        write_report(out, plan, found)
    return tuple(found)


def calibrate_market(plan: MarketPlan, calibration: CalibrationPlan) -> Calibration:
    """Fit one market with the likelihood it was drawn from."""
    market = simulate(plan)
    panel, _ = panel_of_market(market)
    model = ModelPlan(likelihood=plan.likelihood, scales=calibration.scales)
    began = perf_counter()
    found = fit(FitPlan(model=model, engine=calibration.engine, seed=plan.seed), panel)
    draws = draw(found, panel, 1_000, plan.seed)
    seconds = perf_counter() - began
    return _summary(market, draws, seconds, share_poor(found.diagnostics), found.outcome.ending.name.lower())


def share_poor(diagnostics: Mapping[str, Any]) -> float:
    """Share of products whose k-hat is not good; NaN where there is none, as after SVI, NUTS or a fit that stopped."""
    k_hat = diagnostics.get("k_hat")
    return math.nan if k_hat is None else float(np.mean(~(np.asarray(k_hat) <= GOOD)))


def _markets(plan: CalibrationPlan) -> Iterable[MarketPlan]:
    levels = np.geomspace(*MEAN_UNITS, plan.markets)
    for likelihood in plan.likelihood_names:
        for number, mean_units in enumerate(levels):
            yield MarketPlan(
                products=plan.products,
                periods=plan.periods,
                categories=plan.categories,
                likelihood=likelihood,
                mean_units=round(float(mean_units), 3),
                seed=plan.seed * 1_000 + number + (500 if likelihood == "negbin" else 0),
                elasticity_mean=round(float(np.random.default_rng(number).normal(-2.0, 0.5)), 3),
            )


def _summary(market: Market, draws: Draws, seconds: float, poor: float, outcome: str) -> Calibration:
    truth, plan = market.truth, market.plan
    inside = {
        f"{level}_{int(100 * mass)}": share_inside(values, target, mass)
        for level, values, target in (
            ("product", draws.elasticity_product, truth.elasticity_product),
            ("category", draws.elasticity_category, truth.elasticity_category),
            ("global", draws.elasticity_global, np.asarray(truth.elasticity_global)),
        )
        for mass in MASSES
    }
    mean = draws.elasticity_product.mean(axis=0)
    z = (truth.elasticity_product - mean) / draws.elasticity_product.std(axis=0)
    scale = draws.others.get("elasticity_product_scale", np.array([np.nan]))
    return Calibration(
        likelihood=plan.likelihood, seed=plan.seed, mean_units=plan.mean_units, products=plan.products,
        categories=plan.categories, **inside, z_mean=float(z.mean()), z_sd=float(z.std()),
        bias=float(np.mean(mean - truth.elasticity_product)), spread=float(np.mean(scale)), poor=poor,
        seconds=seconds, outcome=outcome, histogram=tuple(np.histogram(np.clip(z, -3.99, 3.99), BINS)[0].tolist()),
    )  # fmt: skip
