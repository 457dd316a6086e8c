"""What a page sees of a run: one immutable value, complete in itself, made by the worker and never changed after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from core.inference.fit import Estimates
from core.inference.plan import FitPlan
from core.runs.curves import Curve


class RunState(StrEnum):
    """Where a run stands. Written to the store before it is acted on."""

    QUEUED = "queued"
    COMPILING = "compiling"
    RUNNING = "running"
    DRAWING = "drawing"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    DISCARDED = "discarded"

    @property
    def at_work(self) -> bool:
        """A worker has it in hand."""
        return self in AT_WORK

    @property
    def active(self) -> bool:
        """It will change by itself: a page that shows it should look again."""
        return self in AT_WORK or self is RunState.QUEUED


AT_WORK = frozenset({RunState.COMPILING, RunState.RUNNING, RunState.DRAWING})
RESUMABLE = frozenset({RunState.PAUSED, RunState.STOPPED, RunState.FAILED, RunState.INTERRUPTED})
"""States that `resume` goes on from, where steps are left."""

PHASES: Mapping[str, tuple[RunState, str]] = {
    "reading": (RunState.COMPILING, "Reading the data"),
    "encoding": (RunState.COMPILING, "Arranging the data for the model"),
    "compiling": (RunState.COMPILING, "Compiling the model"),
    "running": (RunState.RUNNING, "Fitting"),
    "drawing": (RunState.DRAWING, "Drawing from the posterior"),
}
"""Each phase of the work: the state it belongs to and its words."""


@dataclass(frozen=True)
class History:
    """How an estimate moved while the run went on; thinned evenly."""

    step: Int[np.ndarray, "point"] = field(default_factory=lambda: np.zeros(0, np.int64))
    mean: Float[np.ndarray, "point"] = field(default_factory=lambda: np.zeros(0))
    sd: Float[np.ndarray, "point"] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Progress:
    """What a run has shown so far. Kept in the store, so that other processes and later days see it too."""

    whole: Curve = field(default_factory=Curve)
    """Loss per observation over the whole run."""
    tail: Curve = field(default_factory=Curve)
    """The same over its last tenth."""
    estimates: Estimates | None = None
    categories: tuple[str, ...] = ()
    """Names behind `estimates.category_mean`."""
    pinned: tuple[str, ...] = ()
    """Names behind `estimates.pinned_mean`."""
    global_history: History = field(default_factory=History)
    verdict: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)
    """What else the engine says, by name."""
    remarks: tuple[str, ...] = ()
    """Things to know, in sentences: a product to watch that the data lack, a checkpoint refused."""


@dataclass(frozen=True)
class RunSnapshot:
    """A run at one moment. Times in seconds, memory in bytes, losses in nats per observation."""

    run_id: str
    name: str
    owner: str
    shared: bool
    note: str
    dataset_id: str
    dataset_name: str
    plan: FitPlan
    state: RunState
    phase: str
    """What it is doing, in words; empty unless at work."""
    queue_position: int
    """1 is next; 0: not waiting."""
    steps_done: int
    steps_total: int
    n_obs: int
    """Observations fitted; 0 until the data are read."""
    loss: float | None
    """Where the loss has come to: of a noisy engine the mean of its last steps; None where there is none."""
    progress: Progress
    steps_per_second: float
    elapsed: float
    """Work so far, compilation included, waiting and pauses not."""
    left: float | None
    """None where nothing can be said."""
    memory_bytes: int
    """Held by the process that works on it."""
    outcome: str
    """How it ended, in a sentence that says what to try; empty before."""
    usable: bool
    """`result` has a posterior for it."""
    resumable: bool
    created: float
    """Seconds since 1970."""

    @property
    def verdict(self) -> str:
        """Whether the loss still falls, in words; empty while it is too early to say."""
        return self.progress.verdict

    @property
    def share_done(self) -> float:
        return min(1.0, self.steps_done / self.steps_total) if self.steps_total else 0.0
