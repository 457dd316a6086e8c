"""Exact over approximate likelihood of every product at joint draws of the Gaussian posterior."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from core.inference.structured.drawing import draw_shared
from core.inference.structured.mixture import single
from core.inference.structured.solver import Solver
from core.inference.structured.state import State

DRAWS = 200
"""Enough for a k-hat good to about 0.1, and one cheap pass over the cells each."""


def log_ratios(
    solver: Solver, state: State, seed: int
) -> tuple[Float[np.ndarray, "product draw"], Float[np.ndarray, "product draw"]]:
    """Log ratio per product and draw, and the drawn elasticity's distance from its mean, at the state's own scales."""
    random = np.random.default_rng([seed, 1])
    mixture = single(state)
    chosen = np.zeros(DRAWS, np.int64)
    change = draw_shared(solver, mixture, mixture.components[0], chosen, random).shared.astype(np.float32)
    found = solver.kernels.log_ratios(
        solver.precisions(state.scales), state.position, state.means.shared, state.covariance,
        solver.log_phi(state.scales), change, jax.random.key(seed),
    )  # fmt: skip
    ratio, distance = (np.asarray(solver.places.gather(v, "product"), np.float64) for v in found)
    return ratio, distance


def evidence_correction(solver: Solver, state: State, seed: int = 0) -> float:
    """What the bound lacks of the log evidence, product by product: log E_q[w] - E_q[log w], summed, in nats.

    A product's Gaussian is a little too good a fit to small spreads; over a thousand thin products that adds up. The
    same random numbers at every point make differences between points sharp.
    """
    ratio, _ = log_ratios(solver, state, seed)
    return float(np.sum(logsumexp(ratio, axis=1) - np.log(ratio.shape[1]) - ratio.mean(axis=1)))
