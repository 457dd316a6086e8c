"""Turn a stored run into what is shown of it: a snapshot, a line of the list, a plan in one line."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from core.errors import UserError
from core.inference.plan import FitPlan
from core.runs.requests import RunRequest, RunSummary
from core.runs.snapshots import PHASES, RESUMABLE, Progress, RunSnapshot, RunState
from core.runs.store import RunRow
from core.runs.values import from_text, unreadable


@lru_cache(maxsize=256)
def request_of(text: str) -> RunRequest:
    """The request behind a stored run. Raises UserError where it is damaged or another version wrote it."""
    request = from_text(text)
    if not isinstance(request, RunRequest):
        raise unreadable()
    return request


def snapshot_of(row: RunRow, progress: Progress, position: int = 0) -> RunSnapshot:
    """A run as a page sees it. Raises UserError where its plan was written by another version."""
    return RunSnapshot(
        **_as_stored(row),
        queue_position=position,
        plan=request_of(row.request).plan,
        phase=PHASES[row.phase][1] if row.state.at_work and row.phase in PHASES else "",
        n_obs=row.n_obs,
        progress=progress,
        steps_per_second=row.rate,
        elapsed=row.seconds,
        left=_left(row),
        memory_bytes=row.memory,
    )


def summary_of(row: RunRow, position: int = 0) -> RunSummary:
    """A run as a line of the list; never fails, whatever version wrote it."""
    return RunSummary(
        **_as_stored(row),
        queue_position=position,
        plan_line=_line(row),
        seconds=row.seconds,
        products=_products(row),
    )


AS_STORED = (
    "name", "owner", "shared", "note", "dataset_id", "dataset_name", "state", "steps_done", "steps_total", "loss",
    "outcome", "usable", "created",
)  # fmt: skip
"""What a snapshot and a line of the list show as the store has it, under the same name."""


def _as_stored(row: RunRow) -> dict[str, Any]:
    return {"run_id": row.id, "resumable": resumable(row), **{name: getattr(row, name) for name in AS_STORED}}


def plan_line(plan: FitPlan) -> str:
    """A plan in one line, as in 'SVI, AutoNormal, 2,000 steps; negative binomial; time effects by category; CPU'."""
    how = {
        "svi": f"SVI, {plan.svi.guide}, {plan.svi.loss}, {plan.svi.steps:,} steps",
        "nuts": f"NUTS, {plan.nuts.chains} chains of {plan.nuts.samples:,}",
    }.get(plan.engine, plan.engine)
    placement = plan.placement.replace("cpu", "CPU").replace("gpu", "GPU")
    return f"{how}; {LIKELIHOODS[plan.model.likelihood]}; {TIME_EFFECTS[plan.model.time_effects]}; {placement}"


LIKELIHOODS = {"negbin": "negative binomial", "poisson": "Poisson"}
TIME_EFFECTS = {
    "none": "no time effects",
    "shared": "time effects shared by the market",
    "category": "time effects by category",
}
"""Choices in the words of a plan's line."""


def steps_total(plan: FitPlan) -> int:
    """Most steps a plan may take, as its engine counts them."""
    totals = {
        "svi": plan.svi.steps,
        "structured": plan.structured.max_iterations,
        "nuts": plan.nuts.chains * (plan.nuts.warmup + plan.nuts.samples),
    }
    return totals[plan.engine]


def resumable(row: RunRow) -> bool:
    """Whether there is something left to do for it."""
    done = row.state is RunState.STOPPED and row.steps_done >= row.steps_total
    return row.state in RESUMABLE and not done


def _left(row: RunRow) -> float | None:
    if row.state is not RunState.RUNNING or row.rate <= 0:
        return None
    return max(0.0, (row.steps_total - row.steps_done) / row.rate)


def _products(row: RunRow) -> tuple[str, ...]:
    try:
        return request_of(row.request).products
    except UserError:
        return ()


def _line(row: RunRow) -> str:
    try:
        return plan_line(request_of(row.request).plan)
    except UserError:
        return "plan of another version"
