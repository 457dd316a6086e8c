"""Turn what a cell measured into one record, records into JSON and back, and two sets of them into comparisons.

A difference is called neutral when it is below 5 % of the smaller, or below what the clock resolves in the number of
steps timed. A cell that failed or could not run is a record too, with its reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from core.benchmark.options import CASE_HELP
from core.environment import Environment
from core.errors import Problem, UserError

NEUTRAL_SHARE = 0.05
"""Relative difference of two run times below which neither is called faster."""
CLOCK_SECONDS = 1e-3
"""Difference of two run times that the clock and the scheduler leave in doubt, in seconds."""


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of one step over all rounds: the best, the middle and the worst observation."""

    min: float
    median: float
    max: float


@dataclass(frozen=True)
class Record:
    """One cell: what ran, where, how long, how well. Times are None where `success` is False."""

    case: str
    variant: str
    """Who ran: article, panel, structured, numpyro-progress-bar, numpyro-scan, live, fused, nuts, ..."""
    placement: str
    devices: int
    loss: str
    particles: int
    guide: str
    n_products: int
    n_obs: int
    compile_seconds: float | None = None
    """First call less the best warm one."""
    run_seconds: float | None = None
    """Best run of `steps` steps, compilation apart."""
    step_seconds: StepSeconds | None = None
    ns_per_obs_step: float | None = None
    """Best step, per observation that it reads, in nanoseconds."""
    steps: int = 0
    accuracy: Mapping[str, float] = field(default_factory=dict)
    """What the timing bought, by name; see `MEASURES`."""
    success: bool = True
    error: str = ""
    """Why it failed or was not run, in a sentence."""
    environment: Environment | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What two records must share to time the same thing."""
        return (
            self.case, self.variant, self.placement, self.loss, self.particles, self.guide, self.n_products, self.n_obs,
            self.steps if self.case == "posterior" and self.variant in ("svi", "svi-lowrank") else 0,
        )  # fmt: skip

    @property
    def total_seconds(self) -> float | None:
        """From data in memory to a result, compilation included."""
        if self.run_seconds is None:
            return None
        return self.run_seconds + (self.compile_seconds or 0.0)

    @property
    def extrapolated(self) -> bool:
        """True where the time stands for steps that were not run."""
        return "extrapolated_from_steps" in self.accuracy


MEASURES: dict[str, str] = {
    "rmse_to_truth": "Root mean square distance of product elasticities from the simulated truth",
    "coverage90": "Share of true product elasticities inside their 90 % intervals",
    "coverage50": "Share of true product elasticities inside their 50 % intervals",
    "extrapolated_from_steps": "Steps that were run; the time is their rate times the steps stated",
    "publications_per_second": "Live updates published per second of running",
    "loss_at_end": "Loss per observation at the last step, in nats",
    "loss_relative_difference": "Largest relative distance of the losses from those on one device",
    "rows_per_step": "Rows that a step reads, where it does not read all",
    "bytes_per_device": "Most bytes of the panel that one device holds",
    "peak_bytes": "Most host memory the process held, in bytes",
    "bytes_per_row": "Most host memory the process held, less what it held without data, per observation, in bytes",
    "iterations": "Iterations of the structured engine until it converged",
    "prepare_seconds": "Seconds from arrays to the layout the engine reads",
    "summary_seconds": "Seconds from the fit to draws and summaries",
}


def merge_rounds(rounds: Sequence[Record]) -> Record:
    """One record from the same cell's rounds: best times, the whole range of steps. Fails if no round succeeded."""
    good = [record for record in rounds if record.success]
    if not good:
        return rounds[-1]
    best = min(good, key=lambda record: record.run_seconds or math.inf)
    steps = [record.step_seconds for record in good if record.step_seconds]
    compiles = [record.compile_seconds for record in good if record.compile_seconds is not None]
    return replace(
        best,
        compile_seconds=min(compiles, default=None),
        step_seconds=_range_of(steps),
        ns_per_obs_step=min((r.ns_per_obs_step for r in good if r.ns_per_obs_step is not None), default=None),
    )


def _range_of(steps: Sequence[StepSeconds]) -> StepSeconds | None:
    if not steps:
        return None
    medians = sorted(s.median for s in steps)
    return StepSeconds(min=min(s.min for s in steps), median=medians[len(medians) // 2], max=max(s.max for s in steps))


Verdict = Literal["faster", "slower", "neutral", "not comparable"]


@dataclass(frozen=True)
class Comparison:
    """How a record stands to another of the same key. `ratio` is other's time over this one's: above 1 is faster."""

    verdict: Verdict
    ratio: float | None
    sentence: str


def compare(now: Record, other: Record) -> Comparison:
    """Compare run times, best against best, each scaled to the other's number of steps."""
    if now.run_seconds is None or other.run_seconds is None or not now.steps or not other.steps:
        return Comparison("not comparable", None, f"not comparable: {now.error or other.error or 'no time measured'}")
    seconds, others = now.run_seconds, other.run_seconds / other.steps * now.steps
    ratio = others / seconds if seconds > 0 else math.inf
    difference = abs(seconds - others)
    if difference < CLOCK_SECONDS:
        return Comparison("neutral", ratio, f"neutral: they differ by less than {CLOCK_SECONDS * 1e3:g} ms")
    if difference < NEUTRAL_SHARE * min(seconds, others):
        return Comparison("neutral", ratio, f"neutral: they differ by less than {NEUTRAL_SHARE:.0%}")
    if ratio > 1:
        return Comparison("faster", ratio, f"{ratio:.3g} times faster")
    return Comparison("slower", ratio, f"{1 / ratio:.3g} times slower")


@dataclass(frozen=True)
class Report:
    """All records of one benchmark run, with when and how it was made."""

    started: str
    """UTC, ISO 8601, to the second: also its name."""
    command: str
    options: Mapping[str, Any]
    records: tuple[Record, ...]
    planned: int
    """Cells that the run set out to measure; more than `records` while it runs or where it ended early."""
    state: Literal["running", "finished", "cancelled", "out of time"] = "finished"
    doing: str = ""
    """The cell and round in progress, in words."""
    remark: str = ""
    """What a reader must know of the run: of one that was out of time, how much it had, and how to allow more."""

    def records_of(self, case: str) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.case == case)


def newest_of_each_case(reports: Iterable[Report]) -> Report | None:
    """One report of the newest run that finished of each case, in the order of `CASE_HELP`; None for fewer than two
    runs. Both sides of every ratio are of one case, and so of one run still."""
    newest: dict[str, Report] = {}
    for report in sorted((one for one in reports if one.state == "finished"), key=lambda one: one.started):
        newest |= {record.case: report for record in report.records}
    runs = sorted({report.started: report for report in newest.values()}.values(), key=lambda one: one.started)
    if len(runs) < 2:
        return None
    records = tuple(record for case in CASE_HELP if case in newest for record in newest[case].records_of(case))
    commands = "; ".join(report.command for report in runs)
    return Report(runs[-1].started, commands, {}, records, len(records))


def record_from_dict(values: Mapping[str, Any]) -> Record:
    """The record that `asdict` wrote. Raises TypeError for unknown fields."""
    steps, environment = values.get("step_seconds"), values.get("environment")
    if environment is not None:
        environment = Environment(**{**environment, "devices": tuple(environment["devices"])})
    step_seconds = StepSeconds(**steps) if steps else None
    return Record(**{**values, "step_seconds": step_seconds, "environment": environment})


def report_from_dict(values: Mapping[str, Any]) -> Report:
    """The report that `asdict` wrote."""
    return Report(**{**values, "records": tuple(record_from_dict(record) for record in values["records"])})


def write_report(report: Report, path: Path) -> None:
    """Write a report as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(asdict(report), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    unfinished.replace(path)


def read_report(path: Path) -> Report:
    """Read a report. Raises UserError where the file is none."""
    try:
        return report_from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as reason:
        raise UserError(
            Problem(
                "benchmark-unreadable",
                f"'{path.name}' is not a benchmark report ({reason.__class__.__name__})",
                "Run `python -m core benchmark` again, or remove the file.",
            )
        ) from reason


def best_earlier(record: Record, reports: Iterable[Report]) -> Record | None:
    """The fastest earlier record of the same key on the same kind of machine, or None."""
    machine = _machine(record)
    matches = [
        earlier
        for report in reports
        for earlier in report.records
        if earlier.success and earlier.run_seconds and earlier.key == record.key and _machine(earlier) == machine
    ]
    return min(matches, key=lambda earlier: (earlier.run_seconds or 0.0) / max(earlier.steps, 1), default=None)


def _machine(record: Record) -> tuple[Any, ...] | None:
    at = record.environment
    return None if at is None else (at.processor, at.cores, at.devices)
