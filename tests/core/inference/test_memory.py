"""What a fit will take, and what is said when it is too much."""

from __future__ import annotations

import pytest

from core.errors import UserError
from core.inference.guides import GUIDES
from core.inference.memory import estimate_memory, guide_parameters, refuse_if_too_big, unknowns_by_site
from core.inference.plan import FitPlan, NutsPlan, SviPlan
from core.inference.program import build_program
from core.inference.starts import first_start
from tests.core.panels import market_panel


def plan_with_guide(guide: str) -> FitPlan:
    return FitPlan(engine="svi", svi=SviPlan(guide=guide, steps=5))


@pytest.mark.parametrize(
    "guide", [name for name in GUIDES if GUIDES[name].memory != "D^2"] + ["AutoMultivariateNormal"]
)
def test_guide_parameters_are_those_numpyro_makes(guide):
    panel, plan = market_panel(products=4, periods=3), plan_with_guide(guide)
    program = build_program(plan, panel, first_start(plan, panel, panel))
    made = sum(leaf.size for leaf in program.svi.get_params(program.first).values())
    unknowns = sum(unknowns_by_site(panel, plan.model).values())
    assert guide_parameters(guide, unknowns, plan.svi.rank) == made


def test_a_quadratic_guide_on_a_big_market_is_refused_with_figures_and_an_alternative():
    panel, plan = market_panel(products=12, periods=9), plan_with_guide("AutoMultivariateNormal")
    estimate = estimate_memory(plan, panel)
    with pytest.raises(UserError) as refused:
        refuse_if_too_big(plan, panel, free_bytes=estimate.total)
    text = str(refused.value)
    assert "MB" in text and "unknowns" in text and ("AutoNormal" in text or "LowRank" in text)


def test_a_fit_that_fits_is_estimated_and_let_through():
    panel, plan = market_panel(), plan_with_guide("AutoNormal")
    estimate = estimate_memory(plan, panel)
    assert estimate.total == estimate.data + estimate.parameters + estimate.optimiser + estimate.draws
    assert refuse_if_too_big(plan, panel, free_bytes=10 * estimate.total) == estimate


def test_data_are_counted_with_what_a_step_writes():
    panel = market_panel(products=200, periods=104)
    cells = panel.n_rows * panel.n_slots
    assert 5 * 4 * cells < estimate_memory(plan_with_guide("AutoNormal"), panel).data < 8 * 4 * cells


def test_nuts_is_counted_with_every_sample_of_every_chain_and_told_to_draw_fewer():
    panel = market_panel(products=12, periods=9)
    plan = FitPlan(engine="nuts", draws=100, nuts=NutsPlan(samples=5_000, chains=4))
    unknowns = sum(unknowns_by_site(panel, plan.model).values())
    estimate = estimate_memory(plan, panel)
    assert estimate.draws == (4 * 5_000 + 100) * unknowns * 4
    with pytest.raises(UserError, match="fewer chains or draws than 4 x 5,000"):
        refuse_if_too_big(plan, panel, free_bytes=estimate.total)
