"""What this process shows of its runs before the store can tell: those at work, and last words it did not take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from core.errors import Problem, UserError
from core.runs.log import EventLog
from core.runs.snapshots import RunSnapshot, RunState
from core.runs.store import RunRow, RunStore
from core.runs.views import snapshot_of


@dataclass(frozen=True)
class LastWords:
    """How a run ended, for the store to keep, and the run as it is shown until then; None where that is unreadable."""

    state: RunState
    outcome: str
    usable: bool
    shown: RunSnapshot | None


class Board:
    """Snapshots by run: `live` of those at work; `unsaved` of those that ended while the store took no word.

    `guard` is held while they change and never while the store is asked to write or `spread` wakes who waits.
    """

    def __init__(self, store: RunStore, log: EventLog, guard: AbstractContextManager[Any], spread: Callable[[], None]):
        self.live: dict[str, RunSnapshot] = {}
        self.unsaved: dict[str, LastWords] = {}
        self._store = store
        self._log = log
        self._guard = guard
        self._spread = spread

    def shown(self, run_id: str) -> RunSnapshot | None:
        """The run as this process has it in memory; None where the store tells."""
        with self._guard:
            held = self.unsaved.get(run_id)
            return self.live.get(run_id) or (held.shown if held is not None else None)

    def publish(self, snapshot: RunSnapshot, kept: bool) -> None:
        """Show a snapshot; `kept` says that the store has it too."""
        with self._guard:
            if shown := self.live.get(snapshot.run_id):
                # What people said of it while it ran: its worker has the row as it was at the start.
                snapshot = replace(snapshot, name=shown.name, note=shown.note, shared=shown.shared)
            if kept and not snapshot.state.active:
                # From here on the store tells: the run may be queued again before its worker lets go of it.
                self.live.pop(snapshot.run_id, None)
            else:
                self.live[snapshot.run_id] = snapshot
        self._spread()

    def change(self, run_id: str, **values: Any) -> None:
        """Show what people said of a run that is at work."""
        with self._guard:
            if run_id in self.live:
                self.live[run_id] = replace(self.live[run_id], **values)

    def forget(self, run_id: str) -> None:
        """Show nothing of a run any more: the store tells all from here on."""
        with self._guard:
            self.live.pop(run_id, None)

    def hold(self, row: RunRow, bad: UserError) -> None:
        """The store took no last word: show it from memory and try again later. Never fails."""
        self._log.write("end-not-kept", row.id, reason=bad.problems[0].code)
        shown = self._last_shown(row)
        ended = shown or row
        state = RunState.FAILED if ended.state.active else ended.state
        outcome = ended.outcome or " ".join(str(problem) for problem in bad.problems)
        if shown is not None:
            shown = replace(shown, state=state, outcome=outcome, phase="", resumable=True)
        with self._guard:
            self.unsaved[row.id] = LastWords(state, outcome, ended.usable, shown)

    def _last_shown(self, row: RunRow) -> RunSnapshot | None:
        """The run at work as it was shown last, or as the store has it; None where that cannot be read."""
        with self._guard:
            live = self.live.get(row.id)
        try:
            return live or snapshot_of(row, self._store.progress(row.id))
        except Exception as bad:
            self._log.failure(row.id, bad)
            return None

    def settle(self) -> None:
        """Try again to keep the last words."""
        with self._guard:
            pending = tuple(self.unsaved.items())
        for run_id, held in pending:
            try:
                self._store.update(
                    run_id, state=held.state, outcome=held.outcome, phase="", wish="", usable=held.usable
                )
            except UserError:
                continue
            with self._guard:
                self.unsaved.pop(run_id, None)
            self._spread()


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
