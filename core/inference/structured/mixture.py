"""The posterior over the learned scales as weighted Gaussians: integration makes it, drawing uses it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from core.inference.structured.scales import Scales
from core.inference.structured.state import State


@dataclass(frozen=True)
class Component:
    """One point: its state, and the grid over category scales there with normalised weights (all points together)."""

    state: State
    log_weight: Float[np.ndarray, "grid"]


@dataclass(frozen=True)
class Mixture:
    """The posterior over scales. `grid` holds log scales of `names`, one row a grid value."""

    components: tuple[Component, ...]
    names: tuple[str, ...]
    grid: Float[np.ndarray, "grid name"]
    bound: float
    """Evidence lower bound with the scales integrated out, in nats."""
    sd: dict[str, float]
    """Posterior sd of each learned log scale."""
    left_out: tuple[str, ...] = ()
    """Scales that would have had points, had the market not been too large to hold them."""

    def weights(self) -> Float[np.ndarray, "component"]:
        """Weight of each point, its grid summed."""
        return np.array([np.exp(logsumexp(part.log_weight)) for part in self.components])


def single(state: State) -> Mixture:
    """The mixture of one Gaussian at the state's own scales."""
    part = Component(state, np.zeros(1))
    return Mixture((part,), (), np.zeros((1, 0)), state.bound, {})


def with_scales(scales: Scales, names: tuple[str, ...], row: np.ndarray) -> Scales:
    return replace(scales, log_scale=scales.log_scale | dict(zip(names, map(float, row), strict=True)))
