"""Runs side by side, and the bundle for a bug report."""

import io
import json
import zipfile
from dataclasses import replace

import pytest

from core.data.source import Source
from core.declare import declarations
from core.errors import UserError
from core.inference.plan import FitPlan, plan_with
from core.runs.compare import compare_runs
from core.runs.desk import result_path
from core.runs.diagnostics import diagnostics_bundle
from core.runs.manager import RunManager
from core.runs.register import extended
from core.runs.requests import RunRequest
from core.runs.views import LIKELIHOODS, TIME_EFFECTS, plan_line, steps_total
from tests.core.runs.conftest import PLAN, finish, held
from tests.core.runs.engine import Walk


def test_runs_are_set_apart_by_choices_losses_and_elasticities(
    manager: RunManager, walk: Walk, request_for: RunRequest
):
    ids = tuple(
        manager.submit(replace(request_for, plan=plan_with(PLAN, seed=seed, learning_rate=rate)))
        for seed, rate in ((0, 0.05), (5, 0.01))
    )
    for run_id in ids:
        finish(manager, run_id)
    with held(manager, walk, replace(request_for, name="third"), 50) as waiting:
        manager.pause(waiting)
    finish(manager, waiting)
    found = compare_runs(manager, (*ids, waiting))
    assert found.names == (f"a run ({ids[0]})", f"a run ({ids[1]})", "third")
    assert found.choices["choice"].tolist() == ["Learning rate", "Seed"]
    assert found.choices[found.names[1]].tolist() == ["0.01", "5"]
    assert found.without_result == ("third",)
    assert found.elasticities is not None
    assert len(found.elasticities) == 1 + 2 + 6
    assert found.elasticities["spread_in_sd"].is_monotonic_decreasing
    assert found.losses[found.names[0]].step.size == 100


def test_a_lost_result_leaves_the_runs_beside_it_comparable(manager: RunManager, request_for: RunRequest):
    ids = tuple(manager.submit(replace(request_for, name=name)) for name in ("a", "b", "c"))
    for run_id in ids:
        finish(manager, run_id)
    result_path(manager.settings, ids[0]).unlink()
    found = compare_runs(manager, ids)
    assert found.without_result == ("a",)
    assert found.elasticities is not None and "b: mean" in found.elasticities


def test_one_or_six_runs_cannot_be_compared(manager: RunManager):
    for ids in (("a",), ("a", "a"), tuple("abcdef")):
        with pytest.raises(UserError, match="Name two to 5"):
            compare_runs(manager, ids)


def test_the_bundle_holds_versions_states_and_log_but_no_words_of_a_person(
    manager: RunManager, request_for: RunRequest, source: Source
):
    watched = str(source.frame["product"].iloc[0])
    run_id = manager.submit(replace(request_for, name="secret name", pinned=(watched,)))
    finish(manager, run_id)
    manager.set_note(run_id, "secret note")
    with zipfile.ZipFile(io.BytesIO(diagnostics_bundle(manager))) as bundle:
        about = json.loads(bundle.read("about.json"))
        log = bundle.read("events.log").decode()
    assert about["environment"]["packages"]["jax"]
    assert about["runs"][0] | {"seconds": 0} == {
        "run": run_id, "state": "finished", "plan": plan_line(PLAN), "steps": "100 of 100", "seconds": 0,
    }  # fmt: skip
    for event in ("queued", "started", "reading", "encoding", "compiling", "running", "drawing", "finished"):
        assert f"run={run_id} event={event}" in log
    assert log.index("event=queued") < log.index("event=started") < log.index("event=finished")
    for word in ("secret", watched, "small market"):
        assert word not in log + json.dumps(about)


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("svi", "SVI, AutoNormal, Trace_ELBO, 2,000 steps; negative binomial; time effects by category; CPU"),
        ("structured", "structured; negative binomial; time effects by category; CPU"),
        ("nuts", "NUTS, 2 chains of 500; negative binomial; time effects by category; CPU"),
    ],
)
def test_a_plan_in_a_line(engine: str, line: str):
    assert plan_line(plan_with(FitPlan(), engine=engine)) == line


def test_a_plan_without_time_effects_says_so_in_words():
    plan = plan_with(FitPlan(), likelihood="poisson", time_effects="none")
    assert plan_line(plan) == "structured; Poisson; no time effects; CPU"


def test_every_choice_of_a_model_has_words_for_the_line():
    rules = {field.name: rule for field, rule in declarations(FitPlan)}
    assert set(LIKELIHOODS) == set(rules["likelihood"].choices)
    assert set(TIME_EFFECTS) == set(rules["time_effects"].choices)


def test_steps_are_counted_as_the_engine_counts_them():
    plan = FitPlan()
    assert steps_total(plan_with(plan, engine="svi", steps=7)) == 7
    assert steps_total(plan_with(plan, engine="structured", max_iterations=8)) == 8
    assert steps_total(plan_with(plan, engine="nuts", chains=3, warmup=10, samples=20)) == 90


def test_a_plan_goes_further_from_where_it_came():
    assert extended(plan_with(FitPlan(), engine="svi"), 120, 80).svi.steps == 200
    assert extended(FitPlan(), 12, 3).structured.max_iterations == 15
    with pytest.raises(UserError, match="does not go on"):
        extended(plan_with(FitPlan(), engine="nuts"), 10, 10)
