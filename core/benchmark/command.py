"""The benchmark command: options in, progress lines and a table out, records kept; exit status 0 when it finished."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from core.benchmark.markdown import as_page, as_table
from core.benchmark.options import BenchmarkOptions
from core.benchmark.records import Report, best_earlier, compare, read_report, write_report
from core.benchmark.runner import Looker, kept_reports, run_benchmark
from core.errors import Problem, UserError
from core.settings import Settings, load_settings

__all__ = ["BenchmarkOptions", "main"]

FINISHED, CANCELLED = 0, 130


def main(
    options: BenchmarkOptions,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
    also_stop: Callable[[], bool] = lambda: False,
    out_of_time: Callable[[], str] = lambda: "",
) -> int:
    """Run the benchmark of `options`, or write the page of its saved `reports`. Ctrl-C, a termination signal,
    `also_stop` or a sentence of `out_of_time` ends a run and keeps the records."""
    if options.reports:
        _write_page([read_report(path) for path in _files(options.report_paths)], options.docs)
        return FINISHED
    settings = settings or load_settings()
    earlier = kept_reports(settings)
    signalled = _on_signals()
    looker = Looker(on_report=_progress(say), should_stop=lambda: signalled() or also_stop(), out_of_time=out_of_time)
    report = run_benchmark(options, settings, looker)
    if options.json:
        write_report(report, Path(options.json))
    if options.docs:
        _write_page([report], options.docs)
    say(as_table(report.records))
    for line in _against_earlier(report, earlier):
        say(line)
    if report.remark:
        say(report.remark)
    return FINISHED if report.state == "finished" else CANCELLED


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and of each folder its reports. Raises UserError where there are none."""
    found = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not found:
        names = ", ".join(f"'{path}'" for path in paths)
        what, remedy = f"There is no JSON file in {names}", "Name the folder that --json wrote to, or its files."
        raise UserError(Problem("benchmark-missing", what, remedy, where="--reports"))
    return found


def _write_page(reports: Sequence[Report], path: str) -> None:
    Path(path).write_text(as_page(reports), encoding="utf-8")


def _progress(say: Callable[[str], None]) -> Callable[[Report], None]:
    told: set[str] = set()

    def on_report(report: Report) -> None:
        if report.doing and report.doing not in told:
            told.add(report.doing)
            say(f"[{len(report.records)}/{report.planned}] {report.doing}")

    return on_report


def _on_signals() -> Callable[[], bool]:
    """Asks whether someone wants the run to end; remembers the signals instead of dying of them."""
    wanted: list[int] = []

    def remember(number: int, frame: object) -> None:
        wanted.append(number)

    try:
        signal.signal(signal.SIGINT, remember)
        signal.signal(signal.SIGTERM, remember)
    except ValueError:  # not the main thread: whoever runs us there must cancel in another way
        return lambda: False
    return lambda: bool(wanted)


def _against_earlier(report: Report, earlier: tuple[Report, ...]) -> list[str]:
    lines = []
    for record in report.records:
        before = best_earlier(record, earlier)
        if before is not None and record.success:
            found = compare(record, before)
            if found.verdict in ("faster", "slower"):
                lines.append(f"{record.case} {record.variant} {record.loss}: {found.sentence} than the best before")
    return lines
