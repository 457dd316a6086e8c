"""Turn estimates of elasticities whose truth is known into how wrong they are and whether their intervals hold."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from core.inference.fit import Draws

Z90, Z50 = 1.6448536269514722, 0.6744897501960817
"""Half-widths of a normal's central 90 % and 50 % intervals, in sd."""


def of_normals(
    mean: Float[np.ndarray, "product"], sd: Float[np.ndarray, "product"], truth: Float[np.ndarray, "product"]
) -> dict[str, float]:
    """Error and coverage of independent normals."""
    distance = np.abs(mean - truth)
    return {
        "rmse_to_truth": rms(distance),
        "coverage90": float((distance <= Z90 * sd).mean()),
        "coverage50": float((distance <= Z50 * sd).mean()),
    }


def of_draws(draws: Draws, truth: Float[np.ndarray, "product"]) -> dict[str, float]:
    """Error of the draws' means and coverage of their central intervals."""
    values = np.asarray(draws.elasticity_product)
    return {
        "rmse_to_truth": rms(values.mean(axis=0, dtype=np.float64) - truth),
        "coverage90": share_inside(values, truth, 0.9),
        "coverage50": share_inside(values, truth, 0.5),
    }


def rms(distance: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(distance, dtype=np.float64))))


def share_inside(draws: Float[np.ndarray, "draw *member"], truth: Float[np.ndarray, "*member"], mass: float) -> float:
    """Share of true values inside the central interval of `mass` that the draws make."""
    low, high = np.quantile(draws, (0.5 - mass / 2, 0.5 + mass / 2), axis=0)
    return float(((low <= truth) & (truth <= high)).mean())
