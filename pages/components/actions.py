"""Ask the run manager to do something from a button, and keep its refusal for the page to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core.errors import UserError
from core.inference.plan import FitPlan
from core.runs.requests import RunRequest
from pages.components.access import owner, viewer
from pages.components.address import work_on
from pages.components.forms import spoken
from pages.components.problems import show_problems
from pages.components.services import datasets, manager
from pages.components.session import roles_in_use, workspace
from pages.components.text import escaped

REFUSED = "refused"
FORWARD = "forward"


def attempt(action: Callable[..., Any], *given: Any) -> None:
    """Call `action(*given, viewer)`; what it refuses is shown by `show_refusal`. Made for `on_click`."""
    try:
        action(*given, viewer())
    except UserError as error:
        st.session_state[REFUSED] = error.problems


def show_refusal() -> None:
    """What the last button was refused, once."""
    if problems := st.session_state.pop(REFUSED, ()):
        show_problems(problems)


def start(plan: FitPlan, forward: bool = False) -> str:
    """Queue a fit of the data set in use and make it the run in use. `forward`: open its elasticities when it ends.

    Raises UserError where it cannot be queued.
    """
    now = workspace()
    request = RunRequest(
        now.dataset, roles_in_use(), now.choices, plan, name=default_name(now.dataset, plan), pinned=now.pinned,
        owner=owner(), shared=not owner(),
    )  # fmt: skip
    run_id = manager().submit(request)
    work_on(run=run_id)
    st.session_state[FORWARD] = run_id if forward else ""
    return run_id


def default_name(dataset: str, plan: FitPlan) -> str:
    """What a run is called until someone names it: data and engine; the list has the rest of the plan beside it."""
    engine = f"SVI, {plan.svi.guide}" if plan.engine == "svi" else spoken(plan.engine)
    return f"{datasets().info(dataset, viewer()).name} · {engine}, {spoken(plan.model.likelihood)}"


@st.dialog("Discard this run?")
def confirm_discard(run_id: str, name: str) -> None:
    """Ask before a run and everything it found is deleted."""
    st.markdown(f"**{escaped(name)}** and everything it has found so far will be deleted. There is no way back.")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="keep"):
            st.rerun()
        if st.button("Discard", key="discard-confirmed", type="primary", icon=":material/delete:"):
            attempt(manager().discard, run_id)
            if workspace().run == run_id:
                work_on(run="")
            st.rerun()
