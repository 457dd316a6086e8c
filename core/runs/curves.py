"""Turn a long list of losses into the few points a chart needs and the sentence that says whether it still falls."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

BUCKETS = 300
"""Each gives its lowest and its highest loss: at most 600 points a curve."""
SMOOTH = 9
"""Buckets averaged in the smooth line of a long run."""
SPARED = 32
"""The line averages over at most this part of a run to either side: a run of a few iterations is drawn as it is."""
JUDGED = 24
"""Pieces of the run whose means the verdict compares; the trend is read off the last eight."""
TREND = 8
ENOUGH = 10 * JUDGED
"""Steps before a verdict is ventured."""
SIGNIFICANT = 3.0
"""Standard errors that a trend must exceed to be called one; 3 keeps a flat run from being called falling."""


def _empty_floats() -> np.ndarray:
    return np.zeros(0)


def _empty_steps() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Curve:
    """A thinned loss curve, in nats per observation. `step` counts from 0."""

    step: Int[np.ndarray, "point"] = field(default_factory=_empty_steps)
    loss: Float[np.ndarray, "point"] = field(default_factory=_empty_floats)
    """Lowest and highest loss of each bucket, in the order in which they came."""
    smooth_step: Int[np.ndarray, "bucket"] = field(default_factory=_empty_steps)
    smooth: Float[np.ndarray, "bucket"] = field(default_factory=_empty_floats)
    """Running mean."""


def curve_of(losses: Float[np.ndarray, "step"], n_obs: int, first_step: int = 0) -> Curve:
    """Thin `losses` (nats per run) to at most 600 points. Losses that are no numbers are left out."""
    steps = np.flatnonzero(np.isfinite(losses))
    values = losses[steps].astype(np.float64) / max(n_obs, 1)
    if values.size == 0:
        return Curve()
    starts = _starts(values.size, BUCKETS)
    kept = _extremes(values, starts)
    counts = np.diff(np.append(starts, values.size))
    means = np.add.reduceat(values, starts) / counts
    middle = np.minimum(starts + counts // 2, values.size - 1)
    return Curve(
        step=steps[kept] + first_step,
        loss=values[kept],
        smooth_step=steps[middle] + first_step,
        smooth=_running_mean(means, counts),
    )


def whole_and_tail(losses: Float[np.ndarray, "step"], n_obs: int) -> tuple[Curve, Curve]:
    """The curve of the whole run and of its last tenth."""
    begin = int(len(losses) * 0.9)
    return curve_of(losses, n_obs), curve_of(losses[begin:], n_obs, begin)


def convergence_verdict(losses: Float[np.ndarray, "step"], n_obs: int) -> str:
    """Say whether the loss (nats per run) still falls, judged against its own noise; empty while it is too early.

    The rate is told per observation, as losses are shown.
    """
    values = losses[np.isfinite(losses)].astype(np.float64) / max(n_obs, 1)
    if values.size < ENOUGH:
        return ""
    starts = _starts(values.size, JUDGED)
    counts = np.diff(np.append(starts, values.size))
    means = np.add.reduceat(values, starts) / counts
    slope, error = _trend(means[-TREND:])
    per_thousand = slope / counts[-1] * 1000
    if abs(slope) > SIGNIFICANT * error:
        if slope < 0:
            return f"still falling: {_short(-per_thousand)} {RATE}"
        return f"rising: {_short(per_thousand)} {RATE}; try a lower learning rate"
    return f"flat within noise since step {_flat_since(values, means, starts):,}"


RATE = "nats per observation in 1,000 steps"


def _starts(size: int, buckets: int) -> Int[np.ndarray, "bucket"]:
    return np.unique(np.linspace(0, size, min(buckets, size), endpoint=False).astype(np.int64))


def _extremes(values: Float[np.ndarray, "step"], starts: Int[np.ndarray, "bucket"]) -> Int[np.ndarray, "point"]:
    kept: list[int] = []
    for begin, end in pairwise([*starts.tolist(), values.size]):
        bucket = values[begin:end]
        kept += (begin + int(bucket.argmin()), begin + int(bucket.argmax()))
    return np.unique(kept)


def _running_mean(means: Float[np.ndarray, "bucket"], counts: Int[np.ndarray, "bucket"]) -> Float[np.ndarray, "bucket"]:
    half = min(SMOOTH // 2, means.size // SPARED)
    # The window shrinks at both ends, so that the line starts and ends where the data do.
    reach = np.minimum(half, np.minimum(np.arange(means.size), np.arange(means.size)[::-1]))
    total = np.concatenate([[0.0], np.cumsum(means * counts)])
    number = np.concatenate([[0], np.cumsum(counts)])
    low, high = np.arange(means.size) - reach, np.arange(means.size) + reach + 1
    return (total[high] - total[low]) / (number[high] - number[low])


def _trend(means: Float[np.ndarray, "piece"]) -> tuple[float, float]:
    """Least-squares slope per piece and its standard error."""
    x = np.arange(means.size) - (means.size - 1) / 2
    slope = float(x @ means / (x @ x))
    rest = means - means.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / (means.size - 2) / (x @ x)))


def _flat_since(
    values: Float[np.ndarray, "step"], means: Float[np.ndarray, "piece"], starts: Int[np.ndarray, "piece"]
) -> int:
    level, spread = means[-TREND:].mean(), means[-TREND:].std(ddof=1)
    outside = np.flatnonzero(np.abs(means - level) > SIGNIFICANT * spread)
    return int(starts[outside[-1] + 1]) if outside.size and outside[-1] + 1 < starts.size else int(starts[0])


def _short(value: float) -> str:
    if value >= 10:
        return f"{value:,.0f}"
    # Two significant digits, and no exponent, which few analysts read.
    return np.format_float_positional(value, precision=2, fractional=False, trim="-")
