"""A plan that exists can run; it says all that is wrong at once; it survives the manifest."""

import json

import pytest

from core.errors import UserError
from core.inference.plan import ARTICLE_PLAN, FitPlan, plan_to_dict, plan_values, plan_with


def test_every_slip_is_named_at_once():
    with pytest.raises(UserError) as caught:
        plan_with(FitPlan(), guide="AutoMagic", steps=0)
    assert [problem.what.split("=")[0] for problem in caught.value.problems] == ["guide", "steps"]


def test_an_unknown_choice_is_refused_by_name():
    with pytest.raises(UserError, match="there is no choice 'speed'"):
        plan_with(FitPlan(), speed=11)


def test_replacing_by_name_reaches_the_priors_and_leaves_the_rest():
    plan = plan_with(FitPlan(), elasticity_sd=2.5)
    changed = {name for name, value in plan_values(plan).items() if value != plan_values(FitPlan())[name]}
    assert changed == {"elasticity_sd"}
    assert plan.model.priors.elasticity_sd == 2.5


@pytest.mark.parametrize("plan", [FitPlan(), ARTICLE_PLAN, plan_with(FitPlan(), guide="AutoDelta", placement="cpu:4")])
def test_the_manifest_holds_every_choice_of_a_plan(plan):
    told = json.loads(json.dumps(plan_to_dict(plan)))
    assert plan_with(FitPlan(), **_leaves(told)) == plan


def _leaves(told):
    return {
        name: value
        for key, part in told.items()
        for name, value in (_leaves(part) if isinstance(part, dict) else {key: part}).items()
    }


@pytest.mark.parametrize("placement", ["tpu", "cpu:0", "gpu:2", "cpu:", ""])
def test_an_unknown_placement_names_the_ones_that_work(placement):
    with pytest.raises(UserError, match="cpu, gpu, all-gpus, cpu:N"):
        plan_with(FitPlan(), placement=placement)


def test_the_article_preset_refuses_what_it_does_not_have():
    with pytest.raises(UserError) as caught:
        plan_with(ARTICLE_PLAN, likelihood="negbin", scales="learned")
    assert len(caught.value.problems) == 2
