"""What would settle a verdict: closed forms of normal posteriors, and the sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from core.posterior.advice import information_per_row, rows_to_settle
from core.report.advice import what_would_settle


def test_the_rows_asked_for_bring_exactly_the_certainty():
    mean, sd, information, price_sd = np.array([-1.3, -0.7]), np.array([0.5, 0.6]), np.array([8.0, 3.0]), 0.2
    rows = rows_to_settle(mean, sd, information, price_sd, certainty=0.9)
    after = 1 / np.sqrt(1 / sd**2 + rows * information * price_sd**2)
    np.testing.assert_allclose(norm.cdf((-1 - mean) / after), [0.9, 0.1])


def test_a_settled_verdict_asks_for_nothing():
    assert rows_to_settle(np.array([-3.0]), np.array([0.1]), np.array([np.nan]), 0.1)[0] == 0


def test_prices_moved_twice_as_far_need_a_quarter_of_the_rows():
    one, two = (rows_to_settle(np.array([-1.2]), np.array([0.5]), np.array([5.0]), step)[0] for step in (0.1, 0.2))
    assert one == pytest.approx(4 * two)


def test_information_is_read_off_the_own_standard_error():
    found = information_per_row(np.array([0.5, np.nan, 0.25]), np.array([100, 50, 100]), np.array([0.1, 0.0, 0.1]))
    np.testing.assert_allclose(found, [4.0, 10.0, 16.0])
    assert np.isnan(information_per_row(np.array([np.nan]), np.array([9]), np.array([0.1]))[0])


@pytest.fixture
def products():
    return pd.DataFrame(
        {
            "category": "a",
            "product": ["sure", "unsure", "fixed", "flat"],
            "n_obs": [100, 100, 100, 100],
            "mean": [-3.0, -1.3, -1.4, -1.02],
            "sd": [0.2, 0.4, 0.6, 0.3],
            "price_sd": [0.1, 0.05, 0.0, 0.1],
            "own_se": [0.2, 0.5, np.nan, 0.4],
            "verdict": ["elastic", "uncertain", "no variation", "uncertain"],
        }
    )


def test_the_sentence_says_how_many_rows(products):
    # 1.2816^2 / 0.3^2 - 1 / 0.4^2 = 12.0 missing; a row brings 16 x 0.05^2 = 0.04, in a test 16 x 0.1^2 = 0.16.
    assert what_would_settle(products, "unsure") == (
        "If the estimate holds, about 300 more rows at its usual price changes would settle it, or about 75 more rows "
        "with the price moved 10 % up and down in turn."
    )


def test_a_price_that_never_changed_needs_a_test(products):
    assert what_would_settle(products, "fixed").startswith("If the estimate holds, about ")
    assert "usual" not in what_would_settle(products, "fixed")
    alone = products[products["product"] == "fixed"]
    assert what_would_settle(alone, "fixed") == "Its price would have to change before its own sales can tell."


def test_where_the_verdict_stands_there_is_nothing_to_say(products):
    assert what_would_settle(products, "sure") == ""
    assert what_would_settle(products, "flat").startswith("So close to −1")
    with pytest.raises(KeyError, match="no product 'other'"):
        what_would_settle(products, "other")
