"""Run fits in the background: one worker thread a device, a fair queue, every state on record before it is acted on.

The only module with threads. All that a caller gets is immutable; all that a caller asks for goes through the store,
so that it also reaches a run that another process has in hand.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.environment import settle_memory
from core.errors import Problem, UserError
from core.runs import access
from core.runs.datasets import DatasetStore
from core.runs.desk import Desk, result_path, run_folder
from core.runs.files import clear_leftovers, clear_uploads
from core.runs.locks import Liveness, device_lock
from core.runs.log import EventLog
from core.runs.prepare import Prepared, prepare
from core.runs.register import LONGEST_NOTE, QUEUED, WORKING, Register
from core.runs.requests import RunRequest, RunResult, RunSummary
from core.runs.results import load_result, no_result
from core.runs.snapshots import RunSnapshot, RunState
from core.runs.store import RunRow, RunStore
from core.runs.values import to_text
from core.runs.views import request_of, snapshot_of
from core.runs.work import work
from core.settings import Settings
from core.words import shown_name

RESULTS_KEPT = 3
MARKETS_KEPT = 2
LOOK_SECONDS = 1.0
"""How often an idle worker looks for work that other processes left, and a waiting caller for news of theirs."""
SWEEP_SECONDS = 5.0
CLOSE_SECONDS = 60.0


class RunManager:
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
        self._live: dict[str, RunSnapshot] = {}
        self._unsaved: dict[str, RunSnapshot] = {}
        self._results: OrderedDict[str, RunResult] = OrderedDict()
        self._markets: OrderedDict[str, Prepared] = OrderedDict()
        self._workers: dict[str, threading.Thread] = {}
        self._swept = -SWEEP_SECONDS
        self._desk = Desk(
            settings, self.store, self.datasets, self.log, self._publish, self._closing.is_set,
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
        with self._guard:
            live = self._live.get(run_id) or self._unsaved.get(run_id)
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

    def stop(self, run_id: str, viewer: str | None = None) -> None:
        """End a run within one chunk and keep a usable posterior of what it has found so far."""
        row = self._register.changeable(run_id, viewer)
        if row.steps_done == 0 and self.store.change_state(
            run_id, QUEUED, state=RunState.STOPPED, outcome="Taken out of the queue before it began."
        ):
            return self._tell("stopped-queued", run_id)
        if row.state in (RunState.PAUSED, RunState.INTERRUPTED) and row.steps_done > 0:
            self._register.queue_again(row, wish="stop")
            return self._staff(row.lane)
        return self._wish(run_id, "stop")

    def pause(self, run_id: str, viewer: str | None = None) -> None:
        """Let go of the device within one chunk; `resume` goes on bit for bit, also after a restart."""
        self._register.changeable(run_id, viewer)
        if self.store.change_state(run_id, QUEUED, state=RunState.PAUSED, outcome="Paused while waiting."):
            return self._tell("paused-queued", run_id)
        return self._wish(run_id, "pause")

    def resume(self, run_id: str, viewer: str | None = None) -> None:
        """Queue a paused, stopped, failed or interrupted run again, to go on from its last checkpoint."""
        row = self._register.changeable(run_id, viewer)
        self._register.resume(row)
        self._staff(row.lane)

    def more_steps(self, run_id: str, steps: int, viewer: str | None = None) -> None:
        """Queue an ended run again, to go `steps` steps further than it came. Raises UserError while it is active."""
        row = self._register.changeable(run_id, viewer)
        self._register.extend(row, steps)
        self._staff(row.lane)

    def redraw(
        self, run_id: str, draws: int | None = None, mass: float | None = None, viewer: str | None = None
    ) -> None:
        """Draw the posterior of an ended run again from where it came to, with other draws or intervals if given."""
        row = self._register.changeable(run_id, viewer)
        self._register.redraw(row, draws, mass)
        self._staff(row.lane)

    def discard(self, run_id: str, viewer: str | None = None) -> None:
        """Delete a run with all its files; one at work ends within one chunk. There is no way back."""
        row = self._register.changeable(run_id, viewer)
        idle = frozenset(RunState) - WORKING
        if self.store.change_state(run_id, idle, state=RunState.DISCARDED, outcome="Discarded.", usable=False):
            self._erase(run_id)
            return None
        return self._wish(row.id, "discard")

    def rename(self, run_id: str, name: str, viewer: str | None = None) -> None:
        """Give a run another name."""
        row = self._register.changeable(run_id, viewer)
        self._set(run_id, name=shown_name(name, row.name))

    def set_note(self, run_id: str, note: str, viewer: str | None = None) -> None:
        """Keep a remark on a run, cut at 2,000 characters."""
        self._register.changeable(run_id, viewer)
        self._set(run_id, note=note[:LONGEST_NOTE])

    def share(self, run_id: str, shared: bool, viewer: str | None = None) -> None:
        """Show a run to others, or hide it from them."""
        self._register.changeable(run_id, viewer)
        self._set(run_id, shared=shared)

    def result(self, run_id: str, viewer: str | None = None) -> RunResult:
        """The kept result of a run; nothing is fitted again. Raises UserError where there is none."""
        row = self._register.seen(run_id, viewer)
        if not row.usable:
            raise no_result(row)
        path = result_path(self.settings, run_id)
        # A run that went on has another file: the time of writing tells them apart, whichever process wrote it.
        key = f"{run_id} {path.stat().st_mtime_ns if path.exists() else 0}"
        with self._guard:
            known = self._results.get(key)
        loaded = known or load_result(path)
        self._remember(self._results, key, loaded, RESULTS_KEPT)
        return replace(loaded, name=row.name)

    def market(self, run_id: str, viewer: str | None = None) -> Prepared:
        """Sales, panel and labels that a run read, encoded again from the kept data set."""
        row = self._register.seen(run_id, viewer)
        request = request_of(row.request)
        key = to_text((request.dataset_id, request.roles, request.choices, request.products))
        with self._guard:
            if key in self._markets:
                self._markets.move_to_end(key)
                return self._markets[key]
        made = prepare(self.datasets, request, lambda phase: None)
        self._remember(self._markets, key, made, MARKETS_KEPT)
        return made

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """End all workers within one chunk; what they had in hand is kept and counts as interrupted."""
        self._closing.set()
        self._spread()
        for thread in tuple(self._workers.values()):
            thread.join(timeout)
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
                self._save_unsaved()
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
        clear_leftovers(run_folder(self.settings, row.id))
        self.log.write("started", row.id)
        try:
            work(self._desk, self.store.row(row.id))
        except UserError as bad:
            self._hold_unsaved(row, bad)
        except Exception as bad:
            self.log.failure(row.id, bad)
            self._hold_unsaved(row, unforeseen(bad))
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
        with self._guard:
            self._live.pop(run_id, None)
            for key in [key for key in self._results if key.startswith(f"{run_id} ")]:
                del self._results[key]
        self._spread()

    def _hold_unsaved(self, row: RunRow, bad: UserError) -> None:
        """The store took no last word: show it from memory and try again later."""
        self.log.write("end-not-kept", row.id, reason=bad.problems[0].code)
        with self._guard:
            live = self._live.get(row.id) or snapshot_of(row, self.store.progress(row.id))
            state = RunState.FAILED if live.state.active else live.state
            outcome = live.outcome or " ".join(str(problem) for problem in bad.problems)
            self._unsaved[row.id] = replace(live, state=state, outcome=outcome, phase="", resumable=True)

    def _save_unsaved(self) -> None:
        with self._guard:
            pending = tuple(self._unsaved.items())
        for run_id, held in pending:
            try:
                self.store.update(run_id, state=held.state, outcome=held.outcome, phase="", wish="", usable=held.usable)
            except UserError:
                continue
            with self._guard:
                self._unsaved.pop(run_id, None)
            self._spread()
            if held.state is RunState.DISCARDED:
                self._erase(run_id)

    def _publish(self, snapshot: RunSnapshot, kept: bool) -> None:
        with self._guard:
            if shown := self._live.get(snapshot.run_id):
                # What people said of it while it ran: its worker has the row as it was at the start.
                snapshot = replace(snapshot, name=shown.name, note=shown.note, shared=shown.shared)
            if kept and not snapshot.state.active:
                # From here on the store tells: the run may be queued again before its worker lets go of it.
                self._live.pop(snapshot.run_id, None)
            else:
                self._live[snapshot.run_id] = snapshot
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

    def _wish(self, run_id: str, wish: str) -> None:
        self._register.wish(run_id, wish)
        self._spread()

    def _tell(self, event: str, run_id: str) -> None:
        self.log.write(event, run_id)
        self._spread()

    def _spread(self) -> None:
        """Wake everyone who waits for news."""
        with self._news:
            self._told += 1
            self._news.notify_all()

    def _set(self, run_id: str, **values: Any) -> None:
        self.store.update(run_id, **values)
        with self._guard:
            if run_id in self._live:
                self._live[run_id] = replace(self._live[run_id], **values)

    def _remember(self, shelf: OrderedDict[str, Any], key: str, value: Any, most: int) -> None:
        with self._guard:
            shelf[key] = value
            shelf.move_to_end(key)
            while len(shelf) > most:
                shelf.popitem(last=False)


def unforeseen(bad: Exception) -> UserError:
    """An error before the work could begin, for the person whose run it is."""
    return UserError(
        Problem(
            "run-unforeseen",
            f"The run could not begin: an error this program does not know, {type(bad).__name__}",
            "Resume it; if that ends so too, report it with the diagnostics file.",
            where="run",
        )
    )


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
