"""Keep what is known of every run in one SQLite file that several threads and processes read and write.

Order never depends on the clock, which may be set back: `seq` and `place` count upwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from core.errors import Problem, UserError
from core.runs.database import Database
from core.runs.snapshots import Progress, RunState
from core.runs.values import from_bytes, to_bytes, unreadable


@dataclass(frozen=True)
class RunRow:
    """A run as the store has it: one column a field. `request` is a RunRequest as text."""

    seq: int
    id: str
    name: str
    owner: str
    dataset_id: str
    request: str
    state: RunState
    phase: str
    wish: str
    """What its worker has been asked to do: '', 'stop', 'pause' or 'discard', which nothing takes back."""
    process: str
    """Who has it in hand, or had."""
    lane: str
    """Device it waits for."""
    place: int
    """Order in the queue."""
    turn: int
    """Order in which runs were started; 0: never."""
    created: float
    steps_done: int
    steps_total: int
    n_obs: int
    seconds: float
    rate: float
    memory: int
    loss: float | None
    outcome: str
    usable: bool
    shared: bool
    note: str
    dataset_name: str
    """Looked up among the data sets; empty where that one is gone."""

    @property
    def gone(self) -> bool:
        """Whether nobody is to see it any more: it only waits to be erased."""
        return self.state is RunState.DISCARDED or (self.wish == "discard" and not self.state.active)


COLUMNS = tuple(f.name for f in fields(RunRow))


class RunStore(Database):
    """The runs of an installation. Every method may raise UserError: store busy, disk full, file damaged."""

    def add(self, **values: Any) -> RunRow:
        """Put a new run at the end of its queue."""
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        with self.connection() as db:
            db.execute(f"INSERT INTO runs ({names}, place) VALUES ({marks}, {NEXT_PLACE})", values)
        return self.row(values["id"])

    def row(self, run_id: str) -> RunRow:
        """The run of that id. Raises UserError when there is none."""
        with self.connection() as db:
            found = db.execute(f"{SELECT} WHERE id = ?", (run_id,)).fetchone()
        if found is None:
            raise unknown_run(run_id)
        return _row(found)

    def rows(self) -> tuple[RunRow, ...]:
        """Every run, newest first."""
        with self.connection() as db:
            return tuple(_row(found) for found in db.execute(f"{SELECT} ORDER BY seq DESC"))

    def last_turns(self, lane: str) -> dict[str, int]:
        """For each owner the latest turn on a device, for a fair queue."""
        with self.connection() as db:
            found = db.execute("SELECT owner, turn FROM turns WHERE lane = ?", (lane,))
            return {row["owner"]: row["turn"] for row in found}

    def update(self, run_id: str, **values: Any) -> None:
        """Set columns of a run."""
        with self.connection() as db:
            db.execute(f"UPDATE runs SET {_assigned(values)} WHERE id = :run_id", {**values, "run_id": run_id})

    def claim(self, run_id: str, process: str) -> bool:
        """Take a queued run in hand; False where another process was faster or it waits no longer."""
        with self.connection() as db:
            db.execute("BEGIN IMMEDIATE")
            changed = db.execute(
                "UPDATE runs SET state = ?, process = ?, turn = (SELECT COALESCE(MAX(turn), 0) + 1 FROM turns)"
                " WHERE id = ? AND state = ?",
                (RunState.COMPILING, process, run_id, RunState.QUEUED),
            ).rowcount
            if changed:
                # Apart from the runs: who discards theirs is not served before others for it.
                db.execute(
                    "INSERT INTO turns (lane, owner, turn) SELECT lane, owner, turn FROM runs WHERE id = ?"
                    " ON CONFLICT (lane, owner) DO UPDATE SET turn = excluded.turn",
                    (run_id,),
                )
            db.execute("COMMIT")
        return changed == 1

    def change_state(
        self, run_id: str, allowed: frozenset[RunState], process: str | None = None, **values: Any
    ) -> bool:
        """Set columns of a run only while it is in one of the `allowed` states (and in the hands of `process`)."""
        return self._change(run_id, allowed, process, _assigned(values), values)

    def queue_again(self, run_id: str, allowed: frozenset[RunState], **values: Any) -> bool:
        """Put a run that is in one of the `allowed` states at the end of its queue; says whether it was."""
        fresh = {"state": RunState.QUEUED, "wish": "", "phase": "", "outcome": "", **values}
        return self._change(run_id, allowed, None, f"{_assigned(fresh)}, place = {NEXT_PLACE}", fresh)

    def _change(
        self, run_id: str, allowed: frozenset[RunState], process: str | None, assigned: str, values: dict[str, Any]
    ) -> bool:
        marks = ", ".join(f"'{state}'" for state in sorted(allowed))
        held = "" if process is None else " AND process = :held_by"
        with self.connection() as db:
            changed = db.execute(
                f"UPDATE runs SET {assigned} WHERE id = :run_id AND state IN ({marks}){held}",
                {**values, "run_id": run_id, "held_by": process},
            )
        return changed.rowcount == 1

    def wish(self, run_id: str) -> str:
        """What the run's worker has been asked to do; 'discard' where the run is gone."""
        with self.connection() as db:
            found = db.execute("SELECT wish FROM runs WHERE id = ?", (run_id,)).fetchone()
        return "discard" if found is None else str(found["wish"])

    def delete(self, run_id: str) -> None:
        """Forget a run: its row, its request, what it has shown."""
        with self.connection() as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def set_progress(self, run_id: str, progress: Progress, **values: Any) -> None:
        """Keep what a run has shown so far, with columns of its row, in one transaction."""
        with self.connection() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(f"UPDATE runs SET {_assigned(values)} WHERE id = :run_id", {**values, "run_id": run_id})
            db.execute(
                "INSERT INTO progress (id, value) SELECT id, ? FROM runs WHERE id = ?"
                " ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                (to_bytes(progress), run_id),
            )
            db.execute("COMMIT")

    def progress(self, run_id: str) -> Progress:
        """What the run has shown so far; empty where it has shown nothing."""
        with self.connection() as db:
            found = db.execute("SELECT value FROM progress WHERE id = ?", (run_id,)).fetchone()
        return Progress() if found is None else _progress(found["value"])


@lru_cache(maxsize=64)
def _progress(value: bytes) -> Progress:
    # A page asks several times in a row for what has not changed.
    progress = from_bytes(value)
    if not isinstance(progress, Progress):
        raise unreadable()
    return progress


SELECT = (
    "SELECT runs.*, COALESCE((SELECT name FROM datasets WHERE datasets.id = dataset_id), '') AS dataset_name FROM runs"
)
NEXT_PLACE = "(SELECT COALESCE(MAX(place), 0) + 1 FROM runs)"


def _assigned(values: Mapping[str, Any]) -> str:
    # A run whose discard was asked for stays so, whatever its worker has to say after.
    kept = "CASE wish WHEN 'discard' THEN wish ELSE :wish END"
    return ", ".join(f"{name} = {kept if name == 'wish' else f':{name}'}" for name in values)


UNKNOWN = "run-unknown"


def unknown_run(run_id: str) -> UserError:
    return UserError(
        Problem(UNKNOWN, f"There is no run '{run_id[:40]}'", "Look it up in the list of runs.", where="run")
    )


def _row(found: Mapping[str, Any]) -> RunRow:
    values = {name: found[name] for name in COLUMNS}
    return RunRow(
        **{
            **values,
            "state": RunState(values["state"]),
            "usable": bool(values["usable"]),
            "shared": bool(values["shared"]),
        }
    )
