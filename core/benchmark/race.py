"""Run the article's recipe and ours side by side for half a minute, each writing how wrong it still is, line by line.

Each lane is a process (`python -m core.benchmark.race OPTIONS FOLDER LANE`) on its own share of the cores. A line is
one JSON object: seconds since the lane had compiled, steps done, error of ten watched products and, where it is
known, of all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from core.benchmark.cases import Cell
from core.benchmark.measure import panel_plan, plan_of
from core.benchmark.measure_article import article_call
from core.benchmark.runner import ROOT, environment_of
from core.benchmark.setting import set_up
from core.declare import declared, violations
from core.errors import Problem, UserError
from core.inference.engines import draw, fit
from core.inference.fit import Chunk, Watcher
from core.inference.plan import ARTICLE_SVI, FitPlan
from core.panel import Panel
from core.posterior.accuracy import of_draws, of_normals, rms

OURS = {
    "structured": "The structured engine: the default of every fit.",
    "panel": "The article's own model and recipe, on the panel in our live loop.",
}
LANES = ("article", "ours")
WATCHED = 10
GRACE_SECONDS = 240.0
"""Longest time a lane may take to make its market and compile, and to conclude."""
LINE_SECONDS = 0.25
CORES = "ISOELASTIC_RACE_CORES"
"""Environment variable that names a lane's cores."""


@dataclass(frozen=True)
class RaceOptions:
    """Who races on which market, for how long. Raises UserError naming every option that is off."""

    ours: str = declared("structured", "Ours", "What runs beside the article's recipe", choices=OURS)
    products: int = declared(11_987, "Products", "Products of the market", low=20, high=100_000)
    periods: int = declared(157, "Periods", "Periods of the market", low=4, high=500)
    seconds: float = declared(
        30.0, "Time", "How long both run, each from when it has compiled", unit="s", low=1, high=600
    )

    def __post_init__(self) -> None:
        if found := violations(self):
            raise UserError(Problem("race", what, "Change it and start again.", where="race") for what in found)


@dataclass(frozen=True)
class Line:
    """Where a lane stands. Errors are root mean squares against the known product elasticities."""

    seconds: float
    steps: int
    watched_error: float | None = None
    """Over ten products that both lanes watch."""
    error: float | None = None
    """Over all products."""
    coverage90: float | None = None
    done: bool = False
    """Nothing more will come: converged, or the time was up."""


def lines_of(folder: Path, lane: str) -> tuple[Line, ...]:
    """What a lane has written so far; a line half written is left for the next look."""
    path = folder / f"{lane}.jsonl"
    if not path.exists():
        return ()
    text = path.read_text(encoding="utf-8")
    return tuple(Line(**json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines())


# The process that holds the device


def run_race(options: RaceOptions, folder: Path, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Run both lanes at once until both are done, time is up or someone asks to stop."""
    folder.mkdir(parents=True, exist_ok=True)
    for lane in LANES:
        (folder / f"{lane}.jsonl").unlink(missing_ok=True)
    started = [_start(options, folder, lane, cores) for lane, cores in zip(LANES, _shares(), strict=True)]
    until = time.monotonic() + options.seconds + GRACE_SECONDS
    try:
        while any(process.poll() is None for process in started) and time.monotonic() < until and not should_stop():
            time.sleep(0.1)
    finally:
        for process in started:
            process.kill()
            process.wait()


def _start(options: RaceOptions, folder: Path, lane: str, cores: tuple[int, ...]) -> subprocess.Popen[bytes]:
    command = (sys.executable, "-m", "core.benchmark.race", json.dumps(asdict(options)), str(folder), lane)
    environment = environment_of(Cell("race", lane)) | {CORES: ",".join(map(str, cores))}
    with (folder / f"{lane}.txt").open("wb") as said:
        return subprocess.Popen(
            command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )


def _shares() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cores this process may use, in two equal halves; both lanes on all of them where there is only one."""
    if not hasattr(os, "sched_getaffinity"):
        return (), ()
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    return (tuple(cores[:half]), tuple(cores[half : 2 * half])) if half else (tuple(cores), tuple(cores))


# A lane


def run_lane(options: RaceOptions, folder: Path, lane: str) -> None:
    """Run one lane in this process and write its lines."""
    if (text := os.environ.get(CORES)) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in text.split(",")})
    cell = Cell(
        "race", "article" if lane == "article" else options.ours, "cpu", ARTICLE_SVI.loss, ARTICLE_SVI.particles,
        ARTICLE_SVI.guide, options.products, options.periods, seconds=options.seconds,
    )  # fmt: skip
    with (folder / f"{lane}.jsonl").open("w", encoding="utf-8") as file:

        def write(line: Line) -> None:
            file.write(json.dumps(asdict(line)) + "\n")
            file.flush()

        (_run_article if lane == "article" else _run_ours)(cell, write)


def watched_products(n_products: int) -> tuple[int, ...]:
    """The products that both lanes watch, spread evenly over the market."""
    return tuple(np.unique(np.linspace(0, n_products - 1, WATCHED).astype(int)).tolist())


def _run_article(cell: Cell, write: Callable[[Line], None]) -> None:
    setting = set_up(cell)
    watched = list(watched_products(cell.products))
    write(Line(0.0, 0))
    run, estimates = article_call(cell, setting)
    run(1)
    estimates()
    line, steps, began = Line(0.0, 1), 1, time.perf_counter()
    while line.seconds < cell.seconds:
        until = time.perf_counter() + LINE_SECONDS
        while time.perf_counter() < until:
            run(1)
            steps += 1
        found = estimates()
        every = of_normals(found["mean"], found["sd"], setting.elasticity)
        near = rms(found["mean"][watched] - setting.elasticity[watched])
        line = Line(time.perf_counter() - began, steps, near, every["rmse_to_truth"], every["coverage90"])
        write(line)
    write(replace(line, done=True))


def _run_ours(cell: Cell, write: Callable[[Line], None]) -> None:
    setting = set_up(cell)
    watched = watched_products(cell.products)
    write(Line(0.0, 0))
    plan = panel_plan(cell) if cell.variant == "panel" else plan_of(cell)
    # SVI compiles before it runs; the structured engine does in its first iteration, so a fit before the race has it.
    starts = "running" if plan.engine == "svi" else "compiling"
    if plan.engine != "svi":
        _warm_up(plan, setting.panel)
    began: list[float] = []
    steps = [0]

    def on_phase(phase: str) -> None:
        if phase == starts:
            began.append(time.perf_counter())

    def passed() -> float:
        return time.perf_counter() - began[0] if began else 0.0

    def on_chunk(chunk: Chunk) -> None:
        steps[0] = chunk.first_step + chunk.losses.size
        if chunk.estimates is not None:
            near = rms(np.asarray(chunk.estimates.pinned_mean) - setting.elasticity[list(watched)])
            write(Line(passed(), steps[0], near))

    watcher = Watcher(on_phase=on_phase, on_chunk=on_chunk, should_stop=lambda: passed() > cell.seconds, pinned=watched)
    draws = draw(fit(plan, setting.panel, watcher), setting.panel, plan.draws)
    every = of_draws(draws, setting.elasticity)
    near = rms(draws.elasticity_product[:, list(watched)].mean(axis=0) - setting.elasticity[list(watched)])
    write(Line(passed(), steps[0], near, every["rmse_to_truth"], every["coverage90"], done=True))


def _warm_up(plan: FitPlan, panel: Panel) -> None:
    """One iteration, for its compilation alone."""
    seen: list[Chunk] = []
    fit(plan, panel, Watcher(on_chunk=seen.append, should_stop=lambda: bool(seen)))


if __name__ == "__main__":
    run_lane(RaceOptions(**json.loads(sys.argv[1])), Path(sys.argv[2]), sys.argv[3])
