"""Thinned curves keep what matters, and the verdict tells a falling loss from a flat one."""

import numpy as np

from core.runs.curves import BUCKETS, convergence_verdict, curve_of, whole_and_tail


def noise(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def test_a_long_curve_keeps_at_most_600_points_with_its_extremes():
    losses = noise(1_000_000)
    losses[123_456], losses[777_777] = 50.0, -50.0
    curve = curve_of(losses, n_obs=1)
    assert curve.step.size <= 2 * BUCKETS
    assert {123_456, 777_777} <= set(curve.step.tolist())
    assert np.array_equal(curve.loss, losses[curve.step])
    assert np.all(np.diff(curve.step) > 0)


def test_a_short_curve_is_kept_whole():
    losses = np.array([3.0, 2.0, 1.0])
    curve = curve_of(losses, n_obs=2)
    assert curve.step.tolist() == [0, 1, 2]
    assert curve.loss.tolist() == [1.5, 1.0, 0.5]


def test_losses_that_are_no_numbers_are_left_out():
    curve = curve_of(np.array([1.0, np.nan, np.inf, 2.0]), n_obs=1)
    assert curve.step.tolist() == [0, 3]
    assert curve_of(np.array([np.nan]), n_obs=1).step.size == 0


def test_the_smooth_line_of_a_straight_line_is_that_line():
    curve = curve_of(np.arange(3_000.0), n_obs=1)
    # The mean over a bucket of ten lies half a step below the step it is drawn at.
    assert np.allclose(curve.smooth, curve.smooth_step - 0.5)


def test_the_tail_is_the_last_tenth():
    whole, tail = whole_and_tail(noise(5_000), n_obs=10)
    assert whole.step[0] < 5_000 / BUCKETS
    assert tail.step[0] >= 4_500
    assert tail.step[-1] <= 4_999


def test_a_falling_loss_is_told_with_its_rate():
    losses = 1_000.0 - 0.0008 * np.arange(20_000) + 0.1 * noise(20_000)
    verdict = convergence_verdict(losses, n_obs=1)
    assert verdict in {f"still falling: {rate} nats per observation in 1,000 steps" for rate in ("0.79", "0.8", "0.81")}


def test_a_rising_loss_is_told():
    assert convergence_verdict(0.01 * np.arange(5_000.0) + noise(5_000), n_obs=1).startswith("rising: 10 nats")


def test_a_flat_noisy_loss_is_flat_from_where_it_settled():
    settled = np.where(np.arange(20_000) < 5_000, 100.0 - np.arange(20_000) / 50, 0.0)
    verdict = convergence_verdict(settled + noise(20_000), n_obs=1)
    since = int(verdict.removeprefix("flat within noise since step ").replace(",", ""))
    assert 5_000 <= since <= 7_000


def test_pure_noise_is_rarely_called_falling():
    """Three standard errors on six degrees of freedom: about 2.4 % of flat runs are called falling or rising."""
    called = [not convergence_verdict(noise(4_800, seed), n_obs=1).startswith("flat") for seed in range(100)]
    assert sum(called) <= 8


def test_too_few_steps_give_no_verdict():
    assert convergence_verdict(noise(100), n_obs=1) == ""


def test_the_rate_of_a_falling_loss_is_told_per_observation_without_an_exponent():
    losses = 1_000.0 - 0.08 * np.arange(5_000)
    assert convergence_verdict(losses, n_obs=1_000_000) == (
        "still falling: 0.00008 nats per observation in 1,000 steps"
    )


def test_the_smooth_line_of_a_few_iterations_is_their_losses():
    losses = 1_000.0 * 0.3 ** np.arange(20)
    curve = curve_of(losses, n_obs=1)
    assert np.allclose(curve.smooth, losses)
