"""Measure what checkpoints cost a run: `python -m core.benchmark.checkpoint_study` fits one market with and without.

The run goes the whole way of a stored one: kept data set, worker, checkpoints every 30 seconds, event log. Cost is the
time that the fit waited for them, the one at its end apart: that one is written without any cadence too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.data.choices import Choices
from core.data.guessing import guess_roles
from core.data.markets import market_source
from core.data.source import Source
from core.inference.plan import FitPlan, plan_with
from core.runs.checkpoints import Checkpoints
from core.runs.desk import run_folder
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.settings import Settings
from core.simulation import MarketPlan, simulate

NEVER = 1e9


@dataclass(frozen=True)
class Row:
    """One run. `running` is its time from the first step to the last, checkpoints included, in seconds."""

    gap: float
    steps: int
    running: float
    costs: tuple[float, ...]
    """Seconds of each checkpoint on the way."""
    last: float
    """Seconds of the one at the end."""
    size: int
    """Bytes of the last one."""

    @property
    def share(self) -> float:
        return sum(self.costs) / self.running


def measure(source: Source, plan: FitPlan, gap: float) -> Row:
    """Fit `source` as a stored run with a checkpoint every `gap` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), checkpoint_seconds=gap)
        with closing(RunManager(settings)) as manager:
            dataset = manager.datasets.add(source)
            run_id = manager.submit(RunRequest(dataset, guess_roles(source), Choices(), plan))
            ended = manager.wait(run_id)
            if not ended.usable:
                raise RuntimeError(ended.outcome)
            kept, _ = Checkpoints(run_folder(settings, run_id) / "checkpoints", plan, dataset).latest()
            assert kept is not None
            *costs, last = costs_in(manager.log.tail(10_000))
            size = max((run_folder(settings, run_id) / "checkpoints").glob("*.npz")).stat().st_size
    return Row(gap, ended.steps_done, kept.manifest.run_seconds, tuple(costs), last, size)


def costs_in(lines: list[str]) -> list[float]:
    """Seconds of every checkpoint that the event log tells of."""
    return [float(line.rpartition("seconds=")[2]) for line in lines if " event=checkpoint " in line]


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| checkpoints | steps | first step to last, s | on the way | median s | share of the time | MB each |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        asked = "at the end only" if row.gap == NEVER else f"every {row.gap:g} s"
        each = f"{statistics.median(row.costs or (row.last,)):.3f}"
        lines.append(
            f"| {asked} | {row.steps:,} | {row.running:.1f} | {len(row.costs)} | {each} | {row.share:.2%} "
            f"| {row.size / 1e6:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the study and print its table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=11_987)
    options.add_argument("--periods", type=int, default=157)
    options.add_argument("--steps", type=int, default=4_000)
    options.add_argument("--gaps", type=float, nargs="+", default=[30.0, NEVER], metavar="SECONDS")
    given = options.parse_args()
    market = simulate(MarketPlan(products=given.products, periods=given.periods))
    source = market_source(market, "Simulated")
    del market
    plan = plan_with(FitPlan(), engine="svi", steps=given.steps)
    print(table([measure(source, plan, gap) for gap in given.gaps]))


if __name__ == "__main__":
    main()
