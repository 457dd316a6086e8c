"""The live case: every variant takes the same steps, so that only the loops around them are compared."""

import jax
import numpy as np
import pytest

from core.benchmark.measure_live import RUNS, fused, live, regression_data, regression_program

STEPS = 4_203
"""Not a multiple of any chunk length: the tail is covered."""
SAME_LOSS = 1e-5
"""Relative distance of float32 losses from differently compiled loops, as in NumPyro's own test."""


@pytest.fixture(scope="module")
def regression():
    data = jax.device_put(regression_data(100, 3))
    return regression_program(data), data


@pytest.fixture(scope="module")
def in_one_piece(regression):
    return fused(*regression)(STEPS)


@pytest.mark.parametrize("variant", sorted(RUNS.keys() - {"fused"}))
def test_every_loop_returns_the_losses_of_the_fused_one(regression, in_one_piece, variant):
    losses = RUNS[variant](*regression)(STEPS).losses
    assert losses.shape == (STEPS,)
    np.testing.assert_allclose(losses, in_one_piece.losses, rtol=SAME_LOSS)


def test_a_second_run_starts_afresh(regression):
    run = live(*regression)
    np.testing.assert_array_equal(run(300).losses, run(300).losses)


def test_the_live_loop_publishes_and_the_fused_one_does_not(regression, in_one_piece):
    assert live(*regression)(STEPS).publications >= 2
    assert in_one_piece.publications == 0


def test_the_regression_is_learned(in_one_piece):
    assert in_one_piece.losses[-100:].mean() < 0.5 * in_one_piece.losses[:100].mean()
