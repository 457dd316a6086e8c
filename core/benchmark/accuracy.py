"""Turn estimates of simulated elasticities into how wrong they are and whether their intervals hold."""

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
    low90, low50, high50, high90 = np.quantile(values, (0.05, 0.25, 0.75, 0.95), axis=0)
    return {
        "rmse_to_truth": rms(values.mean(axis=0, dtype=np.float64) - truth),
        "coverage90": float(((low90 <= truth) & (truth <= high90)).mean()),
        "coverage50": float(((low50 <= truth) & (truth <= high50)).mean()),
    }


def rms(distance: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(distance, dtype=np.float64))))
