"""Fits side by side, against differences known beforehand."""

import numpy as np
import pandas as pd
import pytest

from core.inference.plan import FitPlan, plan_with
from core.report.comparison import UNUSED, plan_differences, side_by_side, truth_in_order


def table(means, sd=0.1, products=("a", "b")):
    return pd.DataFrame(
        {
            "level": "product", "category": "all", "product": list(products), "mean": means, "sd": sd,
            "lower": [mean - 0.2 for mean in means], "upper": [mean + 0.2 for mean in means],
        }
    )  # fmt: skip


def test_the_largest_difference_comes_first_and_in_sds():
    found = side_by_side({"one": table([-1.0, -2.0]), "two": table([-1.1, -2.5], sd=0.25)})
    assert found["product"].tolist() == ["b", "a"]
    assert found["spread"].tolist() == pytest.approx([0.5, 0.1])
    assert found["spread_in_sd"].tolist() == pytest.approx([2.0, 0.4])
    assert found["two: mean"].tolist() == [-2.5, -1.1]


def test_a_product_that_only_one_fit_knows_is_kept_without_a_difference():
    found = side_by_side({"one": table([-1.0, -2.0]), "two": table([-1.0, -3.0], products=("a", "c"))})
    assert set(found["product"]) == {"a", "b", "c"}
    assert found.set_index("product")["spread"].isna().to_dict() == {"a": False, "b": True, "c": True}


def test_one_fit_alone_is_refused():
    with pytest.raises(ValueError, match="fewer than two"):
        side_by_side({"one": table([-1.0, -2.0])})


def test_only_choices_that_differ_are_listed():
    plans = {"one": FitPlan(), "two": plan_with(FitPlan(), seed=7, likelihood="poisson")}
    found = plan_differences(plans).set_index("choice")
    assert found["two"].to_dict() == {"Likelihood": "poisson", "Seed": "7"}
    assert found["one"].to_dict() == {"Likelihood": "negbin", "Seed": "0"}


def test_choices_of_an_engine_not_in_use_are_left_out():
    svi = plan_with(FitPlan(), engine="svi", steps=500, tolerance=1e-4)
    other = plan_with(svi, steps=900, tolerance=1e-3)
    structured = plan_with(FitPlan(), engine="structured", steps=9, learning_rate=0.5)
    assert plan_differences({"a": svi, "b": other})["choice"].tolist() == ["Steps"]
    assert plan_differences({"a": svi, "b": structured})["choice"].tolist() == ["Engine"]
    found = plan_differences({"a": svi, "b": other, "c": structured}).set_index("choice")
    assert found.loc["Steps"].tolist() == ["500", "900", UNUSED]


def test_the_truth_is_matched_by_name_whatever_the_order():
    fitted = table([-1.0, -2.0])
    truth = pd.DataFrame(
        {
            "level": ["product", "product", "global"], "category": ["other", "other", ""],
            "product": ["b", "z", ""], "elasticity": [-2.5, -9.0, -2.0],
        }
    )  # fmt: skip
    found = truth_in_order(fitted, truth)
    assert np.isnan(found[0])
    assert found[1] == -2.5
