"""Fit a market with the structured engine and draw from the fit: what `ENGINES['structured']` calls.

Every iteration is a chunk: the loss, the largest change, the scales, the elasticities so far. A fit that converges is
integrated over its scales and checked product by product; one that is stopped or gives up is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import jax
import numpy as np

from core.environment import describe_environment
from core.inference.engines import ENGINES, Engine
from core.inference.failing import failed_fit, reason_of
from core.inference.fit import Chunk, Draws, Ending, Estimates, Fit, Outcome, Timing, Watcher
from core.inference.hosts import agreed, fetched, several
from core.inference.placement import site_of
from core.inference.plan import FitPlan
from core.inference.structured.check import check, no_check, warnings
from core.inference.structured.drawing import draw_mixture
from core.inference.structured.integrate import gaussian_volume, integrate
from core.inference.structured.mixture import Mixture, single
from core.inference.structured.solver import Solver
from core.inference.structured.state import State
from core.inference.structured.storing import arrays_of_mixture, arrays_of_state, centre_of_arrays, mixture_of_arrays
from core.panel import Panel

RETRIES = 6
"""Times that a step which left the numbers' range is tried again, each a quarter as long."""


def fit(plan: FitPlan, panel: Panel, watcher: Watcher, resume: Mapping[str, np.ndarray] | None = None) -> Fit:
    """Find the Gaussian posterior of `plan` on a host panel. Ends in an outcome, whatever goes wrong on the way."""
    with jax.enable_x64(True):
        run = _Run(plan, watcher)
        try:
            return run.run(panel, resume)
        except Exception as error:
            return run.failed(reason_of(error, "a structured fit"))


def draw(fit: Fit, panel: Panel, n_draws: int, seed: int = 0) -> Draws:
    """Joint draws of a usable fit, from the same host panel."""
    with jax.enable_x64(True):
        solver = _solver(fit.plan, panel)
        mixture = mixture_of_arrays(solver, fit.state)
        return draw_mixture(solver, mixture, n_draws, seed)


def _solver(plan: FitPlan, panel: Panel) -> Solver:
    return Solver(plan.model, panel, site_of(plan.placement).devices, plan.structured.tolerance)


class _Run:
    """One fit under way."""

    def __init__(self, plan: FitPlan, watcher: Watcher):
        self.plan, self.watcher = plan, watcher
        self.began = perf_counter()
        self.losses: list[float] = []
        self.good: State | None = None
        """The last state that an iteration has reached."""

    def run(self, panel: Panel, resume: Mapping[str, np.ndarray] | None) -> Fit:
        self.watcher.on_phase("compiling")
        self.solver = _solver(self.plan, panel)
        state = self._resumed(resume) if resume else self.solver.start()
        ending, state = self._iterate(state)
        if ending is Ending.DIVERGED:
            return self._finish(single(state), ending, {})
        if ending is Ending.CONVERGED:
            mixture = integrate(self.solver, state, self._should_stop)
            found: Mapping[str, Any] = check(self.solver, mixture, self.plan.seed)
        else:
            mixture = single(state)
            found = no_check(self.solver, mixture)
        return self._finish(mixture, ending, {**found, "warnings": warnings(self.solver, mixture)})

    def failed(self, reason: str) -> Fit:
        """What a fit that broke has to show: its last good state where there is one that can be drawn from."""
        # In a team it lies on the devices of processes that may be gone.
        if self.good is not None and not several():
            try:
                mixture = single(self.good)
                return self._finish(mixture, Ending.FAILED, no_check(self.solver, mixture), reason)
            except Exception as error:
                reason_of(error, "keeping what a failed structured fit had reached")
        return failed_fit(self.plan, reason, perf_counter() - self.began)

    def _resumed(self, arrays: Mapping[str, np.ndarray]) -> State:
        self.losses = np.asarray(arrays.get("losses", ())).tolist()
        return centre_of_arrays(self.solver, arrays)

    def _iterate(self, state: State) -> tuple[Ending, State]:
        structured = self.plan.structured
        if state.iteration and state.converged(structured.tolerance):
            # Resumed where it had converged, to be drawn: a further step would make it another result.
            return Ending.CONVERGED, state
        while state.iteration < structured.max_iterations:
            if state.iteration and self._should_stop():
                return Ending.STOPPED, state
            began = perf_counter()
            after = self._step(state)
            if after is None:
                return Ending.DIVERGED, state
            if not self.losses:
                self.watcher.on_phase("running")
            state = self.good = after
            self.losses.append(-(state.bound + gaussian_volume(state)))
            self.watcher.on_chunk(self._chunk(state, perf_counter() - began))
            if agreed(state.converged(structured.tolerance)):
                return Ending.CONVERGED, state
        return Ending.NOT_CONVERGED, state

    def _should_stop(self) -> bool:
        return bool(agreed(self.watcher.should_stop()))

    def _step(self, state: State) -> State | None:
        """The next state; where numbers leave their range, that of a shorter step; None where no step helps."""
        for _ in range(RETRIES):
            try:
                after = self.solver.iterate(state)
                if np.isfinite(after.bound) and np.isfinite(after.change):
                    return after
            except np.linalg.LinAlgError:
                pass
            state = replace(state, damping=state.damping / 4)
        return None

    def _chunk(self, state: State, seconds: float) -> Chunk:
        notes = {"largest_change": state.change, "damping": state.damping}
        notes |= {name: float(np.exp(value)) for name, value in state.scales.log_scale.items()}
        if state.scales.log_phi.size:
            notes["concentration_global"] = float(np.exp(state.scales.log_phi_market))
        losses = np.array(self.losses)

        def checkpoint() -> Mapping[str, np.ndarray]:
            with jax.enable_x64(True):
                return {**arrays_of_state(self.solver, state), "losses": losses}

        return Chunk(
            first_step=state.iteration - 1,
            losses=losses[-1:],
            seconds=seconds,
            estimates=self._estimates(state),
            notes=notes,
            checkpoint=checkpoint,
        )

    def _estimates(self, state: State) -> Estimates:
        e, pinned = self.solver.columns.elasticity, list(self.watcher.pinned)
        at = self.solver.places.product[pinned] if pinned else np.zeros(0, np.int64)
        mean, variance = (v.reshape(-1)[at] for v in fetched((state.position.elasticity, state.variance)))
        return Estimates(
            global_mean=float(state.means.market[0]),
            global_sd=float(np.sqrt(state.market_covariance[0, 0])),
            category_mean=state.means.shared[:, e].copy(),
            category_sd=np.sqrt(state.covariance[:, e, e]),
            pinned_mean=mean,
            pinned_sd=np.sqrt(variance),
        )

    def _finish(self, mixture: Mixture, ending: Ending, diagnostics: Mapping[str, Any], reason: str = "") -> Fit:
        steps = mixture.components[0].state.iteration
        compiling = self.solver.kernels.compile_seconds
        usable = ending is not Ending.DIVERGED
        return Fit(
            plan=self.plan,
            state={**arrays_of_mixture(self.solver, mixture), "losses": np.array(self.losses)},
            losses=np.array(self.losses),
            outcome=Outcome(ending, ending.value.format(steps=steps, step=steps + 1, reason=reason), usable),
            timing=Timing(compiling, perf_counter() - self.began - compiling, steps),
            environment=describe_environment(),
            diagnostics={**diagnostics, "bound": mixture.bound, "points": len(mixture.components)},
        )


ENGINES["structured"] = Engine(fit, draw)
