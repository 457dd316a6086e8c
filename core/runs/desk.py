"""What a worker has at hand, and how it puts a run's state on record before it acts on it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.runs.datasets import DatasetStore
from core.runs.log import EventLog
from core.runs.snapshots import Progress, RunSnapshot, RunState
from core.runs.store import RunRow, RunStore
from core.runs.views import snapshot_of
from core.settings import Settings

INSISTENCE = 12
"""Attempts to write a state while other processes keep the store busy, five seconds each."""


@dataclass(frozen=True)
class Desk:
    """The places a worker reads from and writes to.

    `publish` shows a snapshot to this process's readers and says whether the store has it too.
    """

    settings: Settings
    store: RunStore
    datasets: DatasetStore
    log: EventLog
    publish: Callable[[RunSnapshot, bool], None]
    closing: Callable[[], bool] = lambda: False
    """Whether this process is about to end."""
    clock: Callable[[], float] = time.monotonic
    pulse_seconds: float = 0.5
    """Least time between two snapshots of a run."""

    def folder(self, run_id: str) -> Path:
        """Files of a run."""
        return run_folder(self.settings, run_id)

    def result_path(self, run_id: str) -> Path:
        return result_path(self.settings, run_id)

    def erase(self, run_id: str) -> bool:
        """Remove everything of a run and say whether that is done. Files first: while the row is there, a discarded
        run is found again and erased later."""
        shutil.rmtree(self.folder(run_id), ignore_errors=True)
        if self.folder(run_id).exists():
            return False
        try:
            self.store.delete(run_id)
        except UserError:
            return False
        self.log.write("discarded", run_id)
        return True


def run_folder(settings: Settings, run_id: str) -> Path:
    """Where the files of a run lie. Ids are made by us, never by a person."""
    return settings.data_dir / "runs" / run_id


def result_path(settings: Settings, run_id: str) -> Path:
    return run_folder(settings, run_id) / "result.npz"


class Record:
    """The row of one run while a worker has it: written to the store, then shown."""

    def __init__(self, desk: Desk, row: RunRow):
        self.desk = desk
        self.row = row
        self._shown = -float("inf")
        self._before = row.seconds
        self._started = desk.clock()

    def set(self, progress: Progress, **values: Any) -> None:
        """Put it on record and show it. Insists while the store is busy; raises UserError when it cannot be kept."""
        values["seconds"] = self._before + self.desk.clock() - self._started
        self.row = replace(self.row, **values)
        kept = False
        try:
            _insist(lambda: self.desk.store.set_progress(self.row.id, progress, **values))
            kept = True
        finally:
            self.desk.publish(snapshot_of(self.row, progress), kept)

    def pulse(self, progress: Callable[[], Progress], **values: Any) -> None:
        """The same, at most every `pulse_seconds`, and without insisting: the next pulse tells more anyway."""
        now = self.desk.clock()
        if now - self._shown < self.desk.pulse_seconds:
            return
        self._shown = now
        values["seconds"] = self._before + now - self._started
        self.row = replace(self.row, **values)
        shown = progress()
        self.desk.publish(snapshot_of(self.row, shown), True)
        try:
            self.desk.store.set_progress(self.row.id, shown, **values)
        except UserError as bad:
            self.desk.log.write("progress-not-kept", self.row.id, reason=bad.problems[0].code)

    def fail(self, sentence: str) -> None:
        """End a run that could not begin. Nothing is shown, and what it has shown stays: it may be unreadable.

        Insists while the store is busy; raises UserError when it cannot be kept.
        """
        self.desk.log.write(RunState.FAILED, self.row.id, reason="could-not-begin")
        seconds = self._before + self.desk.clock() - self._started
        values = {"state": RunState.FAILED, "phase": "", "outcome": sentence, "wish": "", "seconds": seconds}
        _insist(lambda: self.desk.store.update(self.row.id, **values))

    def wish(self) -> str:
        """What the worker has been asked to do; nothing where the store does not answer."""
        try:
            return self.desk.store.wish(self.row.id)
        except UserError:
            return ""


def _insist(write: Callable[[], None]) -> None:
    """Write while other processes keep the store busy. Raises UserError where it cannot be written."""
    for attempt in range(INSISTENCE):
        try:
            return write()
        except UserError as bad:
            if bad.problems[0].code != "store-busy" or attempt == INSISTENCE - 1:
                raise
    return None
