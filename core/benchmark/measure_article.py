"""Measure the article's recipe on its own layout: steps, a fit for as long as it is given, a million extrapolated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core.benchmark.cases import Cell, blank
from core.benchmark.records import Record
from core.benchmark.setting import Setting, memory_of, set_up
from core.benchmark.stopwatch import time_calls
from core.inference.placement import site_of
from core.inference.plan import ARTICLE_SVI
from core.posterior import accuracy


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


def measure_article(cell: Cell) -> Record:
    """Seconds per step of the article's recipe, and the loss per row that the last step saw."""
    setting = set_up(cell)
    run, _ = article_call(cell, setting)
    losses: list[float] = []
    steps = cell.steps or _steps_per_call(cell.n_obs)
    times = time_calls(lambda: losses.append(run(steps)), steps, cell.seconds)
    measures = {"loss_at_end": losses[-1] / cell.n_obs, **memory_of(setting, cell.n_obs)}
    return replace(blank(cell), **times.fields(cell.n_obs), accuracy=measures)


FIT_PATIENCE = 8
"""Times `Cell.seconds` that the article's recipe is given to reach what accuracy it can."""


def measure_article_fit(cell: Cell) -> Record:
    """The article's recipe for a while: what it has reached, and in how many seconds, nothing extrapolated."""
    setting = set_up(cell)
    run, estimates = article_call(cell, setting)
    steps = _steps_per_call(cell.n_obs)
    times = time_calls(lambda: run(steps), steps, FIT_PATIENCE * cell.seconds)
    found, best = estimates(), min(times.warm)
    ran = {"run_seconds": sum(times.warm) + best, "steps": (len(times.warm) + 1) * steps}
    measures = accuracy.of_normals(found["mean"], found["sd"], setting.elasticity)
    return replace(blank(cell), **times.fields(cell.n_obs) | ran, accuracy=measures)


def measure_article_extrapolated(cell: Cell) -> Record:
    """Seconds of the steps that the article asks for, at the rate of those that ran. No accuracy: nobody ran them."""
    setting = set_up(cell)
    run, _ = article_call(cell, setting)
    steps, asked = _steps_per_call(cell.n_obs), ARTICLE_SVI.steps
    times = time_calls(lambda: run(steps), steps, cell.seconds)
    million = {"run_seconds": min(times.warm) / steps * asked, "steps": asked}
    ran = float((len(times.warm) + 1) * steps)
    return replace(blank(cell), **times.fields(cell.n_obs) | million, accuracy={"extrapolated_from_steps": ran})
