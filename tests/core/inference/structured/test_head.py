"""The head's dense algebra: inverses against NumPy, evidence of spreads against a direct Gaussian, threads put back."""

from __future__ import annotations

import numpy as np
import pytest

from core.inference.structured.blas import _functions, one_thread
from core.inference.structured.columns import Columns
from core.inference.structured.upper import HeadPrior, Means, Message, inverse_and_log_det, log_evidence, without_time

EXACT = 1e-9


def positive(random: np.random.Generator, *shape: int) -> np.ndarray:
    root = random.standard_normal((*shape, shape[-1]))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(shape[-1])


@pytest.mark.parametrize("size", [1, 3, 40])
def test_inverses_and_log_determinants_are_numpys(size: int):
    matrix = positive(np.random.default_rng(0), 5, size)
    inverse, log_det = inverse_and_log_det(matrix)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(matrix)[1], atol=EXACT)


def test_precision_that_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        inverse_and_log_det(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_evidence_of_a_spread_is_that_of_the_gaussian_it_makes():
    """Categories' elasticities seen with Gaussian noise: marginally N(mean, noise + spread + the market's variance)."""
    random = np.random.default_rng(1)
    seen, noise = random.standard_normal(6), random.uniform(0.2, 1.0, 6)
    columns = Columns(0, False, 0, False)
    at = Means(np.zeros((6, 1)), np.zeros(1))
    message = Message((1 / noise)[:, None, None], (seen / noise)[:, None])

    def direct(spread: float) -> float:
        covariance = np.diag(noise + spread) + 0.7
        return float(-0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * seen @ np.linalg.solve(covariance, seen))

    def ours(spread: float) -> float:
        prior = HeadPrior(0.0, np.array([1 / spread]), np.zeros(1), np.array([1 / 0.7]))
        return log_evidence(columns, message, prior, at)

    assert ours(0.5) - ours(0.1) == pytest.approx(direct(0.5) - direct(0.1), abs=EXACT)
    assert ours(3.0) - ours(0.5) == pytest.approx(direct(3.0) - direct(0.5), abs=EXACT)


def test_spreads_evidence_is_the_same_without_time_effects_in_the_way():
    random = np.random.default_rng(2)
    columns = Columns(4, True, 1, False)
    message = Message(positive(random, 3, columns.size), random.standard_normal((3, columns.size)))
    at = Means(0.1 * random.standard_normal((3, columns.size)), np.zeros(columns.market))

    def evidence(top: np.ndarray, reduced: bool) -> float:
        prior = HeadPrior(2.0, top, np.zeros(3), np.ones(3))
        problem = without_time(columns, message, prior, at) if reduced else (columns, message, at)
        return log_evidence(problem[0], problem[1], prior, problem[2])

    low, high = np.array([1.0, 2.0, 0.5]), np.array([4.0, 0.5, 3.0])
    differences = [evidence(high, reduced) - evidence(low, reduced) for reduced in (False, True)]
    assert differences[0] == pytest.approx(differences[1], abs=EXACT)


def test_threads_are_put_back():
    before = [get() for get, _ in _functions()]
    with one_thread():
        assert all(get() == 1 for get, _ in _functions())
    assert [get() for get, _ in _functions()] == before


def test_threads_are_put_back_when_the_last_of_overlapping_fits_ends():
    before = [get() for get, _ in _functions()]
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert all(get() == 1 for get, _ in _functions())
    second.__exit__(None, None, None)
    assert [get() for get, _ in _functions()] == before
