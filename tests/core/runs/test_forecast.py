"""Forecasts scale what was measured, and fall back on typical figures where nothing of the kind has run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.data.choices import Choices
from core.data.roles import Roles
from core.inference.plan import FitPlan, plan_with
from core.runs.forecast import TYPICAL, forecast
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.runs.store import RunRow
from core.runs.values import to_text

SVI = plan_with(FitPlan(), engine="svi", steps=1_000)


def ended(plan: FitPlan) -> RunRow:
    """1,000 steps at 100 a second on 500 observations, after 5 seconds of compiling."""
    return RunRow(
        seq=1, id="a", name="", owner="", dataset_id="", dataset_name="",
        request=to_text(RunRequest("", Roles(), Choices(), plan)),
        state=RunState.FINISHED, phase="", wish="", process="", lane="cpu", place=1, turn=1, created=0.0,
        steps_done=1_000, steps_total=1_000, n_obs=500, seconds=15.0, rate=100.0, memory=0, loss=None, outcome="",
        usable=True, shared=True, note="",
    )  # fmt: skip


def test_a_measured_pace_scales_with_observations_and_steps():
    found = forecast(plan_with(SVI, steps=4_000), 1_000, [ended(SVI)])
    assert found.seconds == pytest.approx(5 + 4_000 * 2 / 100)
    assert found.measured


def test_a_fit_of_another_kind_says_nothing():
    assert not forecast(plan_with(SVI, guide="AutoDelta"), 1_000, [ended(SVI)]).measured
    assert not forecast(FitPlan(), 1_000, [ended(SVI)]).measured


def test_a_plan_of_another_version_says_nothing():
    assert not forecast(SVI, 1_000, [replace(ended(SVI), request="of another version")]).measured


def test_a_fit_without_a_result_says_nothing():
    assert not forecast(SVI, 1_000, [replace(ended(SVI), usable=False)]).measured


def test_the_structured_engine_takes_the_steps_it_took_before():
    assert forecast(FitPlan(), 500, [ended(FitPlan())]).seconds == pytest.approx(15.0)


def test_typical_figures_grow_with_particles():
    one, four = (forecast(plan_with(SVI, particles=n), 10**6, []).seconds for n in (1, 4))
    fixed = TYPICAL["svi", "negbin"].fixed
    assert four - fixed == pytest.approx(4 * (one - fixed))
    assert "two cores" in str(forecast(SVI, 10**6, []))
