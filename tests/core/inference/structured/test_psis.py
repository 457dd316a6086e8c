"""Pareto tails: known shapes come back, even weights are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from core.inference.structured.psis import fit_pareto, smooth

SHAPE_SD = 0.08
"""About three times the standard error of a shape from 40 rows of 400 draws, prior included."""


@pytest.mark.parametrize("k", [0.3, 0.7, 1.2])
def test_shape_of_a_pareto_tail_is_recovered(k: float):
    uniform = np.random.default_rng(1).random((40, 400))
    excess = np.sort(2.0 * np.expm1(-k * np.log(uniform)) / k, axis=1)
    shape, scale = fit_pareto(excess)
    assert shape.mean() == pytest.approx(k, abs=SHAPE_SD)
    assert np.median(scale) == pytest.approx(2.0, rel=0.15)


def test_heavy_ratios_are_told_from_light_ones():
    random = np.random.default_rng(2)
    light = 0.3 * random.standard_normal((50, 200))
    heavy = np.log(random.pareto(0.8, (50, 200)) + 1)
    assert np.all(smooth(light)[1] <= 0.5)
    assert np.median(smooth(heavy)[1]) > 0.8


def test_weights_are_normalised_and_ordered_as_the_ratios():
    ratio = np.random.default_rng(3).standard_normal((5, 200))
    weight, _ = smooth(ratio)
    np.testing.assert_allclose(weight.sum(axis=1), 1.0)
    assert np.all(np.argmax(weight, axis=1) == np.argmax(ratio, axis=1))
