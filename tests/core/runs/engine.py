"""A small engine with the manners of a real one: deterministic, in chunks, can stop, can go on bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from core.environment import Environment
from core.inference.engines import Engine
from core.inference.fit import Chunk, Draws, Ending, Estimates, Fit, Outcome, Timing, Watcher
from core.inference.plan import FitPlan
from core.panel import Panel

CHUNK = 10
PATIENCE = 60.0
"""Seconds after which a test gives up on a run that should end in one."""
NOWHERE = Environment("3", {}, "test", "test", 1, 1.0, "cpu", ("cpu",))


@dataclass
class Walk:
    """A damped random walk; its loss is the distance to 0, so that it falls and then stays noisy."""

    after_chunk: Callable[[int], None] = lambda step: None
    """Called after each chunk with the number of steps done: tests wait, kill or raise here."""
    ending: Ending = Ending.FINISHED
    fits: list[FitPlan] = field(default_factory=list)

    def engine(self) -> Engine:
        return Engine(self.fit, self.draw)

    def fit(self, plan: FitPlan, panel: Panel, watcher: Watcher, resume: Mapping[str, np.ndarray] | None = None) -> Fit:
        self.fits.append(plan)
        watcher.on_phase("compiling")
        state = dict(resume) if resume else {"x": np.full(3, 100.0 + plan.seed), "step": np.array(0)}
        watcher.on_phase("running")
        begun = int(state["step"])
        outcome = self._run(plan, panel, watcher, state)
        return Fit(plan, state, np.zeros(0), outcome, Timing(0.5, 1.0, int(state["step"]) - begun), NOWHERE)

    def _run(self, plan: FitPlan, panel: Panel, watcher: Watcher, state: dict[str, np.ndarray]) -> Outcome:
        while (done := int(state["step"])) < plan.svi.steps:
            if watcher.should_stop():
                return Outcome(Ending.STOPPED, f"Stopped by you after {done} steps.", usable=True)
            losses = self._advance(state, min(CHUNK, plan.svi.steps - done))
            kept = {name: value.copy() for name, value in state.items()}
            watcher.on_chunk(
                Chunk(done, losses, 0.01, self._estimates(state, panel, watcher), {"x": 1.0}, lambda kept=kept: kept)
            )
            self.after_chunk(int(state["step"]))
        return Outcome(self.ending, f"All {plan.svi.steps} steps done.", self.ending is not Ending.DIVERGED)

    def _advance(self, state: dict[str, np.ndarray], steps: int) -> np.ndarray:
        losses = np.zeros(steps, np.float32)
        for n in range(steps):
            noise = np.random.default_rng(int(state["step"])).normal(size=3)
            state["x"] = 0.99 * state["x"] + noise
            state["step"] = state["step"] + 1
            losses[n] = np.sum(state["x"] ** 2)
        return losses

    def _estimates(self, state: dict[str, np.ndarray], panel: Panel, watcher: Watcher) -> Estimates:
        categories, pinned = panel.n_categories, len(watcher.pinned)
        return Estimates(
            float(state["x"][0]), 0.1, np.zeros(categories), np.ones(categories), np.zeros(pinned), np.ones(pinned)
        )

    def draw(self, fit: Fit, panel: Panel, n_draws: int, seed: int) -> Draws:
        rng = np.random.default_rng(seed)

        def normal(*shape: int) -> np.ndarray:
            return (fit.state["x"][0] + rng.normal(size=(n_draws, *shape))).astype(np.float32)

        return Draws(normal(), normal(panel.n_categories), normal(panel.n_products), normal(panel.n_series))


class Gate:
    """Holds the engine after a given step until the test lets it go."""

    def __init__(self, walk: Walk, step: int):
        self.reached, self._go, self._step = threading.Event(), threading.Event(), step
        walk.after_chunk = self._hold

    def _hold(self, step: int) -> None:
        if step == self._step:
            self.reached.set()
            assert self._go.wait(PATIENCE)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE)

    def open(self) -> None:
        self._go.set()


def undisturbed(plan: FitPlan, steps: int) -> np.ndarray:
    """The losses of a run that nothing stopped."""
    walk = Walk()
    state = {"x": np.full(3, 100.0 + plan.seed), "step": np.array(0)}
    return walk._advance(state, steps)
