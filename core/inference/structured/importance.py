"""Exact over approximate likelihood of every product at joint draws of the Gaussian posterior."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from core.inference.structured.drawing import CHECKED, CHECKED_LEAVES, CHUNKS, draw_shared, in_order, leaf_draws
from core.inference.structured.mixture import single
from core.inference.structured.solver import Solver
from core.inference.structured.state import State

DRAWS = CHUNKS[-1]
"""Enough for a k-hat good to about 0.1, and one cheap pass over the cells each; one pass that draws makes them."""


def log_ratios(
    solver: Solver, state: State, seed: int
) -> tuple[Float[np.ndarray, "product draw"], Float[np.ndarray, "product draw"]]:
    """Log ratio per product and draw, and the drawn elasticity's distance from its mean, at the state's own scales."""
    random = np.random.default_rng([CHECKED, seed])
    mixture = single(state)
    chosen = np.zeros(DRAWS, np.int64)
    change = draw_shared(solver, mixture, mixture.components[0], chosen, random).shared.astype(np.float32)
    leaves = leaf_draws(solver, state, change, [CHECKED_LEAVES, seed])
    ratio = solver.kernels.log_ratios(
        solver.precisions(state.scales), state.position, state.means.shared, state.covariance,
        solver.log_phi(state.scales), change, leaves,
    )  # fmt: skip
    by_draw = [in_order(solver, values, "product") for values in (ratio, leaves[0])]
    return by_draw[0].T.astype(np.float64), by_draw[1].T.astype(np.float64)


def evidence_correction(solver: Solver, state: State, seed: int = 0) -> float:
    """What the bound lacks of the log evidence, product by product: log E_q[w] - E_q[log w], summed, in nats.

    A product's Gaussian is a little too good a fit to small spreads; over a thousand thin products that adds up. The
    same random numbers at every point make differences between points sharp.
    """
    ratio, _ = log_ratios(solver, state, seed)
    return float(np.sum(logsumexp(ratio, axis=1) - np.log(ratio.shape[1]) - ratio.mean(axis=1)))
