"""Draw the posterior of an ended run again: because its kept result is lost, or with other draws or intervals."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.inference.plan import FitPlan
from core.runs.requests import RunSummary
from core.runs.results import LOST
from pages.components.actions import FORWARD, attempt, show_refusal
from pages.components.address import work_on
from pages.components.forms import show_fields
from pages.components.navigation import page
from pages.components.problems import show_problems
from pages.components.services import manager, result, snapshot

FIELDS = ("draws", "mass")


def require_result(run_id: str) -> None:
    """Go on only with a result that can be opened; where it is lost, say so and offer to draw it again."""
    try:
        result(run_id)
    except UserError as error:
        if error.problems[0].code not in LOST:
            raise
        _lost(run_id, error)
        st.stop()


def _lost(run_id: str, error: UserError) -> None:
    show_refusal()
    if (run := snapshot(run_id)).state.active:
        st.info("Its posterior is being drawn again.", icon=":material/casino:")
        st.page_link(page("model"), label="Watch it", icon=":material/visibility:")
        return
    show_problems(error.problems)
    if st.button("Draw again", type="primary", icon=":material/casino:", key="redraw"):
        attempt(manager().redraw, run_id, None, None)
        work_on(dataset=run.dataset_id, run=run_id)
        st.session_state[FORWARD] = run_id
        st.switch_page(page("model"))


def draw_again(run: RunSummary) -> None:
    """A form with the number of draws and the interval; nothing is fitted again."""
    plan = snapshot(run.run_id).plan
    with st.popover("Draw again", icon=":material/casino:"), st.form(f"redraw-{run.run_id}", border=False):
        now = {name: getattr(plan, name) for name in FIELDS}
        wanted = show_fields(FitPlan, FIELDS, now, f"redraw-{run.run_id}", columns=2)
        if st.form_submit_button("Draw"):
            attempt(manager().redraw, run.run_id, wanted["draws"], wanted["mass"])
            st.rerun()
