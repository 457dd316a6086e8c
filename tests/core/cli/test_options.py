"""What is typed becomes what is declared; what cannot be read is named, never dropped."""

import argparse
from functools import partial

import pytest

from core.cli.options import add_declared, option, settled
from core.declare import declarations
from core.errors import UserError
from core.inference.plan import FitPlan, plan_values, plan_with


def typed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_declared(parser, FitPlan)
    return parser.parse_args(list(words))


def plan_of(*words: str) -> FitPlan:
    return settled(typed(*words), FitPlan, partial(plan_with, FitPlan()))


def test_nothing_typed_is_the_default_plan():
    assert plan_of() == FitPlan()


@pytest.mark.parametrize("name", [f.name for f, _ in declarations(FitPlan)])
def test_every_choice_of_the_plan_has_its_option(name):
    default = plan_values(FitPlan())[name]
    words = ["--no-" + option(name)[2:]] if isinstance(default, bool) else [option(name), str(default)]
    assert plan_of(*words) == FitPlan()


def test_every_word_that_is_no_number_is_named_beside_every_refusal():
    with pytest.raises(UserError) as caught:
        plan_of("--steps", "many", "--seed", "1.5", "--guide", "AutoMagic")
    assert [problem.where for problem in caught.value.problems] == ["--steps", "--seed", "plan"]
