"""The values a fit reports and returns, and the one call that runs any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from jaxtyping import Float

from core.environment import Environment
from core.inference.plan import FitPlan


class Ending(Enum):
    """How a fit ended; the value is the sentence shown, in which `{...}` is filled in where it ended."""

    FINISHED = "All {steps:,} steps done."
    CONVERGED = "Converged after {steps:,} steps."
    STOPPED = "Stopped by you after {steps:,} steps; the result is usable, less accurate than a finished one."
    NOT_CONVERGED = "Not converged after {steps:,} steps: allow more, or simplify the model."
    DIVERGED = (
        "The loss stopped being a number at step {step:,}: lower the learning rate, or check the data for extremes."
    )
    FAILED = "The fit failed: {reason}"

    def tells(self, sentence: str) -> bool:
        """Whether `sentence` is how this ending is told."""
        return sentence.startswith(self.value.partition("{")[0])


@dataclass(frozen=True)
class Outcome:
    """How a fit ended, in a sentence that says what to try. `usable`: a posterior can be drawn from it."""

    ending: Ending
    sentence: str
    usable: bool


@dataclass(frozen=True)
class Timing:
    """Seconds, compilation apart. `steps` are optimiser steps, iterations or samples, as the engine counts."""

    compile_seconds: float
    run_seconds: float
    steps: int

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.run_seconds if self.run_seconds > 0 else 0.0


@dataclass(frozen=True)
class Estimates:
    """Elasticities so far: mean and sd of the global, of every category, of the pinned products (in pin order)."""

    global_mean: float
    global_sd: float
    category_mean: Float[np.ndarray, "category"]
    category_sd: Float[np.ndarray, "category"]
    pinned_mean: Float[np.ndarray, "pinned"]
    pinned_sd: Float[np.ndarray, "pinned"]


@dataclass(frozen=True)
class Chunk:
    """A batch of steps that has just run. `losses` are negative bounds in nats per run, one per step."""

    first_step: int
    losses: Float[np.ndarray, "step"]
    seconds: float
    estimates: Estimates | None = None
    notes: Mapping[str, float] = field(default_factory=dict)
    """What else the engine has to say, by name: largest change, scales."""
    checkpoint: Callable[[], Mapping[str, np.ndarray]] | None = None
    """Copies the engine's state to the host, enough to go on from here bit for bit; called only when wanted."""


@dataclass(frozen=True)
class Watcher:
    """Who looks on. Called from the fitting thread; `on_chunk` about three times a second."""

    on_phase: Callable[[str], None] = lambda phase: None
    """Phases: 'compiling', 'running', 'drawing'."""
    on_chunk: Callable[[Chunk], None] = lambda chunk: None
    should_stop: Callable[[], bool] = lambda: False
    pinned: tuple[int, ...] = ()
    """Products to estimate live, at most ten."""


@dataclass(frozen=True)
class Fit:
    """What an engine found. `state` is the engine's own, as NumPy arrays by name: what a checkpoint keeps."""

    plan: FitPlan
    state: Mapping[str, np.ndarray]
    losses: Float[np.ndarray, "step"]
    outcome: Outcome
    timing: Timing
    environment: Environment
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    """Per product or single numbers: k-hat, effective sample sizes, corrected means; may be empty."""


@dataclass(frozen=True)
class Draws:
    """Joint posterior draws. Float32 NumPy arrays with the draw first; fillers of a shard are already cut off."""

    elasticity_global: Float[np.ndarray, "draw"]
    elasticity_category: Float[np.ndarray, "draw category"]
    elasticity_product: Float[np.ndarray, "draw product"]
    level_series: Float[np.ndarray, "draw series"]
    """Log expected units of a series at its own mean price, time and covariate effects apart."""
    others: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Remaining sites by name, draw first: time_effect, covariate_category, concentration_category, scales."""
