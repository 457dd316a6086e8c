"""Pareto-smoothed importance weights for many small posteriors at once (Vehtari, Simpson, Gelman, Yao & Gabry 2024)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

GOOD = 0.7
"""k-hat up to which importance weights can be relied upon."""
PRIOR_DRAWS = 10
"""Strength of the weak prior towards k = 0.5, in tail draws."""
EVEN = 2.0
"""Largest weight, over the mean one, up to which no draw counts for much: the shape of such a tail says little."""
MODERATE = 0.5
"""k-hat reported for even weights at most."""
ROWS = 2_000
"""Products smoothed at a time: bounds the temporaries."""


def smooth(log_ratio: Float[np.ndarray, "product draw"]) -> tuple[np.ndarray, np.ndarray]:
    """Normalised smoothed weights [product, draw] and k-hat per product."""
    parts = [_smooth(log_ratio[at : at + ROWS]) for at in range(0, len(log_ratio), ROWS)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _smooth(log_ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    draws = log_ratio.shape[1]
    tail = int(np.ceil(min(0.2 * draws, 3 * np.sqrt(draws))))
    weight = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
    order = np.argsort(weight, axis=1)
    largest = np.take_along_axis(weight, order[:, -tail:], axis=1)
    cutoff = np.take_along_axis(weight, order[:, -tail - 1 : -tail], axis=1)
    excess = np.maximum(largest - cutoff, 1e-12 * largest[:, -1:] + 1e-300)
    shape, scale = fit_pareto(excess)
    grid = (np.arange(tail) + 0.5) / tail
    quantile = np.where(
        np.abs(shape)[:, None] < 1e-6,
        -scale[:, None] * np.log1p(-grid),
        scale[:, None] * np.expm1(-shape[:, None] * np.log1p(-grid)) / np.where(shape == 0, 1, shape)[:, None],
    )
    smoothed = np.minimum(cutoff + quantile, largest[:, -1:])
    np.put_along_axis(weight, order[:, -tail:], smoothed, axis=1)
    weight /= weight.sum(axis=1, keepdims=True)
    even = draws * weight.max(axis=1) <= EVEN
    return weight, np.where(even, np.minimum(shape, MODERATE), shape)


def fit_pareto(excess: Float[np.ndarray, "row draw"]) -> tuple[np.ndarray, np.ndarray]:
    """Shape k and scale of generalised Pareto distributions, one a row of sorted excesses (Zhang & Stephens 2009)."""
    n = excess.shape[1]
    m = 30 + int(np.sqrt(n))
    quarter = excess[:, int(n / 4 + 0.5) - 1]
    theta = 1 / excess[:, -1:] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * quarter[:, None])
    k = np.stack([np.mean(np.log1p(-theta[:, i : i + 1] * excess), axis=1) for i in range(m)], axis=1)
    value = n * (np.log(-theta / k) - k - 1)
    weight = np.exp(value - value.max(axis=1, keepdims=True))
    theta_hat = np.sum(theta * weight, axis=1) / weight.sum(axis=1)
    shape = np.mean(np.log1p(-theta_hat[:, None] * excess), axis=1)
    scale = -shape / theta_hat
    return (n * shape + PRIOR_DRAWS * 0.5) / (n + PRIOR_DRAWS), scale
