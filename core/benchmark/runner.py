"""Turn cells into a report: each in a process of its own, one at a time, rounds interleaved, the best and range kept.

A process of its own has its own device count and compiles from nothing; the device's lock keeps fits of the dashboard
and the command line away while a cell is timed. The report is written after every cell, so that a page can follow it
and a run that dies keeps what it has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from core.benchmark.cases import Cell, cells_of, not_run
from core.benchmark.options import PLACES, BenchmarkOptions, options_typed
from core.benchmark.records import Record, Report, merge_rounds, read_report, record_from_dict, write_report
from core.errors import UserError
from core.inference.plan import FitPlan
from core.runs.locks import device_lock
from core.runs.queue import lane_of
from core.settings import Settings

POLL_SECONDS = 0.05
LOCK_WAIT_SECONDS = 3_600.0
"""Longest wait for a fit that holds the device."""
ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "docs" / "benchmarks"
NO_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "false", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


@dataclass(frozen=True)
class Looker:
    """Who looks on: `on_report` after every cell and when one starts; the others are asked twenty times a second."""

    on_report: Callable[[Report], None] = lambda report: None
    should_stop: Callable[[], bool] = lambda: False
    out_of_time: Callable[[], str] = lambda: ""
    """Once the time of the whole run is up, a sentence that says so and how to allow more; '' until then."""


class Cancelled(Exception):
    """The run was asked to stop."""


class OutOfTime(Exception):
    """The time of the whole run is up; the message says how to allow more."""


def folder_of(settings: Settings) -> Path:
    """Where reports are kept, one JSON file each."""
    return settings.data_dir / "benchmarks"


def kept_reports(settings: Settings) -> tuple[Report, ...]:
    """Every report kept, newest first; files that cannot be read are passed over."""
    return _reports_in(folder_of(settings))


def shipped_reports() -> tuple[Report, ...]:
    """The reports that come with the project, newest first: what docs/benchmarks.md was written from."""
    return _reports_in(SHIPPED)


def _reports_in(folder: Path) -> tuple[Report, ...]:
    reports = []
    for path in sorted(folder.glob("*.json")):
        try:
            reports.append(read_report(path))
        except UserError:
            continue
    return tuple(sorted(reports, key=lambda report: report.started, reverse=True))


def run_benchmark(
    options: BenchmarkOptions,
    settings: Settings,
    looker: Looker | None = None,
    measure_cell: Callable[[Cell, Settings, float, Looker], Record] | None = None,
) -> Report:
    """Measure every cell of `options` and keep the report. A cell that fails is a record; only a bug raises.

    `measure_cell(cell, settings, limit, looker)` stands in for a process in tests.
    """
    looker = looker or Looker()
    cells = cells_of(options)
    report = _empty_report(options, len(cells))
    path = folder_of(settings) / f"{report.started.replace(':', '')}.json"

    def publish(new: Report) -> Report:
        write_report(new, path)
        looker.on_report(new)
        return new

    rounds: dict[Cell, list[Record]] = {}
    try:
        for number in range(options.rounds):
            for cell in cells:
                if any(not record.success for record in rounds.get(cell, [])) or _once(cell, number):
                    continue
                report = publish(replace(report, doing=f"{cell.title} (round {number + 1} of {options.rounds})"))
                done = (measure_cell or measure_in_process)(cell, settings, options.limit, looker)
                rounds.setdefault(cell, []).append(done)
                report = publish(replace(report, records=tuple(merge_rounds(rounds[c]) for c in cells if c in rounds)))
    except Cancelled:
        return publish(replace(report, state="cancelled", doing=""))
    except OutOfTime as ended:
        return publish(replace(report, state="out of time", doing="", remark=str(ended)))
    return publish(replace(report, state="finished", doing=""))


def _empty_report(options: BenchmarkOptions, planned: int) -> Report:
    return Report(
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command_of(options),
        options=options.measured,
        records=(),
        planned=planned,
        state="running",
    )


def _once(cell: Cell, number: int) -> bool:
    """Whole fits with their own cold and warm calls need no second round where rounds would take hours."""
    return number > 0 and cell.variant == "nuts"


def command_of(options: BenchmarkOptions) -> str:
    """The command line that measures the same again."""
    return f"python -m core benchmark {options_typed(options, PLACES)}".rstrip()


def measure_in_process(cell: Cell, settings: Settings, limit: float, looker: Looker) -> Record:
    """Measure a cell in a fresh process under the device's lock. Raises Cancelled when asked to stop, or OutOfTime."""
    lock = device_lock(settings.data_dir / "locks", lane_of(FitPlan(placement=cell.placement)))
    until = time.monotonic() + LOCK_WAIT_SECONDS
    while not lock.acquire():
        _pause(looker)
        if time.monotonic() > until:
            return not_run(cell, "Not run: another fit held the device for an hour.")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _spawn(cell, Path(folder), limit, looker)
    finally:
        lock.release()


def environment_of(cell: Cell, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of the cell's process: its device count, no compilation cache, CPU alone where CPU is meant."""
    values = dict(os.environ if environ is None else environ) | NO_CACHE
    values.pop("JAX_COMPILATION_CACHE_DIR", None)
    values["PYTHONPATH"] = str(ROOT)
    if cell.placement.startswith("cpu"):
        values["JAX_PLATFORMS"] = "cpu"
        values["JAX_NUM_CPU_DEVICES"] = cell.placement.partition(":")[2] or "1"
    return values


def _spawn(cell: Cell, folder: Path, limit: float, looker: Looker) -> Record:
    cell_file, record_file, errors = folder / "cell.json", folder / "record.json", folder / "errors.txt"
    cell_file.write_text(json.dumps(asdict(cell)), encoding="utf-8")
    command: Sequence[str] = (sys.executable, "-m", "core.benchmark.worker", str(cell_file), str(record_file))
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command, env=environment_of(cell), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr
        )
        try:
            reason = _wait(process, limit, looker)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if record_file.exists() and not reason:
        return record_from_dict(json.loads(record_file.read_text(encoding="utf-8")))
    return not_run(cell, reason or _last_words(process.returncode, errors))


def _wait(process: subprocess.Popen[bytes], limit: float, looker: Looker) -> str:
    """Wait for the process; a sentence where it took too long."""
    until = time.monotonic() + limit
    while process.poll() is None:
        _pause(looker)
        if time.monotonic() > until:
            return f"Ended after {limit:g} s without a result."
    return ""


def _pause(looker: Looker) -> None:
    if looker.should_stop():
        raise Cancelled
    if told := looker.out_of_time():
        raise OutOfTime(told)
    time.sleep(POLL_SECONDS)


def _last_words(status: int | None, errors: Path) -> str:
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if status is not None and status < 0:
        return f"The process was ended by signal {-status}; too little memory is the usual cause."
    return f"The process ended with status {status}: {lines[-1] if lines else 'it said nothing'}"[:300]
