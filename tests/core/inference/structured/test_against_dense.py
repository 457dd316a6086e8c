"""The structured engine equals a dense implementation of the same fixed point, unknown by unknown."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from core.inference.structured.solver import Solver
from core.inference.structured.state import State
from core.model.plan import ARTICLE_MODEL, ModelPlan
from core.panel import Panel
from tests.core.inference.structured.dense import dense_fit
from tests.core.panels import market_panel, replicate_panel

AGREES = 1e-4
"""Asked for by the project; float32 cells leave about 1e-5."""
BOUND_AGREES = 2e-5
"""Relative; sums of float32 cells."""
FIXED = ModelPlan(likelihood="poisson", scales="fixed")

CASES = {
    "plain": (FIXED, {}),
    "seed 1": (FIXED, {"seed": 1, "mean_units": 2.0}),
    "seed 2": (FIXED, {"seed": 2, "mean_units": 200.0, "filled": 0.4}),
    "stores": (FIXED, {"stores": 3}),
    "covariate": (FIXED, {"covariate": True}),
    "stores and covariate, packed": (FIXED, {"stores": 2, "covariate": True, "filled": 0.5, "layout": "packed"}),
    "shared time": (replace(FIXED, time_effects="shared"), {"covariate": True}),
    "shared time, packed": (replace(FIXED, time_effects="shared"), {"stores": 2, "layout": "packed"}),
    "no time": (replace(FIXED, time_effects="none"), {"stores": 2}),
    "one category": (FIXED, {"categories": 1}),
    "one period": (FIXED, {"periods": 1, "filled": 1.0}),
    "hardly any sales": (FIXED, {"mean_units": 0.02}),
    "article": (ARTICLE_MODEL, {"mean_units": 30.0}),
    "article with stores": (ARTICLE_MODEL, {"mean_units": 60.0, "stores": 2}),
    "negative binomial": (replace(FIXED, likelihood="negbin"), {}),
    "negative binomial, stores": (replace(FIXED, likelihood="negbin"), {"stores": 2, "covariate": True, "seed": 5}),
}


def converged(panel: Panel, plan: ModelPlan) -> tuple[Solver, State]:
    """The fixed point with concentrations held at their start."""
    solver = Solver(plan, panel, jax.devices()[:1])
    state = solver.start()
    for _ in range(60):
        state = solver.iterate(state, learn=False)
        if state.change < 1e-6:
            break
    return solver, state


def compare(panel: Panel, plan: ModelPlan) -> None:
    expected = dense_fit(panel, plan, log_phi=plan.priors.concentration_mean)
    with jax.enable_x64(True):
        solver, state = converged(panel, plan)
        columns, places = solver.columns, solver.places
        top = {"category": columns.elasticity, "level_category": columns.level}
        found = {
            "product": (places.gather(state.position.elasticity, "product"), places.gather(state.variance, "product")),
            "global": (state.means.market[:1], np.diagonal(state.market_covariance)[:1]),
        }
        for name, column in top.items():
            if name in expected.at:
                found[name] = state.means.shared[:, column], state.covariance[:, column, column]
        if columns.periods:
            rows = slice(0, 1) if columns.shared_time else slice(None)
            t = columns.periods
            diagonal = np.diagonal(state.covariance, axis1=1, axis2=2)
            found["time"] = state.means.shared[rows, :t].ravel(), diagonal[rows, :t].ravel()
        if columns.covariates:
            k = slice(columns.first_covariate, None)
            diagonal = np.diagonal(state.covariance, axis1=1, axis2=2)
            found["covariate"] = state.means.shared[:, k].ravel(), diagonal[:, k].ravel()
        level = places.gather(state.position.level, "series")
    for name, (mean, variance) in found.items():
        np.testing.assert_allclose(mean, expected.mean[expected.at[name]], atol=AGREES, err_msg=name)
        np.testing.assert_allclose(np.sqrt(variance), expected.sd(name), atol=AGREES, err_msg=name)
    np.testing.assert_allclose(level, expected.mean[expected.at["level"]], atol=AGREES)
    bound = state.bound - _prior_of_concentrations(plan, panel)
    assert bound == pytest.approx(expected.bound, rel=BOUND_AGREES, abs=0.02)


def _prior_of_concentrations(plan: ModelPlan, panel: Panel) -> float:
    if plan.likelihood != "negbin":
        return 0.0
    sds = np.array([plan.priors.concentration_sd, *[plan.priors.concentration_scale] * panel.n_categories])
    return float(-np.sum(np.log(sds) + 0.5 * np.log(2 * np.pi)))


@pytest.mark.parametrize("name", CASES)
def test_structured_equals_dense(name: str):
    plan, market = CASES[name]
    compare(market_panel(**market), plan)


@pytest.mark.parametrize("likelihood", ["poisson", "negbin"])
def test_structured_equals_dense_without_periods(likelihood: str):
    compare(replicate_panel(), replace(FIXED, likelihood=likelihood))
