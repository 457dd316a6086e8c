"""What people may ask of a run that is there: put on record in the store, for whoever works on it, in any process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from core.runs.board import Board
from core.runs.log import EventLog
from core.runs.register import LONGEST_NOTE, QUEUED, WORKING, Register
from core.runs.snapshots import RunState
from core.runs.store import RunStore
from core.words import shown_name


class RunControls(ABC):
    """Stop, pause, resume, extend, draw again, discard and name runs. Methods raise UserError, see RunManager."""

    store: RunStore
    log: EventLog
    _register: Register
    _board: Board

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
            return self._erase(run_id)
        # Whatever it has come to meanwhile: one that has ended since is swept away.
        self.store.update(row.id, wish="discard")
        return self._tell("asked-to-discard", row.id)

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

    @abstractmethod
    def _staff(self, lane: str) -> None:
        """See that someone works on the queue of a device."""

    @abstractmethod
    def _spread(self) -> None:
        """Wake everyone who waits for news."""

    @abstractmethod
    def _erase(self, run_id: str) -> None:
        """Remove all that is left of a discarded run, in memory too."""

    def _wish(self, run_id: str, wish: str) -> None:
        self._register.wish(run_id, wish)
        self._spread()

    def _tell(self, event: str, run_id: str) -> None:
        self.log.write(event, run_id)
        self._spread()

    def _set(self, run_id: str, **values: Any) -> None:
        self.store.update(run_id, **values)
        self._board.change(run_id, **values)
