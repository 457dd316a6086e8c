"""Turn a cell into its record, in this process: make the market untimed, run the variant, time it, judge it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.benchmark.cases import BATCH_MARKET, Cell, batch_cells, blank, not_run
from core.benchmark.measure_live import RUNS, measure_live
from core.benchmark.memory import forget_peak, peak_bytes
from core.benchmark.records import Record
from core.benchmark.stopwatch import time_calls, time_fields
from core.data.markets import panel_of_market
from core.environment import describe_environment, free_memory_bytes, resident_bytes
from core.errors import UserError
from core.inference.batches import count_batches
from core.inference.engines import draw, fit
from core.inference.fit import Chunk, Ending, Fit, Watcher
from core.inference.placement import bytes_per_device, place, site_of
from core.inference.plan import ARTICLE_PLAN, ARTICLE_SVI, FitPlan, SviPlan
from core.model.plan import ModelPlan
from core.panel import Panel, PanelLabels
from core.posterior import accuracy
from core.posterior.posterior import posterior_of
from core.simulation import MarketPlan, simulate

CATEGORIES = 10
MARKET_SEED = 20_260_101
SIMULATION_BYTES = 160
"""Host memory that drawing and encoding a market takes at its peak, per row, in bytes; measured at 10^6 rows."""
FEWEST_CHUNKS = 3


@dataclass(frozen=True)
class Setting:
    """What a market cell runs on."""

    panel: Panel
    labels: PanelLabels
    elasticity: np.ndarray
    """True product elasticities."""
    resident: int
    """Host memory held before the market was made, in bytes."""


def measure(cell: Cell) -> Record:
    """Measure a cell in this process. What goes wrong on the way becomes the record's error."""
    try:
        devices = site_of(cell.placement).shards
        reason = _too_large(cell)
        record = not_run(cell, reason) if reason else replace(METERS[cell.variant](cell), devices=devices)
    except UserError as refusal:
        record = not_run(cell, "Not run: " + " ".join(problem.what for problem in refusal.problems) + ".")
    except Exception as failure:
        record = not_run(cell, f"{type(failure).__name__}: {failure}".split("\n")[0][:300])
    return replace(record, environment=describe_environment())


def _too_large(cell: Cell) -> str:
    needed, free = cell.n_obs * SIMULATION_BYTES, free_memory_bytes()
    if needed <= free:
        return ""
    return f"Not run: {cell.n_obs:,} rows need about {needed / 2**30:.1f} GB of memory; {free / 2**30:.1f} GB are free."


def set_up(cell: Cell) -> Setting:
    """Draw the cell's market and encode it; from here on the peak of memory is counted anew."""
    resident = resident_bytes()
    market = simulate(
        MarketPlan(
            products=cell.products,
            periods=cell.periods,
            categories=min(CATEGORIES, cell.products),
            likelihood=cell.likelihood,
            seed=MARKET_SEED,
        )
    )
    panel, labels = panel_of_market(market)
    truth = market.truth.elasticity_product
    del market
    gc.collect()
    forget_peak()
    return Setting(panel, labels, truth, resident)


def memory_of(setting: Setting, n_obs: int) -> dict[str, float]:
    peak = peak_bytes()
    return {"peak_bytes": float(peak), "bytes_per_row": (peak - setting.resident) / n_obs}


# The article's layout


def article_call(cell: Cell, setting: Setting) -> tuple[Callable[[int], float], Callable[[], Any]]:
    """`run(n) -> last loss` that compiles when first called, and `estimates()` of the state reached."""
    import jax

    from core.benchmark import article

    observations = article.place_by_observation(
        article.observations_of(setting.panel), list(site_of(cell.placement).devices)
    )
    svi = article.article_svi(cell.loss, cell.particles)
    compile_steps = article.fused if cell.variant == "article-fused" else article.stepwise
    held: dict[str, Any] = {"state": article.first_state(svi, observations), "advance": None}

    def run(n: int) -> float:
        if held["advance"] is None:
            held["advance"] = compile_steps(svi, held["state"], observations)
        held["state"], loss = held["advance"](held["state"], n)
        return float(jax.block_until_ready(loss))

    return run, lambda: article.elasticities(svi, held["state"])


ARTICLE_STEPS_PER_CALL = 4
SMALL_OBS = 1_000_000
"""Below, a call does more steps, so that it outlasts the clock's noise."""


def _steps_per_call(n_obs: int) -> int:
    return ARTICLE_STEPS_PER_CALL * min(max(SMALL_OBS // n_obs, 1), 100)


def _article(cell: Cell) -> Record:
    setting = set_up(cell)
    run, _ = article_call(cell, setting)
    losses: list[float] = []
    steps = cell.steps or _steps_per_call(cell.n_obs)
    times = time_calls(lambda: losses.append(run(steps)), steps, cell.seconds)
    measures = {"loss_at_end": losses[-1] / cell.n_obs, **memory_of(setting, cell.n_obs)}
    return replace(blank(cell), **times.fields(cell.n_obs), accuracy=measures)


FIT_PATIENCE = 8
"""Times `Cell.seconds` that the article's recipe is given to reach what accuracy it can."""


def _article_fit(cell: Cell) -> Record:
    """The article's recipe for a while: what it has reached, and in how many seconds, nothing extrapolated."""
    setting = set_up(cell)
    run, estimates = article_call(cell, setting)
    steps = _steps_per_call(cell.n_obs)
    times = time_calls(lambda: run(steps), steps, FIT_PATIENCE * cell.seconds)
    found, best = estimates(), min(times.warm)
    ran = {"run_seconds": sum(times.warm) + best, "steps": (len(times.warm) + 1) * steps}
    measures = accuracy.of_normals(found["mean"], found["sd"], setting.elasticity)
    return replace(blank(cell), **times.fields(cell.n_obs) | ran, accuracy=measures)


def _article_extrapolated(cell: Cell) -> Record:
    """Seconds of the steps that the article asks for, at the rate of those that ran. No accuracy: nobody ran them."""
    setting = set_up(cell)
    run, _ = article_call(cell, setting)
    steps, asked = _steps_per_call(cell.n_obs), ARTICLE_SVI.steps
    times = time_calls(lambda: run(steps), steps, cell.seconds)
    million = {"run_seconds": min(times.warm) / steps * asked, "steps": asked}
    ran = float((len(times.warm) + 1) * steps)
    return replace(blank(cell), **times.fields(cell.n_obs) | million, accuracy={"extrapolated_from_steps": ran})


# Our engines, through the one call that the page uses too


@dataclass
class _Clock:
    """Seconds per step of every chunk; asks to stop when the time is up."""

    seconds: float
    per_step: list[float]
    started: float = 0.0

    def on_chunk(self, chunk: Chunk) -> None:
        self.started = self.started or time.perf_counter() - chunk.seconds
        if chunk.losses.size:
            self.per_step.append(chunk.seconds / chunk.losses.size)

    def is_up(self) -> bool:
        return len(self.per_step) > FEWEST_CHUNKS and time.perf_counter() - self.started > self.seconds


def panel_plan(cell: Cell) -> FitPlan:
    """The article's plan with the cell's loss, for our own SVI."""
    svi = replace(ARTICLE_SVI, loss=cell.loss, particles=cell.particles, guide=cell.guide)
    return replace(ARTICLE_PLAN, svi=replace(svi, steps=cell.steps) if cell.steps else svi, placement=cell.placement)


def _panel(cell: Cell) -> Record:
    """The article's model and recipe in our live loop."""
    setting = set_up(cell)
    result, record = _steps(cell, plan := panel_plan(cell), setting)
    measures = dict(record.accuracy)
    if cell.case == "posterior":
        measures |= accuracy.of_draws(draw(result, setting.panel, plan.draws), setting.elasticity)
    return replace(record, accuracy=measures | _bytes_per_device(cell.placement, setting.panel))


def _steps(cell: Cell, plan: FitPlan, setting: Setting) -> tuple[Fit, Record]:
    """Our live loop on a plan: seconds per step from its chunks, the first one left out; nanoseconds per row read."""
    clock = _Clock(cell.seconds, [])
    watcher = Watcher(on_chunk=clock.on_chunk, should_stop=lambda: not cell.steps and clock.is_up())
    result = _usable(fit(plan, setting.panel, watcher))
    warm = clock.per_step[1:] or clock.per_step
    batches = count_batches(setting.panel.n_products, plan.svi.batch_products)
    measures = {"loss_at_end": float(result.losses[-1]) / cell.n_obs, **memory_of(setting, cell.n_obs)}
    measures |= {"rows_per_step": cell.n_obs / batches} if batches > 1 else {}
    times = time_fields(warm, result.timing.steps, cell.n_obs // batches)
    return result, replace(blank(cell), **times, compile_seconds=result.timing.compile_seconds, accuracy=measures)


UNENDING_STEPS = 1_000_000
"""Steps planned where the clock ends a run: the last one would not be reached."""


def batch_plan(cell: Cell) -> FitPlan:
    """The default plan for our SVI, on as many products a step as the cell says, kept where it says."""
    svi = replace(
        SviPlan(),
        loss=cell.loss,
        particles=cell.particles,
        guide=cell.guide,
        steps=cell.steps or UNENDING_STEPS,
        batch_products=cell.batch_products,
        data_home=cell.data_home,
    )
    model = ModelPlan(likelihood=cell.likelihood)
    return FitPlan(model=model, engine="svi", svi=svi, placement=cell.placement)


def _by_batch(cell: Cell) -> Record:
    return _steps(cell, batch_plan(cell), set_up(cell))[1]


ENGINES = {"svi": "svi", "svi-lowrank": "svi", "nuts": "nuts"}
"""Engine of a variant; the structured one of the others."""


def plan_of(cell: Cell) -> FitPlan:
    """The plan of a whole fit: the default one, but for what the cell says."""
    scales = "fixed" if cell.variant == "structured-fixed" else "learned"
    engine, svi = ENGINES.get(cell.variant, "structured"), SviPlan()
    if engine == "svi":
        svi = replace(svi, guide=cell.guide, loss=cell.loss, particles=cell.particles, steps=cell.steps)
    model = ModelPlan(likelihood=cell.likelihood, scales=scales)
    return FitPlan(model=model, engine=engine, svi=svi, placement=cell.placement)


def _whole_fit(cell: Cell) -> Record:
    """From panel to summaries, as an analyst waits for it: cold with compilation, then warm while time allows."""
    setting = set_up(cell)
    plan = plan_of(cell)
    fits: list[Fit] = []

    def run() -> None:
        fits.append(_usable(fit(plan, setting.panel)))
        posterior_of(fits[-1], setting.panel, setting.labels)

    fewest = 0 if cell.variant == "nuts" else 1
    times = time_calls(run, 1, cell.seconds if fewest else 0.0, fewest=fewest)
    memory = memory_of(setting, cell.n_obs)
    last = fits[-1]
    whole = [times.first - fits[0].timing.compile_seconds]
    whole += [seconds - done.timing.compile_seconds for seconds, done in zip(times.warm, fits[1:], strict=True)]
    per_step = [done.timing.run_seconds / max(done.timing.steps, 1) for done in fits]
    measures = accuracy.of_draws(draw(last, setting.panel, plan.draws), setting.elasticity)
    measures |= {"loss_at_end": float(last.losses[-1]) / cell.n_obs} if last.losses.size else {}
    best = min(whole)
    return replace(
        blank(cell),
        **time_fields(per_step, last.timing.steps, cell.n_obs)
        | {"run_seconds": best, "compile_seconds": max(times.first - best, 0.0)},
        accuracy=measures | memory | _bytes_per_device(cell.placement, setting.panel),
    )


def _usable(result: Fit) -> Fit:
    """A fit that reached its end or was stopped by the clock; one that broke on the way is no timing."""
    if not result.outcome.usable or result.outcome.ending in (Ending.FAILED, Ending.DIVERGED):
        raise RuntimeError(result.outcome.sentence)
    return result


def _bytes_per_device(placement: str, panel: Panel) -> dict[str, float]:
    """What the device that holds most of the panel holds; asked last, as it places the panel once more."""
    return {"bytes_per_device": float(max(bytes_per_device(place(panel, placement)).values()))}


METERS: Mapping[str, Callable[[Cell], Record]] = {
    "article": lambda cell: _article_fit(cell) if cell.case == "posterior" else _article(cell),
    "article-fused": _article,
    "article-extrapolated": _article_extrapolated,
    "panel": _panel,
    "structured": _whole_fit,
    "structured-fixed": _whole_fit,
    "svi": _whole_fit,
    "svi-lowrank": _whole_fit,
    "nuts": _whole_fit,
    **{cell.variant: _by_batch for cell in batch_cells(BATCH_MARKET)},
    **dict.fromkeys(RUNS, measure_live),
}
"""How each variant is measured."""
