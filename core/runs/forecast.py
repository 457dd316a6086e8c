"""Say before a fit starts about how long it will take: by the latest fit of its kind here, else by typical figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.errors import UserError
from core.inference.plan import FitPlan
from core.report.wording import seconds as in_words
from core.runs.store import RunRow
from core.runs.views import request_of, steps_total

STRUCTURED_STEPS = 20
"""Outer iterations that the structured engine usually takes; its plan only says where it gives up."""


@dataclass(frozen=True)
class Pace:
    """Seconds that do not depend on the data (compiling, drawing), and seconds per observation and step."""

    fixed: float
    per_cell: float


TYPICAL = {
    ("structured", "poisson"): Pace(8.0, 2e-6),
    ("structured", "negbin"): Pace(10.0, 12e-6),
    ("svi", "poisson"): Pace(8.0, 4e-9),
    ("svi", "negbin"): Pace(8.0, 10e-9),
    ("nuts", "poisson"): Pace(20.0, 0.3e-6),
    ("nuts", "negbin"): Pace(20.0, 0.7e-6),
}
"""On two CPU cores, for one particle; right within a factor of three, which is what a first fit needs to know."""


@dataclass(frozen=True)
class Forecast:
    """`seconds` from start to result; `measured` where a fit of the same kind has run on this installation."""

    seconds: float
    measured: bool

    def __str__(self) -> str:
        basis = "judging by the last fit of its kind here" if self.measured else "on two cores"
        return f"about {in_words(self.seconds)}, {basis}"


def forecast(plan: FitPlan, n_obs: int, earlier: Iterable[RunRow]) -> Forecast:
    """How long `plan` takes on `n_obs` observations; `earlier` are the runs of this installation, newest first."""
    for row in earlier:
        if row.usable and row.rate > 0 and row.n_obs > 0 and _is_like(row, plan):
            fixed = max(0.0, row.seconds - row.steps_done / row.rate)
            steps = row.steps_done if plan.engine == "structured" else steps_total(plan)
            return Forecast(fixed + steps * n_obs / row.n_obs / row.rate, measured=True)
    pace = TYPICAL[plan.engine, plan.model.likelihood]
    steps = STRUCTURED_STEPS if plan.engine == "structured" else steps_total(plan)
    particles = plan.svi.particles if plan.engine == "svi" else 1
    return Forecast(pace.fixed + steps * n_obs * particles * pace.per_cell, measured=False)


def _is_like(row: RunRow, plan: FitPlan) -> bool:
    """Whether a run was of the plan's kind; a plan that another version wrote is of none."""
    try:
        return _kind(request_of(row.request).plan) == _kind(plan)
    except UserError:
        return False


def _kind(plan: FitPlan) -> tuple[object, ...]:
    """Plans of one kind cost the same per observation and step."""
    svi = (plan.svi.guide, plan.svi.loss, plan.svi.particles) if plan.engine == "svi" else ()
    return (plan.engine, plan.model.likelihood, plan.model.time_effects, plan.placement, *svi)
