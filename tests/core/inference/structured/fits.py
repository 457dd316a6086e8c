"""The market and the plans that the tests of the structured engine fit."""

from __future__ import annotations

from core.inference.engines import ENGINES
from core.inference.fit import Fit, Watcher
from core.inference.plan import FitPlan, StructuredPlan
from core.model.plan import ModelPlan
from core.panel import Panel
from core.simulation import MarketPlan

FIXED = FitPlan(
    model=ModelPlan(likelihood="poisson", scales="fixed"), structured=StructuredPlan(tolerance=1e-6, max_iterations=40)
)
LEARNED = FitPlan(model=ModelPlan(likelihood="negbin"))
MARKET = MarketPlan(products=40, periods=20, categories=4, mean_units=6.0, seed=7, filled=0.9)


def fitted(plan: FitPlan, panel: Panel, **watcher) -> Fit:
    return ENGINES["structured"].fit(plan, panel, Watcher(**watcher), None)
