"""SVI may begin at the structured posterior: close to it after a handful of steps, where a cold start is far off."""

import numpy as np

from core.data.markets import panel_of_market
from core.inference.engines import draw, fit
from core.inference.plan import FitPlan, plan_with
from core.simulation import MarketPlan, simulate

FEW_STEPS = 20
WITHIN_SD = 0.5
"""Of the structured posterior's own sd: twenty noisy steps do not move a guide further."""


def elasticities(panel, **choices) -> np.ndarray:
    result = fit(plan_with(FitPlan(), likelihood="poisson", **choices), panel)
    assert result.outcome.usable, result.outcome.sentence
    return draw(result, panel, 1_000).elasticity_product


def test_a_start_at_the_structured_posterior_needs_a_handful_of_steps():
    panel, _ = panel_of_market(
        simulate(MarketPlan(products=40, periods=40, categories=4, likelihood="poisson", seed=2))
    )
    structured = elasticities(panel)
    svi = {"engine": "svi", "steps": FEW_STEPS, "learning_rate": 0.005}
    warm, cold = (elasticities(panel, **svi, start=start) for start in ("structured", "prior"))
    distance = [np.abs(found.mean(axis=0) - structured.mean(axis=0)) / structured.std(axis=0) for found in (warm, cold)]
    assert np.median(distance[0]) < WITHIN_SD
    assert np.median(distance[0]) < np.median(distance[1])
