"""Fit by stochastic variational inference, live and stoppable: a plan and a panel in, chunks on the way, a Fit out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from core.environment import describe_environment
from core.errors import Problem, UserError
from core.inference.batches import batch_specs, count_batches, cut
from core.inference.checkpointing import from_arrays, to_arrays
from core.inference.chunks import Advance, Pace, compile_chunks
from core.inference.dividing import divide
from core.inference.engines import ENGINES, Engine
from core.inference.failing import failed_fit, reason_of
from core.inference.fit import Chunk, Ending, Fit, Outcome, Timing, Watcher
from core.inference.guides import GUIDES
from core.inference.hosts import agreed, several
from core.inference.live import estimates_of
from core.inference.minibatch import AnyProgram, batch_state_specs, build_batch_program
from core.inference.placement import Site, put_panel, site_of
from core.inference.plan import FitPlan
from core.inference.plateau import SHORTEST, trend
from core.inference.program import build_program, state_specs
from core.inference.refusal import refuse_if_too_big
from core.inference.starts import Start, first_start
from core.inference.supply import Resident, Supply, Whole, stream
from core.inference.svi_draws import draw
from core.model.tracing import TRACING_LOCK
from core.panel import Panel

HOPELESS = 25
"""Steps in a row whose loss is not a number after which a run has diverged; its state has not moved since the first."""
PLATEAU_CHECKS = 40
"""Times in a planned run that the loss is looked at for a plateau, always at the same steps."""


def fit(plan: FitPlan, panel: Panel, watcher: Watcher, resume: Mapping[str, np.ndarray] | None = None) -> Fit:
    """Fit a host panel. Whatever goes wrong ends as an outcome; the last good state is kept where there is one."""
    run = _Run(plan, watcher)
    try:
        ready = _prepare(run, panel, resume)
        _go(run, ready)
    except Exception as error:
        reason = reason_of(error, "an SVI run")
        if several():
            # What it had reached lies on the devices of processes that may be gone.
            return failed_fit(plan, reason, run.compile_seconds + run.run_seconds)
        run.end(Ending.FAILED, reason=reason)
    return run.result()


@dataclass
class _Run:
    """What a fit has reached. `state` is the last good state on its devices, None before there is one."""

    plan: FitPlan
    watcher: Watcher
    state: Any = None
    losses: list[np.ndarray] = field(default_factory=list)
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    steps_run: int = 0
    outcome: Outcome | None = None
    devices: tuple[jax.Device, ...] = ()
    parts: int = 1
    """Runs of products into which devices and mini-batches cut the market."""
    data_home: str = "device"

    @property
    def steps(self) -> int:
        """Steps behind the state, earlier runs of a resumed fit included."""
        return sum(map(len, self.losses))

    def all_losses(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.float32), *self.losses])

    def checkpoint(self) -> Mapping[str, np.ndarray]:
        """The state as of the last chunk that has ended, for a Chunk to hand out."""
        return to_arrays(self.state, self.all_losses())

    def end(self, ending: Ending, **blanks: Any) -> None:
        usable = self.state is not None and bool(np.isfinite(self.all_losses()).any())
        self.outcome = Outcome(ending, ending.value.format(**blanks), usable)

    def result(self) -> Fit:
        assert self.outcome is not None
        losses = self.all_losses()
        environment = describe_environment(tuple(str(device.device_kind) for device in self.devices))
        backend = self.devices[0].platform if self.devices else ""
        return Fit(
            plan=self.plan,
            state=self.checkpoint() if self.outcome.usable else {},
            losses=losses,
            outcome=self.outcome,
            timing=Timing(self.compile_seconds, self.run_seconds, self.steps_run),
            environment=replace(environment, backend=backend),
            diagnostics={
                "skipped_steps": int((~np.isfinite(losses)).sum()),
                "devices": len(self.devices),
                "parts": self.parts,
                "data_home": self.data_home,
            },
        )


@dataclass(frozen=True)
class _Ready:
    """Compiled and placed."""

    site: Site
    supply: Supply
    advance: Advance


def _prepare(run: _Run, panel: Panel, resume: Mapping[str, np.ndarray] | None) -> _Ready:
    """Check that the plan can run here, place the data, set up SVI, compile."""
    plan = run.plan
    run.watcher.on_phase("compiling")
    wanted = refuse_if_too_big(plan, panel).data_home
    site = site_of(plan.placement)
    run.devices = site.devices
    batches = count_batches(panel.n_products, plan.svi.batch_products)
    _refuse_if_coupled(plan, site)
    run.parts = site.shards * batches
    run.data_home = "host" if agreed(wanted == "host") else "device"
    divided = divide(panel, run.parts)
    began = time.perf_counter()
    resumable = replace(plan, svi=replace(plan.svi, start="prior"))
    beginning = plan if resume is None else resumable
    _refuse_if_streamed(beginning, run.data_home)
    start = first_start(beginning, panel, divided)
    run.run_seconds += time.perf_counter() - began
    began = time.perf_counter()
    with jax.default_device(site.own_device):
        program, specs, supply = _set_up(plan, divided, site, start, run.data_home)
    with site.in_force():
        first = program.first
        if resume is not None:
            first, earlier = from_arrays(resume, first)
            run.losses.append(earlier)
        state = site.put(first, specs)
        pinned = np.flatnonzero(divided.real_product)[list(run.watcher.pinned)]
        compiled = compile_chunks(program, state, supply, pinned, run.steps)
    run.state = state
    run.compile_seconds += time.perf_counter() - began
    return _Ready(site, supply, compiled)


def _set_up(plan: FitPlan, divided: Panel, site: Site, start: Start, data_home: str) -> tuple[AnyProgram, Any, Supply]:
    """The program, where its state lies, and its data: a panel, or batches where parts outnumber devices."""
    if divided.shards == site.shards:
        placed = put_panel(divided, site)
        with TRACING_LOCK:
            program = build_program(plan, placed if site.shards == 1 else divided, start)
        return program, state_specs(program.first), Whole(placed)
    batches = cut(divided, site.shards)
    with TRACING_LOCK:
        batched = build_batch_program(plan, divided, batches, start)
    specs = batch_state_specs(batched.first)
    if data_home == "host":
        return batched, specs, stream(batches, site, plan.seed, plan.svi.steps)
    return batched, specs, Resident(site.put(batches, batch_specs(batches)), plan.seed)


def _go(run: _Run, ready: _Ready) -> None:
    """Chunk after chunk until the plan is done, someone stops it, or it ends by itself."""
    run.watcher.on_phase("running")
    pace, total = Pace(), run.plan.svi.steps
    with ready.site.in_force():
        while run.outcome is None:
            if run.steps >= total:
                run.end(Ending.FINISHED, steps=total)
                return
            steps = agreed(min(pace.steps, total - run.steps, _next_check(run) - run.steps))
            chunk = _chunk(run, ready, steps)
            pace.after(steps, chunk.seconds)
            run.watcher.on_chunk(chunk)
            _judge(run)
            if run.outcome is None and run.steps < total and agreed(run.watcher.should_stop()):
                run.end(Ending.STOPPED, steps=run.steps)


def _chunk(run: _Run, ready: _Ready, steps: int) -> Chunk:
    first, began = run.steps, time.perf_counter()
    state, losses, moments = ready.advance(run.state, ready.supply, first, steps)
    seconds = time.perf_counter() - began
    run.state, run.run_seconds, run.steps_run = state, run.run_seconds + seconds, run.steps_run + steps
    run.losses.append(losses)
    return Chunk(first, losses, seconds, estimates_of(moments), checkpoint=run.checkpoint)


def _judge(run: _Run) -> None:
    """End a run that has diverged or, where the plan asks, has reached its plateau."""
    losses = run.all_losses()
    good = np.flatnonzero(np.isfinite(losses))
    last_good = good[-1] if good.size else -1
    if losses.size - 1 - last_good >= HOPELESS:
        run.end(Ending.DIVERGED, step=last_good + 2)
    elif run.plan.svi.stop_at_plateau and losses.size % _check_every(run) == 0 and trend(losses).flat:
        run.end(Ending.CONVERGED, steps=losses.size)


def _check_every(run: _Run) -> int:
    return max(run.plan.svi.steps // PLATEAU_CHECKS, SHORTEST)


def _next_check(run: _Run) -> int:
    """The next step at which a chunk must end, so that a plateau is judged at steps that do not depend on speed."""
    if not run.plan.svi.stop_at_plateau:
        return run.plan.svi.steps
    every = _check_every(run)
    return (run.steps // every + 1) * every


def _refuse_if_streamed(plan: FitPlan, data_home: str) -> None:
    if data_home == "host" and plan.svi.start == "structured":
        raise UserError(
            Problem(
                "start",
                "the structured engine, asked for a start, takes all data on the device, and they stay on the host",
                "Set start=prior, or data_home=device.",
                where="start",
            )
        )


def _refuse_if_coupled(plan: FitPlan, site: Site) -> None:
    """A guide that ties all products together cannot keep each product on its own device."""
    if site.shards > 1 and GUIDES[plan.svi.guide].couples_products:
        alone = ", ".join(name for name, spec in GUIDES.items() if not spec.couples_products)
        raise UserError(
            Problem(
                "placement",
                f"{plan.svi.guide} couples all products and cannot be divided over {site.shards} devices",
                f"Use one device, or one of the guides {alone}.",
                where="guide",
            )
        )


ENGINES["svi"] = Engine(fit, draw)
