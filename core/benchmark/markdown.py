"""Turn a report into Markdown: docs/benchmarks.md, and the table that the command prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.benchmark.cases import VARIANTS
from core.benchmark.options import CASE_HELP
from core.benchmark.published import NOTE, PUBLISHED, PUBLISHED_NUTS
from core.benchmark.ratios import check_targets, speedups
from core.benchmark.records import MEASURES, Record, Report

NOTHING = "-"


def as_page(report: Report) -> str:
    """docs/benchmarks.md: environment, command and date, what must hold, one table a case, the published figures."""
    parts = [
        "# Benchmarks",
        "Written by the command below; do not edit. Every cell ran in a process of its own, one at a time, rounds "
        "interleaved; run times are the best observation, compilation apart; the range is that of all observations.",
        _provenance(report),
        "## What must hold\n\n" + _targets(report.records),
    ]
    for case, sentence in CASE_HELP.items():
        ours = [record for record in report.records if record.case == case]
        if ours:
            parts.append(f"## {case}\n\n{sentence}\n\n{as_table(ours)}\n\n{_variants(ours)}")
    parts.append(f"## Published by the article\n\n{NOTE}\n\n{_published()}")
    return "\n\n".join(parts) + "\n"


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


def _targets(records: Sequence[Record]) -> str:
    verdict = {True: "yes", False: "**no**", None: "not measured"}
    rows = [
        (
            finding.target.name,
            f"{'at least' if finding.target.at_least else 'at most'} {finding.target.bound:g}",
            NOTHING if finding.value is None else f"{finding.value:.3g}",
            verdict[finding.holds],
        )
        for finding in check_targets(records)
    ]
    return table(("Ratio, both sides in this run", "Wanted", "Measured", "Holds"), rows)


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
