"""Do one stretch of work on a run, from its kept data to its kept result; every way it can end is an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from core.environment import resident_bytes
from core.errors import UserError
from core.inference import engines
from core.inference.fit import Chunk, Ending, Fit, Timing, Watcher
from core.inference.memory import free_memory
from core.inference.refusal import refuse_if_too_big
from core.posterior.posterior import Posterior, posterior_of
from core.runs.cadence import Cadence
from core.runs.checkpoints import Checkpoint, Checkpoints
from core.runs.desk import Desk, Record
from core.runs.feed import NOISY, Feed, last_loss
from core.runs.files import write_whole
from core.runs.log import failures_logged
from core.runs.prepare import Prepared, pinned_codes, prepare
from core.runs.requests import RunResult
from core.runs.snapshots import PHASES, RunState
from core.runs.store import RunRow
from core.runs.values import to_bytes
from core.runs.views import request_of


class Left(Exception):
    """The run was asked to end before the fit began; carries the wish."""


def work(desk: Desk, row: RunRow) -> None:
    """Carry a claimed run to its end. Raises UserError only where that end cannot be put on record."""
    record = Record(desk, row)
    fail = record.fail
    try:
        with failures_logged(desk.log, row.id):
            task = Task(record)
            fail = task.fail
            task.do()
    except Left as left:
        task.leave(str(left))
    except UserError as bad:
        fail(" ".join(str(problem) for problem in bad.problems))
    except MemoryError:
        fail("There was not enough memory: choose a smaller data set, a simpler guide or fewer draws.")
    except Exception as bad:
        desk.log.failure(row.id, bad)
        reason = f"an error this program does not know, {type(bad).__name__}"
        fail(f"{Ending.FAILED.value.format(reason=reason)}. Please report it with the diagnostics file.")


class Task:
    """One stretch of work on one run. Raises UserError where its request, or what it has shown, cannot be read."""

    def __init__(self, record: Record):
        desk, row = record.desk, record.row
        self.desk = desk
        self.record = record
        self.request = request_of(row.request)
        self._averaged = NOISY.get(self.request.plan.engine, 1)
        self.checkpoints = Checkpoints(desk.folder(row.id) / "checkpoints", self.request.plan, row.dataset_id)
        self.begun, refused = self.checkpoints.latest()
        losses = None if self.begun is None else self.begun.losses
        self.feed = Feed(desk.store.progress(row.id), losses, desk.clock)
        self.feed.remark(*refused)
        self.trouble: UserError | None = None
        gap = self.request.checkpoint_seconds
        self.cadence = Cadence(desk.settings.checkpoint_seconds if gap is None else gap, desk.clock)

    def do(self) -> None:
        plan, prepared = self.request.plan, self._prepare()
        self._meet(prepared)
        refuse_if_too_big(plan, prepared.panel, free_memory(plan.placement), self.desk.settings.memory_share)
        fit = self._fit(prepared)
        wish = self.record.wish()
        if self.trouble is not None:
            raise self.trouble
        self._save_last(fit)
        if fit.outcome.ending is Ending.STOPPED and (wish in ("pause", "discard") or self._interrupted(wish)):
            self.leave(wish)
        elif fit.outcome.usable:
            self._conclude(fit, prepared)
        else:
            self.fail(fit.outcome.sentence)

    def enter(self, phase: str) -> None:
        """A phase begins: on record first."""
        self.feed.enter(phase)
        self.record.set(self.feed.progress(), state=PHASES[phase][0], phase=phase, memory=resident_bytes())
        self.desk.log.write(phase, self.record.row.id)

    def _prepare(self) -> Prepared:
        prepared = prepare(self.desk.datasets, self.request, self._enter_or_leave)
        self._leave_early()
        return prepared

    def _enter_or_leave(self, phase: str) -> None:
        self._leave_early()
        self.enter(phase)

    def _leave_early(self) -> None:
        """Raise Left where the run has been asked to end before its engine has it in hand."""
        wish = self.record.wish()
        # A run with a checkpoint is stopped by its engine, which makes a result of what there is.
        if wish in ("pause", "discard") or self._interrupted(wish) or (wish == "stop" and self.begun is None):
            raise Left(wish)

    def leave(self, wish: str) -> None:
        """End without a result, as asked."""
        if wish == "discard":
            if not self.desk.erase(self.record.row.id):
                self._end(RunState.DISCARDED, "Discarded.")
        elif wish == "pause":
            self._end(RunState.PAUSED, f"Paused after {self.feed.losses.size:,} steps; resume to go on from there.")
        elif wish == "stop":
            self._end(RunState.STOPPED, "Stopped by you before the first step; there is no result.")
        else:
            self._end(RunState.INTERRUPTED, "Interrupted because the program was closed; resume to go on.")

    def fail(self, sentence: str) -> None:
        """End with a sentence on what went wrong and what to do."""
        self._end(RunState.FAILED, sentence)

    def _meet(self, prepared: Prepared) -> None:
        """Take note of the data: names to watch, observations."""
        codes, missing = pinned_codes(self.request, prepared.labels)
        self._codes = codes
        self.feed.name(prepared.labels.categories, tuple(prepared.labels.products[code] for code in codes))
        self.feed.remark(*(f"'{name}' is not among the products and cannot be watched." for name in missing))
        self.feed.n_obs = prepared.n_obs
        self.record.set(self.feed.progress(), n_obs=prepared.n_obs)

    def _fit(self, prepared: Prepared) -> Fit:
        # An engine turns what is raised inside it into an outcome of its own, so trouble is kept here and raised after.
        watcher = Watcher(
            on_phase=lambda phase: self._guarded(lambda: self.enter(phase)),
            on_chunk=self._take,
            should_stop=self._should_stop,
            pinned=self._codes,
        )
        resume = None if self.begun is None else self.begun.state
        fit = engines.fit(self.request.plan, prepared.panel, watcher, resume)
        return completed(fit, self.feed.losses.values, self.begun)

    def _take(self, chunk: Chunk) -> None:
        self.feed.take(chunk)
        self.record.pulse(
            self.feed.progress, steps_done=self.feed.losses.size, rate=self.feed.rate, memory=resident_bytes(),
            loss=last_loss(self.feed.losses.values, self.feed.n_obs, self._averaged),
        )  # fmt: skip
        if chunk.checkpoint is not None and self.cadence.due():
            self._guarded(lambda: self._save(chunk.checkpoint))  # type: ignore[arg-type]

    def _should_stop(self) -> bool:
        return self.trouble is not None or self.desk.closing() or self.record.wish() != ""

    def _interrupted(self, wish: str) -> bool:
        return wish == "" and self.desk.closing()

    def _guarded(self, save: Callable[[], None]) -> None:
        """Save; where the disk does not take it, end the fit with that trouble: the last checkpoint is intact."""
        try:
            save()
        except UserError as bad:
            self.trouble = bad

    def _save(self, state: Callable[[], Mapping[str, np.ndarray]]) -> None:
        before = (0.0, 0.0) if self.begun is None else seconds_before(self.begun)
        self.feed.enter(self.record.row.phase)
        spent = self.feed.phases
        with self.cadence.counted():
            self.checkpoints.save(
                self.feed.losses.size,
                state(),
                self.feed.losses.values,
                before[0] + spent.get("compiling", 0.0),
                before[1] + spent.get("running", 0.0),
            )
        self.desk.log.write("checkpoint", self.record.row.id, step=self.feed.losses.size, seconds=self.cadence.last)

    def _save_last(self, fit: Fit) -> None:
        if fit.state and (fit.outcome.usable or fit.outcome.ending is Ending.STOPPED):
            self._save(lambda: fit.state)

    def _conclude(self, fit: Fit, prepared: Prepared) -> None:
        self.enter("drawing")
        posterior = posterior_of(fit, prepared.panel, prepared.labels, fit.plan.seed)
        if self.record.wish() == "discard":
            return self.leave("discard")
        write_whole(self.desk.result_path(self.record.row.id), to_bytes(self._result(fit, posterior, prepared)))
        ended = ENDED.get(fit.outcome.ending, RunState.FINISHED)
        return self._end(ended, fit.outcome.sentence, usable=True)

    def _result(self, fit: Fit, posterior: Posterior, prepared: Prepared) -> RunResult:
        row = self.record.row
        return RunResult(
            run_id=row.id,
            name=row.name,
            dataset_id=row.dataset_id,
            dataset_name=row.dataset_name,
            roles=self.request.roles,
            choices=self.request.choices,
            fit=fit,
            posterior=posterior,
            labels=prepared.labels,
            account=prepared.sales.account,
            problems=prepared.problems,
            products=self.request.products,
        )

    def _end(self, state: RunState, outcome: str, **values: Any) -> None:
        """The last word on this stretch of work, on record before anyone is told."""
        self.feed.enter("")
        losses = self.feed.losses
        told: dict[str, Any] = {}
        if losses.size:
            told = {"steps_done": losses.size, "loss": last_loss(losses.values, self.feed.n_obs, self._averaged)}
        self.desk.log.write(state, self.record.row.id, steps=losses.size, seconds=sum(self.feed.phases.values()))
        self.record.set(
            self.feed.progress(), state=state, phase="", outcome=outcome, wish="", rate=self.feed.rate, **told, **values
        )


ENDED = {Ending.STOPPED: RunState.STOPPED, Ending.DIVERGED: RunState.FAILED, Ending.FAILED: RunState.FAILED}
"""States of runs that ended with a usable result; any other ending is a finish."""


def completed(fit: Fit, losses: np.ndarray, begun: Checkpoint | None) -> Fit:
    """The fit with the losses and seconds of earlier stretches of the same run."""
    compiled, ran = (0.0, 0.0) if begun is None else seconds_before(begun)
    steps = max(losses.size, fit.timing.steps)
    timing = Timing(compiled + fit.timing.compile_seconds, ran + fit.timing.run_seconds, steps)
    return replace(fit, losses=np.array(losses) if losses.size else fit.losses, timing=timing)


def seconds_before(begun: Checkpoint) -> tuple[float, float]:
    return begun.manifest.compile_seconds, begun.manifest.run_seconds
