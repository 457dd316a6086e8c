"""Judge whether a noisy loss still falls: the losses so far in, a slope with its error and a verdict out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

BATCHES = 16
"""Batch means behind the slope: averaging makes neighbouring, correlated steps into independent points."""
SHORTEST = 160
"""Steps below which no verdict is given."""
SIGNIFICANT = 2.0
"""Standard errors beyond which a slope is not noise."""


@dataclass(frozen=True)
class Trend:
    """How the loss moves over the last half of the run. `slope` and `error` are nats per 1,000 steps."""

    slope: float
    error: float
    verdict: str
    """'falling', 'flat', 'rising', or 'early' when there are too few steps to tell."""

    @property
    def flat(self) -> bool:
        return self.verdict == "flat"


def trend(losses: Float[np.ndarray, "step"]) -> Trend:
    """Slope of the last half of `losses` by least squares through batch means, against its standard error.

    Falling or rising means beyond two standard errors; anything between is flat within the noise. Steps whose loss is
    not a number do not count.
    """
    window = np.asarray(losses[len(losses) // 2 :], np.float64)
    window = window[np.isfinite(window)]
    if len(losses) < SHORTEST or window.size < SHORTEST // 2:
        return Trend(float("nan"), float("nan"), "early")
    length = window.size // BATCHES
    means = window[-length * BATCHES :].reshape(BATCHES, length).mean(axis=1)
    slope, error = _line(means)
    per_thousand = 1_000.0 / length
    return Trend(slope * per_thousand, error * per_thousand, _verdict(slope, error, float(np.abs(means).max())))


def _line(means: Float[np.ndarray, "batch"]) -> tuple[float, float]:
    """Slope per batch and its standard error."""
    at = np.arange(means.size) - (means.size - 1) / 2
    slope = float(at @ means / (at @ at))
    residual = means - means.mean() - slope * at
    return slope, float(np.sqrt(residual @ residual / (means.size - 2) / (at @ at)))


def _verdict(slope: float, error: float, size: float) -> str:
    resolution = float(np.finfo(np.float32).eps) * size  # a float32 loss cannot move by less
    if abs(slope) <= max(SIGNIFICANT * error, resolution):
        return "flat"
    return "falling" if slope < 0 else "rising"
