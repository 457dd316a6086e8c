"""Let a page run a benchmark or a race as a process of its own, follow it by its files and call it off.

One at a time an installation: it holds a lock that the operating system lets go when it dies, and a file of its own
asks it to stop. A page that reloads, or another tab, finds everything in the data folder again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.benchmark.command import main
from core.benchmark.options import BenchmarkOptions
from core.benchmark.race import RaceOptions, run_race
from core.benchmark.runner import ROOT, folder_of
from core.errors import Problem, UserError
from core.runs.locks import FileLock, device_lock
from core.settings import Settings, load_settings, variable

STARTING_SECONDS = 20.0
"""A process that has not taken its lock after this time has failed to start."""


def start_benchmark(options: BenchmarkOptions, settings: Settings) -> None:
    """Start a benchmark in a process of its own. Raises UserError while another one runs."""
    _start("benchmark", asdict(options), settings)


def start_race(options: RaceOptions, settings: Settings) -> None:
    """Start a race in a process of its own. Raises UserError while something else is being timed."""
    _refuse_if_busy(settings)
    _refuse_if_off(settings)
    for lane in race_folder(settings).glob("*.jsonl"):
        lane.unlink()
    _start("race", asdict(options), settings)


def running(settings: Settings) -> str:
    """What is being timed now: 'benchmark', 'race', or '' for nothing."""
    path = _folder(settings) / "running.json"
    try:
        job = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    with FileLock(_folder(settings) / "running.lock") as lock:
        taken = not lock.acquire()
    fresh = not job["taken"] and time.time() - path.stat().st_mtime < STARTING_SECONDS
    return str(job["kind"]) if taken or fresh else ""


def ask_to_stop(settings: Settings) -> None:
    """Call off what is being timed; it ends within a second and keeps what it has."""
    (_folder(settings) / "stop").touch()


def last_words(settings: Settings) -> str:
    """The last line that the last process said, for when it ended without a result."""
    try:
        lines = (_folder(settings) / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def race_folder(settings: Settings) -> Path:
    """Where the lanes of the last race wrote their lines."""
    return _folder(settings) / "race"


def _folder(settings: Settings) -> Path:
    folder = folder_of(settings) / "job"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


_started: list[subprocess.Popen[bytes]] = []


def _refuse_if_busy(settings: Settings) -> None:
    if busy := running(settings):
        raise UserError(
            Problem("busy", f"a {busy} is running on this machine", "Wait for it or cancel it, then start again.")
        )


def _refuse_if_off(settings: Settings) -> None:
    if not settings.benchmark_minutes:
        remedy = f"Use `python -m core benchmark`, or ask for {variable('benchmark_minutes')} to be raised."
        raise UserError(Problem("timing-off", "nothing may be timed from the pages of this installation", remedy))


def _start(kind: str, options: Mapping[str, Any], settings: Settings) -> None:
    _refuse_if_busy(settings)
    _refuse_if_off(settings)
    folder = _folder(settings)
    (folder / "stop").unlink(missing_ok=True)
    _write_job(folder, kind, taken=False)
    environment = os.environ | {variable("data_dir"): str(settings.data_dir.resolve()), "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "core.benchmark", kind, json.dumps(options))
    _started[:] = [process for process in _started if process.poll() is None]
    with (folder / "log.txt").open("wb") as log:
        _started.append(
            subprocess.Popen(
                command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )  # fmt: skip


def _write_job(folder: Path, kind: str, taken: bool) -> None:
    (folder / "running.json").write_text(json.dumps({"kind": kind, "taken": taken}), encoding="utf-8")


# In the process that was started


def run_job(kind: str, options: Mapping[str, Any]) -> int:
    """Do what the page asked for, holding the lock that says so."""
    settings = load_settings()
    folder = _folder(settings)
    with FileLock(folder / "running.lock") as lock:
        if not _patiently(lock.acquire):
            print("Something else is being timed.")
            return 1
        _write_job(folder, kind, taken=True)
        asked, out_of_time = called_off(folder), time_limit(settings)
        if kind == "benchmark":
            return main(BenchmarkOptions(**options), settings, also_stop=asked, out_of_time=out_of_time)

        def stop() -> bool:
            return asked() or bool(out_of_time())

        with device_lock(settings.data_dir / "locks", "cpu") as device:
            if not _patiently(device.acquire, until=stop):
                waited = "Called off while it waited for the device." if asked() else "Another fit holds the device."
                print(out_of_time() or waited)
                return 1
            run_race(RaceOptions(**options), race_folder(settings), stop)
            if told := out_of_time():
                print(told)
    return 0


def called_off(folder: Path) -> Callable[[], bool]:
    """Whether someone has asked the job to stop."""
    return (folder / "stop").exists


def time_limit(settings: Settings, clock: Callable[[], float] = time.monotonic) -> Callable[[], str]:
    """'' while the job has time left, counted from now; then a sentence that says so and how to allow more."""
    minutes = settings.benchmark_minutes
    end = clock() + 60.0 * minutes
    told = (
        f"It ran out of the {minutes:,} minutes that a benchmark started on a page may take here. To measure the rest, "
        f"choose fewer cases or rounds, raise {variable('benchmark_minutes')} and restart the dashboard, or use "
        "`python -m core benchmark`, which has no such limit."
    )
    return lambda: told if clock() >= end else ""


def _patiently(take: Callable[[], bool], until: Callable[[], bool] = lambda: False, seconds: float = 10.0) -> bool:
    """Try for a while: pages look at the lock by taking it for a moment."""
    deadline = time.monotonic() + seconds
    while not take():
        if time.monotonic() > deadline or until():
            return False
        time.sleep(0.05)
    return True
