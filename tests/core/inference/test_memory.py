"""What a fit will take, and what is said when it is too much."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import pytest

from core.errors import UserError
from core.inference.guides import GUIDES
from core.inference.memory import (
    FreeMemory,
    estimate_memory,
    free_memory,
    guide_parameters,
    refuse_if_too_big,
    unknowns_by_site,
)
from core.inference.placement import Site, free_on_devices
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
        refuse_if_too_big(plan, panel, share=0.8, free=FreeMemory(estimate.total))
    text = str(refused.value)
    assert "MB" in text and "unknowns" in text and ("AutoNormal" in text or "LowRank" in text)


def test_a_fit_that_fits_is_estimated_and_let_through():
    panel, plan = market_panel(), plan_with_guide("AutoNormal")
    estimate = estimate_memory(plan, panel)
    assert estimate.total == estimate.data + estimate.parameters + estimate.optimiser + estimate.draws
    assert refuse_if_too_big(plan, panel, share=0.8, free=FreeMemory(10 * estimate.total)) == estimate


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
        refuse_if_too_big(plan, panel, share=0.8, free=FreeMemory(estimate.total))


GB = 1_000_000_000


@dataclass(frozen=True)
class Card:
    """A GPU that says what it has."""

    limit: int
    used: int
    process_index: int = 0

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_limit": self.limit, "bytes_in_use": self.used}


def test_a_gpu_too_small_refuses_what_the_host_could_hold():
    panel = market_panel(products=200, periods=104)
    plan = replace(plan_with_guide("AutoNormal"), placement="gpu")
    need = estimate_memory(plan, panel)
    on_device = need.data + need.parameters + need.optimiser
    free = FreeMemory(host=100 * GB, device=on_device // 2)
    with pytest.raises(UserError, match=r"free GPU memory may be used.* of these products would fit") as refused:
        refuse_if_too_big(plan, panel, free)
    assert "draws" not in refused.value.problems[0].what, "they do not stay on the device"
    assert refuse_if_too_big(plan, panel, replace(free, device=on_device)) == need
    assert refuse_if_too_big(plan, panel, replace(free, devices=2)) == need, "each holds half of it"


def test_a_host_too_small_for_the_draws_refuses_what_the_gpu_could_hold():
    panel = market_panel(products=200, periods=104)
    plan = replace(plan_with_guide("AutoNormal"), placement="gpu", draws=4_000)
    need = estimate_memory(plan, panel)
    with pytest.raises(UserError, match=r"of .* free memory may be used.*Keep .* draws instead of 4,000"):
        refuse_if_too_big(plan, panel, FreeMemory(host=need.draws, device=100 * GB))


def test_the_share_decides_how_much_of_the_free_memory_counts():
    panel, plan = market_panel(), plan_with_guide("AutoNormal")
    free = FreeMemory(host=2 * estimate_memory(plan, panel).total)
    refuse_if_too_big(plan, panel, free, share=0.5)
    with pytest.raises(UserError, match="may be used"):
        refuse_if_too_big(plan, panel, free, share=0.49)


def test_the_fullest_device_counts_and_processors_have_none_of_their_own():
    assert free_on_devices(Site((Card(8 * GB, 1 * GB), Card(8 * GB, 5 * GB)), None)) == 3 * GB
    assert free_memory("cpu").device is None


def test_a_gpu_that_is_not_there_is_left_to_the_start_to_refuse():
    if not any(device.platform == "gpu" for device in jax.devices()):
        assert free_memory("gpu").device is None
