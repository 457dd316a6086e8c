"""What pages share, apart from any page: orders, intervals, escaping, the form's widgets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from core.declare import declarations
from core.errors import Problem, worst_first
from core.inference.fit import Estimates
from core.inference.plan import FitPlan
from core.runs.curves import curve_of
from core.runs.snapshots import Progress, RunState
from pages.components.forms import SPOKEN, names_for, spoken
from pages.components.livecharts import MOST_CATEGORIES, estimate_rows, estimates_chart, loss_chart
from pages.components.problems import summary_of
from pages.components.states import BADGES
from pages.components.text import MARKS, escaped


def problem(severity, rows):
    return Problem("code", "what", "remedy", severity=severity, rows=rows)


def test_problems_come_worst_first_then_by_rows():
    given = [problem("note", 90), problem("warning", 1), problem("error", 2), problem("warning", 7)]
    assert [(p.severity, p.rows) for p in worst_first(given)] == [
        ("error", 2), ("warning", 7), ("warning", 1), ("note", 90)
    ]  # fmt: skip
    assert summary_of(given) == "1 to mend, 2 to check, 1 to know"
    assert summary_of([]) == "none found"


def test_text_of_a_file_never_becomes_markup():
    assert escaped("a_b*c") == "a\\_b\\*c"
    assert all(escaped(mark) == f"\\{mark}" for mark in MARKS)


def estimates(categories=2, pinned=1):
    return Estimates(
        -2.0, 0.1, np.full(categories, -1.5), np.full(categories, 0.2), np.full(pinned, -3.0), np.ones(pinned)
    )


@pytest.mark.parametrize("mass", [0.5, 0.9, 0.99])
def test_live_intervals_hold_the_stated_mass_of_a_normal(mass):
    rows = estimate_rows(estimates(), Progress(categories=("a", "b"), pinned=("p",)), mass)
    assert rows["name"].tolist() == ["Market", "p", "a", "b"]
    inside = norm.cdf(rows["upper"], rows["mean"], rows["sd"]) - norm.cdf(rows["lower"], rows["mean"], rows["sd"])
    assert inside == pytest.approx(mass)


def test_a_market_of_a_thousand_categories_draws_a_few_live():
    names = tuple(f"category {n}" for n in range(1_000))
    rows = estimate_rows(estimates(1_000, 0), Progress(categories=names), 0.9)
    assert len(rows) == 1 + MOST_CATEGORIES


def test_a_product_called_like_a_category_keeps_a_row_of_its_own():
    rows = estimate_rows(estimates(1, 1), Progress(categories=("Tea",), pinned=("Tea",)), 0.9)
    (data,) = estimates_chart(rows, "light")["datasets"].values()
    assert data["row"].nunique() == 3


def test_the_live_loss_is_thinned_whatever_the_number_of_steps():
    chart = loss_chart(curve_of(np.random.default_rng(0).normal(size=200_000), n_obs=1))
    assert max(len(data) for data in chart["datasets"].values()) <= 600


def test_every_state_has_a_badge_and_every_choice_a_word():
    assert set(BADGES) == set(RunState)
    choices = {name for _, rule in declarations(FitPlan) for name in rule.choices or ()}
    assert all(spoken(name) for name in choices)
    assert set(SPOKEN) <= choices


def test_fields_show_only_for_engines_they_apply_to():
    shown = {
        engine: {*names_for(FitPlan, engine, False), *names_for(FitPlan, engine, True)} for engine in ("svi", "nuts")
    }
    assert "guide" in shown["svi"]
    assert "guide" not in shown["nuts"]
    assert "chains" in shown["nuts"]
    assert "seed" in shown["svi"] & shown["nuts"]
