"""Where an iteration is, when it has arrived, and how long its next step may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from core.inference.structured.passes import Position, Shared
from core.inference.structured.scales import QuasiNewton, Scales
from core.inference.structured.upper import Means

CONTRACTS = 0.8
"""Largest step over the one before, up to which an iteration got closer."""
PATIENCE = 2
"""Iterations in a row without getting closer that are taken for swinging."""
SWINGS = 5.0
"""Step of a scale, over what counts as none, that explains larger steps of the elasticities."""
LEAST_DAMPING = 0.125


@dataclass(frozen=True)
class State:
    """Where the iteration is. `variance` of each elasticity; `sums` of the last move; NumPy but for `position`."""

    position: Position
    variance: Any
    means: Means
    sums: Shared
    scales: Scales
    newton: QuasiNewton
    covariance: Float[np.ndarray, "category column column"]
    market_covariance: Float[np.ndarray, "market market"]
    iteration: int = 0
    damping: float = 1.0
    stalled: int = 0
    """Iterations in a row that hardly got closer."""
    bound: float = -np.inf
    """Evidence lower bound plus log prior of what is learned, in nats."""
    change: float = np.inf
    """Largest step of an elasticity or level, in its own sd."""
    scale_change: float = np.inf
    """Largest step of a learned logarithm, in units of what counts as none."""
    information: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Of each learned logarithm: the inverse square of its posterior sd, roughly."""

    def converged(self, tolerance: float) -> bool:
        return self.change <= tolerance * self.damping and self.scale_change <= 1.0


def next_damping(state: State, change: float) -> tuple[float, int]:
    """Halve the damping when steps stop shrinking, and lengthen it again while they shrink fast."""
    closer = change <= CONTRACTS * state.change or state.scale_change > SWINGS
    stalled = 0 if closer else state.stalled + 1
    if stalled > PATIENCE:
        return max(LEAST_DAMPING, state.damping / 2), 0
    return (min(1.0, 1.25 * state.damping), 0) if change < 0.3 * state.change else (state.damping, stalled)
