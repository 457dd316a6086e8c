"""The engines by name, behind one call each to fit and to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from core.inference.fit import Draws, Fit, Watcher
from core.inference.plan import FitPlan
from core.panel import Panel


@dataclass(frozen=True)
class Engine:
    """One way of finding the posterior.

    `fit(plan, panel, watcher, resume)` takes a host panel and places it itself; `resume` is a checkpoint's state.
    `draw(fit, panel, n_draws, seed)` takes the same host panel.
    """

    fit: Callable[[FitPlan, Panel, Watcher, Mapping[str, np.ndarray] | None], Fit]
    draw: Callable[[Fit, Panel, int, int], Draws]


ENGINES: dict[str, Engine] = {}


def fit(
    plan: FitPlan,
    panel: Panel,
    watcher: Watcher | None = None,
    resume: Mapping[str, np.ndarray] | None = None,
) -> Fit:
    """Fit `plan` to `panel`. Ends in an outcome, never in an exception, for everything that can go wrong on the way."""
    return ENGINES[plan.engine].fit(plan, panel, watcher or Watcher(), resume)


def draw(fit: Fit, panel: Panel, n_draws: int, seed: int = 0) -> Draws:
    """Joint posterior draws of a usable fit."""
    return ENGINES[fit.plan.engine].draw(fit, panel, n_draws, seed)
