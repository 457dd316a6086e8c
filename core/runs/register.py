"""The book of all runs: enter, find, queue, and mark what dead processes left; no run is worked on here."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

from core.errors import Problem, UserError
from core.inference.plan import FitPlan, plan_with
from core.runs import access
from core.runs.datasets import DatasetStore
from core.runs.locks import Liveness
from core.runs.log import EventLog
from core.runs.queue import lane_of, waiting
from core.runs.requests import MOST_PINNED, RunRequest, RunSummary
from core.runs.snapshots import AT_WORK, RunState
from core.runs.store import RunRow, RunStore, unknown_run
from core.runs.values import to_text
from core.runs.views import plan_line, request_of, resumable, steps_total, summary_of
from core.settings import Settings
from core.words import shown_name

QUEUED = frozenset({RunState.QUEUED})
WORKING = frozenset(AT_WORK)
ENDED = frozenset(RunState) - WORKING - QUEUED - {RunState.DISCARDED}
EXTENDED = {"svi": "steps", "structured": "max_iterations"}
"""The choice of each engine that says how far it goes on from where it is; NUTS draws anew."""
LONGEST_NOTE = 2_000


class Register:
    """What the manager knows of runs it does not have in hand. Methods raise UserError, see RunManager."""

    def __init__(self, settings: Settings, store: RunStore, datasets: DatasetStore, alive: Liveness, log: EventLog):
        self._settings = settings
        self._store = store
        self._datasets = datasets
        self._alive = alive
        self._log = log

    def enter(self, request: RunRequest) -> RunRow:
        """Put a request at the end of its queue. Raises UserError with all that speaks against it."""
        self._check(request)
        data = self._datasets.info(request.dataset_id).name
        return self._store.add(
            id=uuid4().hex[:12],
            name=shown_name(request.name, f"{data}: {plan_line(request.plan)}"),
            owner=request.owner,
            shared=request.shared,
            dataset_id=request.dataset_id,
            request=to_text(request),
            state=RunState.QUEUED,
            process=self._alive.process,
            lane=lane_of(request.plan),
            created=time.time(),
            steps_total=steps_total(request.plan),
        )

    def seen(self, run_id: str, viewer: str | None) -> RunRow:
        """The run, where `viewer` may see it."""
        row = access.require_seen(self._store.row(run_id), viewer)
        if row.gone:
            raise unknown_run(run_id)
        return row

    def changeable(self, run_id: str, viewer: str | None) -> RunRow:
        """The run, where `viewer` may change it."""
        return access.require_changes(self.seen(run_id, viewer), viewer)

    def summaries(self, viewer: str | None) -> tuple[RunSummary, ...]:
        """Every run that `viewer` may see, newest first."""
        rows = self._store.rows()
        positions = self._positions(rows)
        seen = (row for row in rows if not row.gone and access.sees(row, viewer))
        return tuple(summary_of(row, positions.get(row.id, 0)) for row in seen)

    def position(self, row: RunRow) -> int:
        """Place of a run in its queue, 1 is next; 0 where it does not wait."""
        return 0 if row.state is not RunState.QUEUED else self._positions(self._store.rows()).get(row.id, 0)

    def queue(self, lane: str) -> tuple[RunRow, ...]:
        """Runs that wait for a device, next first."""
        return waiting(self._store.rows(), lane, self._store.last_turns(lane))

    def queue_again(self, row: RunRow, **values: Any) -> None:
        """Put an ended run at the end of its queue. Raises UserError while it is active."""
        if not self._store.queue_again(row.id, ENDED, process=self._alive.process, **values):
            raise UserError(
                Problem("run-active", "The run is still active", "Wait until it has ended, or stop it.", where="run")
            )
        self._log.write("queued-again", row.id)

    def resume(self, row: RunRow) -> None:
        """Queue a run again that has something left to do."""
        if not resumable(row):
            raise UserError(
                Problem(
                    "run-not-resumable",
                    f"A run that is {row.state} cannot be resumed",
                    "Give a finished run more steps instead; wait for one at work.",
                    where="run",
                )
            )
        self.queue_again(row)

    def extend(self, row: RunRow, steps: int) -> None:
        """Queue an ended run again, to go `steps` steps further than it came."""
        request = request_of(row.request)
        plan = extended(request.plan, row.steps_done, steps)
        self.queue_again(row, request=to_text(replace(request, plan=plan)), steps_total=steps_total(plan))

    def redraw(self, row: RunRow, draws: int | None, mass: float | None) -> None:
        """Queue an ended run again to draw its posterior from the last checkpoint, with other draws or intervals."""
        request = request_of(row.request)
        wanted = {name: value for name, value in (("draws", draws), ("mass", mass)) if value is not None}
        plan = plan_with(request.plan, **wanted)
        self._check_draws(plan)
        self.queue_again(row, request=to_text(replace(request, plan=plan)))

    def wish(self, run_id: str, wish: str) -> None:
        """Put a wish on record for whoever works on the run, in any process; ended runs stay as they are."""
        if self._store.change_state(run_id, WORKING | QUEUED, wish=wish):
            self._log.write(f"asked-to-{wish}", run_id)

    def sweep(self) -> tuple[str, ...]:
        """Mark as interrupted what a dead process had in hand; the runs of which something is left to erase."""
        discarded = []
        for row in self._store.rows():
            if row.gone:
                discarded.append(row.id)
            elif row.state.at_work and not self._alive.is_alive(row.process):
                sentence = f"Interrupted after {row.steps_done:,} steps because the program ended; resume to go on."
                if self._store.change_state(
                    row.id, WORKING, row.process, state=RunState.INTERRUPTED, phase="", wish="", outcome=sentence
                ):
                    self._log.write("interrupted", row.id, steps=row.steps_done)
                    discarded += [row.id] if row.wish == "discard" else []
        return tuple(discarded)

    def _positions(self, rows: tuple[RunRow, ...]) -> dict[str, int]:
        places: dict[str, int] = {}
        for lane in {row.lane for row in rows if row.state is RunState.QUEUED}:
            queue = waiting(rows, lane, self._store.last_turns(lane))
            places |= {row.id: number for number, row in enumerate(queue, start=1)}
        return places

    def _check(self, request: RunRequest) -> None:
        self._datasets.info(request.dataset_id)
        self._datasets.check_quota()
        problems = []
        if len(request.pinned) > MOST_PINNED:
            problems.append(Problem("pinned", f"At most {MOST_PINNED} products can be watched", "Watch fewer."))
        if sum(row.state.active for row in self._store.rows()) >= self._settings.max_queued:
            told = f"{self._settings.max_queued} runs wait or run already"
            problems.append(Problem("queue-full", told, "Wait for one to end, or raise ISOELASTIC_MAX_QUEUED."))
        if problems := [*problems, *self._draws_problems(request.plan)]:
            raise UserError(problems)

    def _check_draws(self, plan: FitPlan) -> None:
        if problems := self._draws_problems(plan):
            raise UserError(problems)

    def _draws_problems(self, plan: FitPlan) -> list[Problem]:
        most = self._settings.max_draws
        if plan.draws <= most:
            return []
        told = f"{plan.draws:,} draws are more than the {most:,} allowed"
        return [Problem("draws", told, "Ask for fewer, or raise ISOELASTIC_MAX_DRAWS.", where="draws")]


def extended(plan: FitPlan, done: int, steps: int) -> FitPlan:
    """The plan that goes `steps` steps further than `done`. Raises UserError where that makes no sense."""
    if steps < 1:
        raise UserError(Problem("steps", f"{steps} more steps are none", "Ask for at least 1.", where="steps"))
    if plan.engine not in EXTENDED:
        raise UserError(
            Problem("steps", f"{plan.engine} does not go on from where it ended", "Start a new run with more samples.")
        )
    return plan_with(plan, **{EXTENDED[plan.engine]: done + steps})
