"""Turn reports into Markdown: docs/benchmarks.md, and the table that the command prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.benchmark.cases import VARIANTS
from core.benchmark.options import CASE_HELP
from core.benchmark.published import NOTE, PUBLISHED, PUBLISHED_NUTS
from core.benchmark.quoting import in_short
from core.benchmark.ratios import TARGETS, Finding, check_targets, speedups
from core.benchmark.records import MEASURES, Record, Report

NOTHING = "-"


INTRODUCTION = (
    "Written by `python -m core benchmark --reports docs/benchmarks --docs docs/benchmarks.md` from the records in "
    "that folder; do not edit. Every cell ran in a process of its own, one at a time, rounds interleaved; run times "
    "are the best observation, compilation apart; the range is that of all observations. Ratios depend on the machine: "
    "each run's are stated apart."
)


def as_page(reports: Iterable[Report]) -> str:
    """docs/benchmarks.md: environment, command and date of each run, what must hold, tables by case, published figures.

    Runs are numbered from the newest, whatever the order they are given in.
    """
    runs = sorted(reports, key=lambda report: report.started, reverse=True)
    parts = ["# Benchmarks", INTRODUCTION]
    if quoted := in_short(runs):
        parts.append("## In short\n\n" + "\n".join(f"- {sentence}" for sentence in quoted))
    parts += [f"## Run {number}\n\n{_provenance(run)}" for number, run in enumerate(runs, 1)]
    parts.append(f"## What must hold\n\n{_targets(runs)}")
    parts += [_case(case, sentence, runs) for case, sentence in CASE_HELP.items()]
    parts.append(f"## Published by the article\n\n{NOTE}\n\n{_published()}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _case(case: str, sentence: str, runs: Sequence[Report]) -> str:
    """A case's tables, one a run; '' where no run measured it."""
    found = {f"### Run {n}: {case}": [r for r in run.records if r.case == case] for n, run in enumerate(runs, 1)}
    tables = [f"{title}\n\n{as_table(records)}" for title, records in found.items() if records]
    if not tables:
        return ""
    return "\n\n".join([f"## {case}", sentence, *tables, _variants([r for ours in found.values() for r in ours])])


def _provenance(report: Report) -> str:
    environment = next((r.environment for r in report.records if r.environment is not None), None)
    lines = [("Measured", report.started), ("Command", f"`{report.command}`"), ("State", report.state)]
    if report.remark:
        lines.append(("Remark", report.remark))
    if environment is not None:
        packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
        lines += [
            ("Machine", f"{environment.processor}, {environment.cores} cores, {environment.memory_gb:g} GiB"),
            ("System", f"{environment.system}, Python {environment.python}"),
            ("Packages", packages),
        ]
    return "\n".join(f"- {name}: {value}" for name, value in lines)


def _targets(runs: Sequence[Report]) -> str:
    """Every target a row, every run that measured any of them a column; both sides of a ratio are of one run."""
    found = {f"Run {number}": check_targets(run.records) for number, run in enumerate(runs, 1)}
    shown = {name: run for name, run in found.items() if any(finding.value is not None for finding in run)}
    rows = [
        (target.name, f"{'at least' if target.at_least else 'at most'} {target.bound:g}", *map(_verdict, findings))
        for target, *findings in zip(TARGETS, *shown.values(), strict=True)
    ]
    return table(("Ratio, both sides in one run", "Wanted", *shown), rows)


def _verdict(finding: Finding) -> str:
    if finding.value is None:
        return "not measured"
    return f"{finding.value:.3g}" if finding.holds else f"**{finding.value:.3g}, missed**"


COLUMNS = (
    "Variant", "Where", "Loss", "Products", "Rows", "Compile s", "Run s", "Steps", "Step ms: best", "median", "worst",
    "ns per row and step", "Times faster", "Error", "90 % cover", "Also",
)  # fmt: skip
SHOWN_APART = ("rmse_to_truth", "coverage90")


def as_table(records: Sequence[Record]) -> str:
    """One row a record; what did not run says why."""
    times = {id(found.record): found.times for found in speedups(records)}
    return table(COLUMNS, [_row(record, times.get(id(record))) for record in records])


def _row(record: Record, times: float | None) -> tuple[str, ...]:
    loss = f"{record.loss} x {record.particles}" if record.particles > 1 else record.loss
    who = (
        record.variant,
        record.placement,
        loss or NOTHING,
        f"{record.n_products:,}" if record.n_products else NOTHING,
        f"{record.n_obs:,}",
    )
    if not record.success:
        return (*who, *([NOTHING] * 10), record.error)
    step = record.step_seconds
    steps = (step.min, step.median, step.max) if step else (None, None, None)
    run = f"{record.run_seconds:,.4g}" if record.run_seconds is not None else NOTHING
    return (
        *who,
        _number(record.compile_seconds),
        f"{run} (extrapolated)" if record.extrapolated else run,
        f"{record.steps:,}",
        *(_number(seconds and seconds * 1e3) for seconds in steps),
        _number(record.ns_per_obs_step),
        _number(times),
        *(_number(record.accuracy.get(name)) for name in SHOWN_APART),
        "; ".join(f"{name} {value:.6g}" for name, value in record.accuracy.items() if name not in SHOWN_APART),
    )


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}" if abs(value) < 1_000 else f"{value:,.0f}"


def _variants(records: Sequence[Record]) -> str:
    names = dict.fromkeys(record.variant for record in records)
    measures = dict.fromkeys(name for record in records for name in record.accuracy)
    lines = [f"- {name}: {VARIANTS[name]}." for name in names]
    return "\n".join(lines + [f"- {name}: {MEASURES[name]}." for name in measures])


def _published() -> str:
    rows = [
        (p.recipe, p.devices, f"{p.n_products:,}", f"{p.n_obs:,}", f"{p.hours:,.3g}", f"{p.ns_per_obs_step:.3g}")
        for p in (*PUBLISHED, PUBLISHED_NUTS)
    ]
    return table(("Recipe", "Devices", "Products", "Rows", "Hours, published", "ns per row and step"), rows)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are text without line breaks, bars escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
