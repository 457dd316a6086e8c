"""Time the live loop on a regression: published chunk by chunk, fused in one piece, and by NumPyro's own two loops.

The loop is the one that fits of the dashboard run on: the same compiled `advance`, the same pace of chunks, the same
feed behind the page. Every variant takes the same steps from the same first state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from jax import Array
from jaxtyping import Float
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from core.benchmark.cases import Cell, blank
from core.benchmark.records import Record
from core.benchmark.stopwatch import Times, time_calls
from core.inference.chunks import Pace, compile_chunks
from core.inference.fit import Chunk
from core.inference.live import estimates_of
from core.inference.placement import site_of
from core.inference.program import Program
from core.inference.supply import Whole
from core.model import sites
from core.model.tracing import TRACING_LOCK
from core.runs.feed import Feed
from core.runs.snapshots import Progress

LEARNING_RATE = 0.01
SEED = 7
PULSE_SECONDS = 0.2
"""Time between two publications, but for the last: a little more than four a second."""
WATCHED = np.zeros(1, np.int64)
"""Slopes watched live: the first."""
Data = tuple[Float[Array, "row column"], Float[Array, "row"]]


def regression(data: Data) -> None:
    """A linear regression with an intercept and normal noise.

    Sites bear the names that the live loop watches, so that it also pays for its live estimates here.
    """
    x, y = data
    intercept = numpyro.sample(sites.GLOBAL, dist.Normal(0.0, 1.0))
    slopes = numpyro.sample(sites.PRODUCT, dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    noise = numpyro.sample(sites.CATEGORY, dist.Exponential(1.0))
    with numpyro.plate("row", x.shape[0]):
        numpyro.sample("y", dist.Normal(intercept + x @ slopes, noise), obs=y)


def regression_data(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns and a response with slopes 1, 2, ... over the number of columns, noise 0.5."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    y = 1.0 + x @ (np.arange(1, columns + 1) / columns) + 0.5 * rng.standard_normal(rows)
    return x, y.astype(np.float32)


def regression_program(data: Data) -> Program:
    """NumPyro's SVI of the regression with its first state."""
    guide = AutoNormal(regression)
    svi = SVI(regression, guide, optax.adam(LEARNING_RATE), Trace_ELBO())
    with TRACING_LOCK:
        first = svi.init(jax.random.key(SEED), data)
    return Program(svi=svi, guide=guide, small=data, first=first)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ran:
    """What one run gave: its losses in nats, and how often it told anyone."""

    losses: Float[np.ndarray, "step"]
    publications: int = 0


Run = Callable[[int], Ran]
"""`run(steps)` from the first state; compiles what it has not compiled yet."""


def live(program: Program, data: Data) -> Run:
    """Our loop, chunk by chunk, published as the page's worker does: the first, then at the pulse, and the last."""
    compiled: list[Any] = []

    def run(steps: int) -> Ran:
        if not compiled:
            compiled.append(compile_chunks(program, program.first, Whole(data), WATCHED))
        feed, pace, state = Feed(Progress(), None, time.monotonic), Pace(), program.first
        feed.n_obs, told, due = int(data[0].shape[0]), 0, 0.0
        while (done := feed.losses.size) < steps:
            began = time.perf_counter()
            wanted = min(pace.steps, steps - done)
            state, losses, moments = compiled[0](state, Whole(data), done, wanted)
            seconds = time.perf_counter() - began
            pace.after(wanted, seconds)
            feed.take(Chunk(done, losses, seconds, estimates_of(moments)))
            if (now := time.perf_counter()) >= due or feed.losses.size == steps:
                due, told = now + PULSE_SECONDS, told + 1
                feed.progress()
        return Ran(np.array(feed.losses.values), told)

    return run


def fused(program: Program, data: Data) -> Run:
    """The same steps in one compiled loop; the losses come back once, at the end."""

    def loop(steps: int, state: Any, data: Data) -> Array:
        def step(number: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, loss = program.svi.stable_update(carry[0], data)
            return state, carry[1].at[number].set(loss)

        return jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(steps, jnp.float32)))[1]

    compiled = jax.jit(loop, static_argnums=0)

    def run(steps: int) -> Ran:
        with TRACING_LOCK:
            return Ran(np.array(compiled(steps, program.first, data)))

    return run


def numpyro_scan(program: Program, data: Data) -> Run:
    """NumPyro's own scan, under one jit: called bare it would compile in every call."""

    def scan(steps: int, state: Any, data: Data) -> Array:
        return program.svi.run(None, steps, data, progress_bar=False, init_state=state).losses

    compiled = jax.jit(scan, static_argnums=0)

    def run(steps: int) -> Ran:
        with TRACING_LOCK:
            return Ran(np.array(compiled(steps, program.first, data)))

    return run


def numpyro_progress_bar(program: Program, data: Data) -> Run:
    """NumPyro's own loop with its progress bar, which compiles in every call."""

    def run(steps: int) -> Ran:
        with TRACING_LOCK:
            done = program.svi.run(None, steps, data, progress_bar=True, init_state=program.first)
        return Ran(np.asarray(done.losses), PROGRESS_BAR_BATCHES)

    return run


PROGRESS_BAR_BATCHES = 20
"""Times in a run that NumPyro's progress bar fetches losses."""

RUNS: Mapping[str, Callable[[Program, Data], Run]] = {
    "live": live,
    "fused": fused,
    "numpyro-progress-bar": numpyro_progress_bar,
    "numpyro-scan": numpyro_scan,
}


def measure_live(cell: Cell) -> Record:
    """Time one variant. The progress bar compiles in every call: there, that is what a call of one step takes."""
    host = regression_data(cell.rows, cell.columns)
    with site_of(cell.placement).in_force():
        data: Data = jax.device_put(host, site_of(cell.placement).devices[0])
        program = regression_program(data)
        run = RUNS[cell.variant](program, data)
        ran: list[Ran] = []
        times = time_calls(lambda: ran.append(run(cell.steps)), cell.steps, cell.seconds)
        if cell.variant == "numpyro-progress-bar":
            alone = min(time_calls(lambda: run(1), 1, 0.0).warm)
            times = Times(min(times.warm), tuple(max(warm - alone, 1e-9) for warm in times.warm), cell.steps)
    fields = times.fields(cell.rows)
    measures = {
        "loss_at_end": float(ran[-1].losses[-1]) / cell.rows,
        "publications_per_second": ran[-1].publications / fields["run_seconds"],
    }
    return replace(blank(cell), **fields, accuracy=measures)
