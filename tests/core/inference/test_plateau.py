"""The plateau rule on losses whose course is known."""

from __future__ import annotations

import numpy as np
import pytest

from core.inference.plateau import SHORTEST, trend

STEPS = 2_000


def noise(sd: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, sd, STEPS)


@pytest.mark.parametrize("seed", range(5))
def test_falling_losses_are_falling(seed):
    found = trend(10_000.0 - 0.05 * np.arange(STEPS) + noise(10.0, seed))
    assert found.verdict == "falling"
    assert abs(found.slope + 50.0) < 4 * found.error


@pytest.mark.parametrize("seed", range(5))
def test_rising_losses_are_rising(seed):
    assert trend(10_000.0 + 0.05 * np.arange(STEPS) + noise(10.0, seed)).verdict == "rising"


def test_flat_losses_are_flat_in_nineteen_of_twenty():
    verdicts = [trend(10_000.0 + noise(10.0, seed)).flat for seed in range(200)]
    assert 0.85 < np.mean(verdicts) <= 1.0


def test_a_fall_hidden_in_noise_is_flat_and_its_error_says_so():
    found = trend(10_000.0 - 0.001 * np.arange(STEPS) + noise(100.0, 0))
    assert found.flat
    assert found.error > 1.0


def test_constant_losses_are_flat():
    assert trend(np.full(STEPS, 123.0, np.float32)).flat


def test_too_few_steps_give_no_verdict():
    assert trend(np.zeros(SHORTEST - 1)).verdict == "early"


def test_skipped_steps_do_not_count():
    losses = 10_000.0 - 0.05 * np.arange(STEPS) + noise(10.0, 1)
    losses[::7] = np.nan
    assert trend(losses).verdict == "falling"


def test_an_early_fall_does_not_hide_a_later_plateau():
    losses = 10_000.0 + 1e6 * np.exp(-np.arange(STEPS) / 50) + noise(10.0, 3)
    assert trend(losses).flat
