"""The engines by name, behind one call each to fit and to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from core.inference.fit import Draws, Fit, Watcher
from core.inference.plan import FitPlan
from core.panel import Panel

MODULES = {
    "svi": "core.inference.svi",
    "structured": "core.inference.structured.engine",
    "nuts": "core.inference.nuts",
}
"""Where each engine registers itself: `ENGINES[name] = Engine(...)` at the end of the module. Imported when wanted."""


@dataclass(frozen=True)
class Engine:
    """One way of finding the posterior.

    `fit(plan, panel, watcher, resume)` takes a host panel and places it itself; `resume` is a checkpoint's state.
    `draw(fit, panel, n_draws, seed)` takes the same host panel.
    """

    fit: Callable[[FitPlan, Panel, Watcher, Mapping[str, np.ndarray] | None], Fit]
    draw: Callable[[Fit, Panel, int, int], Draws]
    in_team: bool = True
    """Whether several processes may run it together; then all of them fit and all of them draw."""


class Engines(dict[str, Engine]):
    """Engines by name; asking for one imports its module."""

    def __missing__(self, name: str) -> Engine:
        import_module(MODULES[name])
        if name not in self:
            raise LookupError(f"{MODULES[name]} does not register the engine '{name}'")
        return self[name]


ENGINES = Engines()


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
