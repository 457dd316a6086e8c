"""Ask of each product whether its Gaussian posterior is good enough: importance weights at joint draws, Pareto k-hat,
and mean and sd corrected by them.

At draws of the shared unknowns and of a product given them, the weight is its exact likelihood over the Gaussian one
that stands in for it. Corrections are of the weighted draws less the plain ones, so that the draws' own noise cancels
where the weights are even.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from core.inference.structured.importance import log_ratios
from core.inference.structured.mixture import Mixture
from core.inference.structured.psis import GOOD, smooth
from core.inference.structured.solver import Solver

FEW_CATEGORIES = 5
VAGUE = 0.6
"""Posterior sd of a log scale from which on its prior has the larger say."""


def check(solver: Solver, mixture: Mixture, seed: int) -> dict[str, np.ndarray]:
    """Per product: `k_hat`, analytic `mean` and `sd`, and `corrected_mean`, `corrected_sd` (NaN where k-hat is bad)."""
    best = int(np.argmax(mixture.weights()))
    state = mixture.components[best].state
    ratio, distance = log_ratios(solver, state, seed)
    weight, k_hat = smooth(ratio)
    mean, variance = analytic(solver, mixture)
    shift, spread = _corrections(weight, distance)
    base = solver.places.gather(state.variance, "product")
    factor = np.sqrt(np.clip((base + spread) / np.where(base > 0, base, 1), 0.25, 4.0))
    good = k_hat < GOOD
    return {
        "k_hat": k_hat.astype(np.float32),
        "mean": mean,
        "sd": np.sqrt(variance),
        "corrected_mean": np.where(good, mean + shift, np.nan),
        "corrected_sd": np.where(good, np.sqrt(variance) * factor, np.nan),
    }


def analytic(solver: Solver, mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each elasticity over the points of the mixture, category scales at their best."""
    weights = mixture.weights()
    means = [solver.places.gather(part.state.position.elasticity, "product") for part in mixture.components]
    variances = [solver.places.gather(part.state.variance, "product") for part in mixture.components]
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    second = sum(w * (v + (m - mean) ** 2) for w, m, v in zip(weights, means, variances, strict=True))
    return np.asarray(mean), np.asarray(second)


def _corrections(weight: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the weights add to the mean and to the variance."""
    excess = weight - 1 / weight.shape[1]
    shift = np.sum(excess * distance, axis=1)
    return shift, np.sum(excess * distance**2, axis=1) - shift**2


def warnings(solver: Solver, mixture: Mixture) -> tuple[str, ...]:
    """Sentences on what of the result rests on priors more than on data."""
    said = []
    n = solver.n_categories
    few = n < FEW_CATEGORIES
    if mixture.names and few:
        noun = "category" if n == 1 else "categories"
        said.append(
            f"Only {n} {noun}: how far categories spread is known from their prior more than from the data, and with "
            "it the market's interval. Product intervals are not affected."
        )
    vague = [name for name, sd in mixture.sd.items() if sd > VAGUE and not (name in mixture.names and few)]
    if vague:
        said.append(f"The data hardly tell how far these spread: {_named(vague)}. Their intervals lean on the prior.")
    if mixture.left_out:
        said.append(
            f"The market is too large to integrate over how far these spread: {_named(mixture.left_out)}. They are "
            "held at their best values, and intervals may be a little narrow."
        )
    return tuple(said)


def _named(scales: Iterable[str]) -> str:
    return ", ".join(name.removesuffix("_scale").replace("_", " ") for name in scales)


def no_check(solver: Solver, mixture: Mixture) -> Mapping[str, Any]:
    """Mean and sd alone, of a fit that was stopped."""
    mean, variance = analytic(solver, mixture)
    return {"mean": mean, "sd": np.sqrt(variance)}
