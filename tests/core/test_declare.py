"""Declared fields: found however deep they lie, checked by their own rules, complete in words."""

from dataclasses import dataclass, field

import pytest

from core.declare import declarations, declared, violations
from core.inference.plan import FitPlan


@dataclass(frozen=True)
class Inner:
    depth: int = declared(3, "Depth", "How deep", low=1, high=9, unit="m")


@dataclass(frozen=True)
class Outer:
    colour: str = declared("red", "Colour", "Which colour", choices={"red": "warm", "blue": "cold"})
    inner: Inner = field(default_factory=Inner)


def test_declarations_reach_nested_plans():
    assert [f.name for f, _ in declarations(Outer)] == ["colour", "depth"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (Outer(colour="green"), "colour='green' is not one of red, blue"),
        (Inner(depth=0), "depth=0 is below 1 m"),
        (Inner(depth=10), "depth=10 is above 9 m"),
        (Inner(depth=float("nan")), "depth=nan is not a finite number"),
        (Inner(depth=float("inf")), "depth=inf is not a finite number"),
    ],
)
def test_a_violation_names_the_value_and_what_would_do(value, sentence):
    assert violations(value) == [sentence]


def test_a_lawful_value_has_no_violations():
    assert violations(Outer()) == violations(Inner(depth=9)) == []


def test_names_of_a_fit_plan_are_unique_so_that_they_may_lie_flat():
    names = [f.name for f, _ in declarations(FitPlan)]
    assert len(names) == len(set(names))


def test_every_choice_of_a_fit_plan_is_explained():
    for f, rule in declarations(FitPlan):
        assert rule.label and rule.help, f.name
        assert all(rule.choices.values()) if rule.choices else True, f.name
