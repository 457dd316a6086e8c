"""Declare what a benchmark run measures: the command line and the Timings page read their fields from here."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.declare import declarations, declared, violations
from core.errors import Problem, UserError
from core.inference.plan import PLACEMENT

CASE_HELP: dict[str, str] = {
    "step": "Cost of one SVI step, the article's layout against the panel; the structured fit in article steps.",
    "live": "The live loop against the same loop without publishing and against NumPyro's own two loops.",
    "posterior": "Time to accuracy: error and coverage against seconds, by engine, beside the article's recipe.",
    "devices": "The same fit on 1, 2, ... devices of each kind, simulated ones to show correctness, not speed; "
    "mini-batches beside all products a step.",
    "scale": "Seconds against rows, from ten thousand up to what memory allows.",
}
"""What each case measures."""

PLACES = ("json", "docs", "reports")
"""Options that say where to write and read, not what to measure: no part of a report, which others read elsewhere."""


@dataclass(frozen=True)
class BenchmarkOptions:
    """What to measure. Raises UserError naming every option that is off and what would do."""

    cases: str = declared(",".join(CASE_HELP), "Cases", f"What to time, of {', '.join(CASE_HELP)}, with commas between")
    products: int = declared(11_987, "Products", "Products of the market in step and posterior", low=20, high=2_000_000)
    periods: int = declared(157, "Periods", "Periods of that market", low=4, high=2_000)
    placements: str = declared(
        "cpu,gpu,all-gpus,cpu:2,cpu:4,cpu:8",
        "Devices",
        "Where to run: cpu, gpu, all-gpus, cpu:N, with commas between; cpu:N only in the case devices",
    )
    rounds: int = declared(3, "Rounds", "How often each cell is measured, cells taking turns", low=1, high=20)
    seconds: float = declared(
        4.0,
        "Time per cell",
        "Measuring time a cell takes in each round, compilation apart",
        unit="s",
        low=0.1,
        high=600,
    )
    limit: float = declared(
        1_800.0, "Limit per cell", "Time after which a cell is ended and recorded as failed", unit="s", low=10
    )
    json: str = declared("", "File", "Write the records to this JSON file too")
    docs: str = declared("", "Page", "Write the tables to this Markdown file too, as docs/benchmarks.md is written")
    reports: str = declared(
        "", "Reports", "Measure nothing: write the page again from these JSON files, or all in a folder, commas between"
    )

    def __post_init__(self) -> None:
        found = violations(self)
        found += [
            f"case '{case}' is not one of {', '.join(CASE_HELP)}" for case in self.case_names if case not in CASE_HELP
        ]
        found += [
            f"placement '{place}' is not one of cpu, gpu, all-gpus, cpu:N"
            for place in self.placement_names
            if not PLACEMENT.fullmatch(place)
        ]
        if not self.case_names or not self.placement_names:
            found.append("cases and placements must name at least one each")
        if self.reports and not (self.docs and self.report_paths):
            found.append("reports must name saved JSON files or their folder, and docs the page to write from them")
        if found:
            raise UserError(
                Problem("benchmark", what, "Change it and start again.", where="benchmark") for what in found
            )

    @property
    def measured(self) -> dict[str, Any]:
        """Every option that says what to measure, by name."""
        return {name: value for name, value in asdict(self).items() if name not in PLACES}

    @property
    def report_paths(self) -> tuple[Path, ...]:
        """Saved reports, or folders of them, to write the page from, where nothing is to be measured."""
        return tuple(Path(name) for name in names_in(self.reports))

    @property
    def case_names(self) -> tuple[str, ...]:
        return names_in(self.cases)

    @property
    def placement_names(self) -> tuple[str, ...]:
        return names_in(self.placements)

    @property
    def real_placements(self) -> tuple[str, ...]:
        """Placements that can be fast: all but simulated devices."""
        return tuple(place for place in self.placement_names if not place.startswith("cpu:"))


def names_in(text: str) -> tuple[str, ...]:
    """Names with commas between, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def options_typed(plan: Any, leave_out: Collection[str] = ()) -> str:
    """What to type for `plan`, a dataclass of declared fields: every option that is not at its default."""
    given = [(f.name, getattr(plan, f.name)) for f, _ in declarations(plan) if f.name not in leave_out]
    plain = {f.name: f.default for f, _ in declarations(plan)}
    words = (f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in given if value != plain[name])
    return " ".join(words)
