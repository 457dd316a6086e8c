"""Run fits in the background: one worker thread a device, a fair queue, every state on record before it is acted on.

The only module with threads. All that a caller gets is immutable; all that a caller asks for goes through the store,
so that it also reaches a run that another process has in hand.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.environment import settle_memory
from core.errors import UserError
from core.runs import access
from core.runs.board import Board, unforeseen
from core.runs.controls import RunControls
from core.runs.datasets import DatasetStore
from core.runs.desk import Desk, run_folder
from core.runs.files import clear_leftovers, clear_uploads
from core.runs.locks import Liveness, device_lock
from core.runs.log import EventLog
from core.runs.prepare import Prepared
from core.runs.register import Register
from core.runs.requests import RunRequest, RunResult, RunSummary
from core.runs.shelf import Shelf
from core.runs.snapshots import RunSnapshot, RunState
from core.runs.store import RunRow, RunStore
from core.runs.views import snapshot_of
from core.runs.work import work
from core.settings import Settings

LOOK_SECONDS = 1.0
"""How often an idle worker looks for work that other processes left, and a waiting caller for news of theirs."""
SWEEP_SECONDS = 5.0
CLOSE_SECONDS = 60.0


class RunManager(RunControls):
    """Submit, watch and end runs. Methods raise UserError: unknown run, not allowed, store busy, disk full.

    `viewer` is who asks; None where there is no access control. With `adopt`, this process also takes over runs that
    a dead process has left in the queue; a command that works on one run of its own does not.
    """

    def __init__(self, settings: Settings, adopt: bool = True, pulse_seconds: float = 0.5):
        self.settings = settings
        self._locks = settings.data_dir / "locks"
        self.log = EventLog(settings.data_dir / "log" / "events.log")
        self.store = RunStore(settings.data_dir / "store.sqlite")
        self.datasets = DatasetStore(settings, self.store)
        self._alive = Liveness(self._locks)
        if self._alive.clear_dead():
            clear_leftovers(settings.data_dir)
            clear_uploads(settings.data_dir / "uploads")
        self._register = Register(settings, self.store, self.datasets, self._alive, self.log)
        self._adopt = adopt
        self._guard = threading.Lock()
        self._news = threading.Condition(self._guard)
        self._told = 0
        self._closing = threading.Event()
        self._board = Board(self.store, self.log, self._guard, self._spread)
        self._shelf = Shelf(settings, self.datasets, self._guard)
        self._workers: dict[str, threading.Thread] = {}
        self._swept = -SWEEP_SECONDS
        self._desk = Desk(
            settings, self.store, self.datasets, self.log, self._board.publish, self._closing.is_set,
            pulse_seconds=pulse_seconds,
        )  # fmt: skip
        self._sweep()
        for lane in {row.lane for row in self.store.rows() if self._mine(row)}:
            self._staff(lane)

    # What a caller may ask for

    def submit(self, request: RunRequest) -> str:
        """Queue a fit and say its id. Raises UserError: data set unknown, too many queued, quota used up."""
        row = self._register.enter(request)
        self.log.write("queued", row.id, engine=request.plan.engine, lane=row.lane)
        self._staff(row.lane)
        return row.id

    def snapshot(self, run_id: str, viewer: str | None = None) -> RunSnapshot:
        """The run at this moment. Cheap: meant to be asked once a second by every page."""
        self._sweep()
        live = self._board.shown(run_id)
        if live is not None and live.state is not RunState.DISCARDED:
            access.require_seen(live, viewer)
            return live
        row = self._register.seen(run_id, viewer)
        return snapshot_of(row, self.store.progress(run_id), self._register.position(row))

    def runs(self, viewer: str | None = None) -> tuple[RunSummary, ...]:
        """Every run that `viewer` may see, newest first."""
        self._sweep()
        return self._register.summaries(viewer)

    def wait(
        self,
        run_id: str,
        timeout: float | None = None,
        on_news: Callable[[RunSnapshot], None] = lambda snapshot: None,
    ) -> RunSnapshot:
        """Block until the run is no longer active, or for `timeout` seconds; `on_news` gets every new snapshot.

        Raises UserError where the run is discarded meanwhile.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        last: RunSnapshot | None = None
        while True:
            with self._news:
                told = self._told
            found = self.snapshot(run_id)
            if found is not last:
                on_news(found)
            last = found
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if not found.state.active or left <= 0:
                return found
            with self._news:
                if self._told == told:
                    self._news.wait(left)

    def result(self, run_id: str, viewer: str | None = None) -> RunResult:
        """The kept result of a run; nothing is fitted again. Raises UserError where there is none."""
        return self._shelf.result(self._register.seen(run_id, viewer))

    def market(self, run_id: str, viewer: str | None = None) -> Prepared:
        """Sales, panel and labels that a run read, encoded again from the kept data set."""
        return self._shelf.market(self._register.seen(run_id, viewer))

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """End all workers within one chunk; what they had in hand is kept and counts as interrupted."""
        self._closing.set()
        self._spread()
        for thread in tuple(self._workers.values()):
            thread.join(timeout)
        self.store.close()
        self._alive.end()

    # Workers

    def _staff(self, lane: str) -> None:
        self._spread()
        with self._guard:
            worker = self._workers.get(lane)
            if self._closing.is_set() or (worker is not None and worker.is_alive()):
                return
            worker = threading.Thread(target=self._serve, args=(lane,), name=f"fits-{lane}", daemon=True)
            self._workers[lane] = worker
            worker.start()

    def _serve(self, lane: str) -> None:
        lock = device_lock(self._locks, lane)
        while not self._closing.is_set():
            done = False
            try:
                if self._next(lane) is not None and lock.acquire():
                    with lock:
                        row = self._next(lane)
                        done = row is not None and self._work(row)
                self._board.settle()
            except Exception as bad:
                self.log.failure("-", bad)
            if not done:
                with self._news:
                    if not self._closing.is_set():
                        self._news.wait(LOOK_SECONDS)

    def _next(self, lane: str) -> RunRow | None:
        self._sweep()
        return next((row for row in self._register.queue(lane) if self._mine(row)), None)

    def _mine(self, row: RunRow) -> bool:
        if row.state is not RunState.QUEUED:
            return False
        return row.process == self._alive.process or (self._adopt and not self._alive.is_alive(row.process))

    def _work(self, row: RunRow) -> bool:
        if not self.store.claim(row.id, self._alive.process):
            return False
        self.log.write("started", row.id)
        try:
            clear_leftovers(run_folder(self.settings, row.id))
            work(self._desk, self.store.row(row.id))
        except UserError as bad:
            self._board.hold(row, bad)
        except Exception as bad:
            self.log.failure(row.id, bad)
            self._board.hold(row, unforeseen(bad))
        finally:
            self._forget(row.id)
            # The programs it compiled stay for the next run.
            settle_memory()
        return True

    def _erase(self, run_id: str) -> None:
        """Remove all that is left of a discarded run, in memory too."""
        self._desk.erase(run_id)
        self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        """Keep nothing of a run in memory: the store tells all from here on."""
        self._board.forget(run_id)
        self._shelf.forget(run_id)
        self._spread()

    # Records

    def _sweep(self) -> None:
        """Mark as interrupted what a dead process had in hand; looks every few seconds at most."""
        now = time.monotonic()
        with self._guard:
            if now - self._swept < SWEEP_SECONDS:
                return
            self._swept = now
        for run_id in self._register.sweep():
            self._erase(run_id)

    def _spread(self) -> None:
        """Wake everyone who waits for news."""
        with self._news:
            self._told += 1
            self._news.notify_all()


_MANAGERS: dict[Path, RunManager] = {}
_MANAGERS_GUARD = threading.Lock()


def get_manager(settings: Settings) -> RunManager:
    """The one manager of this process for a data folder; made at the first call, closed when the process ends."""
    folder = settings.data_dir.resolve()
    with _MANAGERS_GUARD:
        if folder not in _MANAGERS:
            manager = RunManager(replace(settings, data_dir=folder))
            atexit.register(manager.close)
            _MANAGERS[folder] = manager
        return _MANAGERS[folder]
