"""Errors and shares of intervals that hold, against closed forms."""

import numpy as np
import pytest

from core.posterior.accuracy import of_normals, rms, share_inside

MONTE_CARLO = 0.005
"""Five standard errors of a share of 0.9 among 100,000."""


def test_the_root_mean_square_of_three_and_four():
    assert rms(np.array([3.0, -4.0])) == pytest.approx(np.sqrt(12.5))


@pytest.mark.parametrize("mass", [0.5, 0.9])
def test_a_uniform_truth_is_inside_as_often_as_the_interval_is_wide(mass: float):
    draws = np.linspace(0.0, 1.0, 1_001)[:, None].repeat(101, axis=1)
    truth = np.linspace(0.0, 1.0, 101)
    assert share_inside(draws, truth, mass) == pytest.approx(mass, abs=0.011)


def test_normals_that_are_right_hold_as_many_truths_as_they_say():
    sd = np.full(100_000, 0.3)
    mean = np.random.default_rng(0).normal(-2.0, sd)
    found = of_normals(mean, sd, np.full(sd.size, -2.0))
    assert found["coverage90"] == pytest.approx(0.9, abs=MONTE_CARLO)
    assert found["coverage50"] == pytest.approx(0.5, abs=2 * MONTE_CARLO)
    assert found["rmse_to_truth"] == pytest.approx(0.3, rel=0.02)
