"""Say before a start what it would take, in memory and in time, or why it cannot be started."""

from __future__ import annotations

import streamlit as st

from core.environment import free_memory_bytes
from core.errors import Problem, UserError
from core.inference.memory import gigabytes, refuse_if_too_big
from core.inference.plan import FitPlan
from core.panel import Panel
from core.runs.forecast import forecast
from pages.components.services import manager


def show_cost(plan: FitPlan, panel: Panel, n_obs: int) -> tuple[Problem, ...]:
    """A sentence on memory and time; what keeps the plan from being started."""
    free = free_memory_bytes()
    try:
        estimate = refuse_if_too_big(plan, panel, free)
    except UserError as error:
        return error.problems
    time = forecast(plan, n_obs, manager().store.rows())
    st.caption(f"Takes about {gigabytes(estimate.total)} of {gigabytes(free)} free memory, and {time}.")
    return ()
