"""What goes into the run manager and what comes out: a request, a line in the list, a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.errors import Problem
from core.inference.fit import Fit
from core.inference.plan import FitPlan
from core.panel import PanelLabels
from core.runs.snapshots import RunState

MOST_PINNED = 10


@dataclass(frozen=True)
class RunRequest:
    """A fit to be done. `roles` and `choices` are those of `core.data`; `pinned` names products to watch live."""

    dataset_id: str
    roles: Any
    choices: Any
    plan: FitPlan
    name: str = ""
    """Shown in lists; made up from data and engine where empty."""
    pinned: tuple[str, ...] = ()
    """At most ten product names; names that are not in the data are passed over with a note."""
    owner: str = ""
    """Who may change it; empty without access control."""
    shared: bool = True
    """Others on this server see it."""
    checkpoint_seconds: float | None = None
    """None: as the settings say."""
    products: tuple[str, ...] = ()
    """The market of these products alone; empty: all of them."""


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs."""

    run_id: str
    name: str
    owner: str
    shared: bool
    note: str
    dataset_id: str
    dataset_name: str
    plan_line: str
    state: RunState
    queue_position: int
    steps_done: int
    steps_total: int
    loss: float | None
    """Last loss, of a noisy engine the mean of its last steps, nats per observation; None where there is none."""
    seconds: float
    created: float
    outcome: str
    usable: bool
    resumable: bool
    products: tuple[str, ...] = ()
    """Products it was restricted to; empty: all."""


@dataclass(frozen=True)
class RunResult:
    """A fit that is done, as kept on disk."""

    run_id: str
    name: str
    dataset_id: str
    dataset_name: str
    roles: Any
    choices: Any
    fit: Fit
    """With all losses, the outcome, the timing and the environment it ran in."""
    posterior: Any
    """`core.posterior.Posterior`."""
    labels: PanelLabels
    account: Any
    """Rows read, used and left out by reason."""
    problems: tuple[Problem, ...] = ()
    """What was changed in the data or is worth knowing about them."""
    products: tuple[str, ...] = ()
    """Products the run was restricted to, as asked for; empty: all."""
