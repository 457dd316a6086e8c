"""Turn a cell into its record, in this process: make the market untimed, run the variant, time it, judge it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from core.benchmark.cases import Cell, batch_cells, blank, not_run
from core.benchmark.measure_article import measure_article, measure_article_extrapolated, measure_article_fit
from core.benchmark.measure_live import RUNS, measure_live
from core.benchmark.records import Record
from core.benchmark.setting import Setting, memory_of, set_up, too_large
from core.benchmark.stopwatch import time_calls, time_fields
from core.environment import describe_environment
from core.errors import UserError
from core.inference.batches import count_batches
from core.inference.engines import draw, fit
from core.inference.fit import Chunk, Ending, Fit, Watcher
from core.inference.placement import bytes_per_device, place, site_of
from core.inference.plan import ARTICLE_PLAN, ARTICLE_SVI, FitPlan, SviPlan
from core.model.plan import ModelPlan
from core.panel import Panel
from core.posterior import accuracy
from core.posterior.posterior import posterior_of

FEWEST_CHUNKS = 3


def measure(cell: Cell) -> Record:
    """Measure a cell in this process. What goes wrong on the way becomes the record's error."""
    try:
        devices = site_of(cell.placement).shards
        reason = too_large(cell)
        record = not_run(cell, reason) if reason else replace(METERS[cell.variant](cell), devices=devices)
    except UserError as refusal:
        record = not_run(cell, "Not run: " + " ".join(problem.what for problem in refusal.problems) + ".")
    except Exception as failure:
        record = not_run(cell, f"{type(failure).__name__}: {failure}".split("\n")[0][:300])
    return replace(record, environment=describe_environment())


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
    rows = cell.n_obs // batches
    measures |= {"rows_per_step": rows} if batches > 1 else {}
    times = time_fields(warm, result.timing.steps, rows)
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
    "article": lambda cell: measure_article_fit(cell) if cell.case == "posterior" else measure_article(cell),
    "article-fused": measure_article,
    "article-extrapolated": measure_article_extrapolated,
    "panel": _panel,
    "structured": _whole_fit,
    "structured-fixed": _whole_fit,
    "svi": _whole_fit,
    "svi-lowrank": _whole_fit,
    "nuts": _whole_fit,
    **{cell.variant: _by_batch for cell in batch_cells(1)},
    **dict.fromkeys(RUNS, measure_live),
}
"""How each variant is measured."""
