"""Say in two sentences what a reader asks first: what other pages quote, word for word, of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.benchmark.ratios import check_targets
from core.benchmark.records import Record, Report

QUOTED_RATIOS = ("Step, ELBO", "Step, Rényi x 4", "Fit, scales learned")
"""Short names of the targets that the first sentence needs, all from one run."""


def in_short(reports: Iterable[Report]) -> tuple[str, ...]:
    """Both sentences, each from the newest report that has all it needs; without those that no report has."""
    newest = sorted(reports, key=lambda report: report.started, reverse=True)
    found = (next(filter(None, map(sentence, newest)), "") for sentence in (steps_in_short, scale_in_short))
    return tuple(filter(None, found))


def steps_in_short(report: Report) -> str:
    """The SVI step and the whole structured fit against the recipe's step; '' where one was not measured on the CPU."""
    ratios = {finding.target.short: finding.value for finding in check_targets(report.records)}
    elbo, renyi, fit = (ratios[name] for name in QUOTED_RATIOS)
    whole = _structured(report, "step")
    if elbo is None or renyi is None or fit is None or not whole:
        return ""
    inside = f"{whole[0].accuracy['coverage90']:.1%}".replace("%", " %")
    return (
        f"On {_cores(whole[0])} and {_rows(whole[0])} (run of {report.started[:10]}) one SVI step is {elbo:.3g} times "
        f"(ELBO) and {renyi:.3g} times (Rényi bound, 4 particles) faster than by the published recipe; the whole "
        f"structured fit, compilation and summaries included, takes as long as {fit:.3g} of the recipe's steps, of "
        f"which it asks for a million, and {inside} of its 90 % intervals hold the truth."
    )


def scale_in_short(report: Report) -> str:
    """The structured fits of most rows and of most products; '' where none was measured on the CPU."""
    fits = _structured(report, "scale")
    if not fits:
        return ""
    most_rows = max(fits, key=lambda record: record.n_obs)
    most_products = max(fits, key=lambda record: (record.n_products, record.n_obs))
    told = dict.fromkeys(map(_fit_in_words, (most_rows, most_products)))
    return (
        f"On {_cores(most_rows)} (run of {report.started[:10]}) a structured fit, from panel to summaries and "
        f"compilation included, took {', and '.join(told)}."
    )


def _fit_in_words(record: Record) -> str:
    memory = record.accuracy.get("peak_bytes")
    peak = f"; {memory / 1e9:.3g} GB at the peak of the process" if memory else ""
    return f"{record.total_seconds:.3g} s for {_rows(record)} ({record.n_products:,} products{peak})"


def _structured(report: Report, case: str) -> Sequence[Record]:
    """Whole structured fits on the CPU, scales learned, with all that is quoted of them."""
    return [
        record
        for record in report.records
        if (record.case, record.variant, record.placement) == (case, "structured", "cpu")
        and record.run_seconds is not None and record.compile_seconds is not None and "coverage90" in record.accuracy
    ]  # fmt: skip


def _cores(record: Record) -> str:
    return f"{record.environment.cores} cores" if record.environment else "an unnamed machine"


def _rows(record: Record) -> str:
    return f"{record.n_obs / 1e6:.3g} million rows"
