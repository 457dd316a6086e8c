"""Two fits read against each other, with ratios and distances known beforehand."""

import numpy as np
import pandas as pd
import pytest

from core.inference.plan import FitPlan, plan_with
from core.report.pairs import displayed_pair, pair_of, short_names

STRUCTURED, NUTS = FitPlan(), plan_with(FitPlan(), engine="nuts")
SVI = plan_with(FitPlan(), engine="svi")


def table(means, sd=0.1, products=("a", "b")):
    frame = pd.DataFrame({"level": "product", "category": "all", "product": list(products), "mean": means, "sd": sd})
    return frame.assign(lower=frame["mean"] - 1.6 * sd, upper=frame["mean"] + 1.6 * sd)


def test_the_ratio_of_widths_and_the_largest_distance_are_said():
    pair = pair_of(
        {"SVI run": table([-1.0, -2.0], sd=0.02), "good": table([-1.03, -2.01])},
        {"SVI run": SVI, "good": STRUCTURED},
    )
    assert "intervals of SVI run are on average 0.20 times as wide as those of good" in pair.words
    assert "at most 0.30 sd (a), typically by 0.20" in pair.words
    assert "mean-field guide" in pair.words
    assert pair.rows["sd_ratio"].tolist() == pytest.approx([0.2, 0.2])


def test_the_engine_to_trust_is_the_reference_whichever_comes_first():
    tables = {"exact": table([-1.0, -2.0]), "other": table([-1.0, -2.0], sd=0.05)}
    pair = pair_of(tables, {"exact": NUTS, "other": STRUCTURED})
    assert (pair.judged, pair.reference) == ("other", "exact")
    assert "intervals of other are on average 0.50 times as wide as those of exact" in pair.words
    assert "believe it" in pair.words


def test_fits_within_the_tolerances_are_said_to_agree():
    pair = pair_of({"one": table([-1.0, -2.0]), "two": table([-1.02, -2.0])}, {"one": STRUCTURED, "two": NUTS})
    assert "both say the same" in pair.words


def test_a_fit_that_had_not_converged_is_no_judge():
    tables = {"one": table([-1.0, -2.0]), "two": table([-1.9, -2.0])}
    words = pair_of(tables, {"one": STRUCTURED, "two": NUTS}, unfinished=("two",)).words
    assert "too early to tell, two had not converged" in words
    assert "believe it" not in words


def test_half_and_twice_as_wide_cancel():
    sd = np.array([0.1, 0.1])
    pair = pair_of({"one": table([-1.0, -2.0], sd=sd * [0.5, 2])} | {"two": table([-1.0, -2.0], sd=sd)},
                   {"one": STRUCTURED, "two": STRUCTURED})  # fmt: skip
    assert "1.00 times as wide" in pair.words


def test_products_of_one_fit_only_are_counted_and_left_out():
    pair = pair_of(
        {"few": table([-1.0], products=("a",)), "all": table([-1.0, -9.0])}, {"few": STRUCTURED, "all": STRUCTURED}
    )
    assert "1 product in both, 1 in one of them only" in pair.words
    assert "at most 0.00 sd (a)" in pair.words
    assert "no verdict on an engine" in pair.words
    assert "Read:" not in pair.words


def test_fits_without_a_common_product_say_so():
    pair = pair_of({"one": table([-1.0], products=("a",)), "two": table([-1.0], products=("b",))},
                   {"one": STRUCTURED, "two": NUTS})  # fmt: skip
    assert pair.words == "one and two have no product in common."


def test_one_fit_is_no_pair():
    with pytest.raises(ValueError, match="a pair is two fits"):
        pair_of({"one": table([-1.0, -2.0])}, {"one": STRUCTURED})


def test_the_table_for_reading_has_both_intervals_and_the_largest_difference_first():
    pair = pair_of({"one": table([-1.0, -2.0]), "two": table([-1.0, -2.5])}, {"one": STRUCTURED, "two": STRUCTURED})
    shown = displayed_pair(pair, 1)
    assert shown["product"].tolist() == ["b"]
    assert shown["one: interval"].tolist() == ["[-2.16, -1.84]"]
    assert shown["two: interval"].tolist() == ["[-2.66, -2.34]"]


@pytest.mark.parametrize(
    ("first", "second", "short"),
    [
        ("Shop · SVI, AutoNormal · 20 products", "Shop · SVI, Delta · 20 products", ("SVI, AutoNormal", "SVI, Delta")),
        ("mine", "mine · NUTS · 6 products", ("mine", "mine · NUTS · 6 products")),
        ("a run", "a run", ("a run (this run)", "a run (the other)")),
    ],
)
def test_short_names_keep_what_tells_runs_apart(first, second, short):
    assert short_names(first, second, ("svi", "svi")) == short
    assert short_names(first, second, ("svi", "nuts")) == ("SVI", "NUTS")
