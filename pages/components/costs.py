"""Say before a start what it would take, in memory and in time, or why it cannot be started."""

from __future__ import annotations

import streamlit as st

from core.errors import Problem, UserError
from core.inference.memory import FreeMemory, free_memory, gigabytes
from core.inference.plan import FitPlan
from core.inference.refusal import refuse_if_too_big
from core.panel import Panel
from core.runs.forecast import forecast
from pages.components.services import manager, settings


def show_cost(plan: FitPlan, panel: Panel, n_obs: int) -> tuple[Problem, ...]:
    """A sentence on memory and time; what keeps the plan from being started."""
    free = free_memory(plan.placement)
    try:
        estimate = refuse_if_too_big(plan, panel, free, settings().memory_share)
    except UserError as error:
        return error.problems
    time = forecast(plan, n_obs, manager().store.rows())
    needs = f"Takes about {gigabytes(estimate.total)} of {gigabytes(_room(free))} free memory, and {time}."
    st.caption(f"{needs} {estimate.remark}")
    return ()


def _room(free: FreeMemory) -> int:
    """Memory where the work is done: that of the GPUs together, or the host's."""
    return free.host if free.device is None else free.device * free.devices
