"""Say on every page which data set and run are in use, what the machine has to give, and who is signed in."""

from __future__ import annotations

import os

import streamlit as st

from core.environment import free_memory_bytes, resident_bytes
from core.errors import UserError
from core.report.wording import plural, size
from core.runs.snapshots import RunSnapshot
from core.runs.views import plan_line
from pages.components.access import auth_configured, owner, viewer
from pages.components.errors import guard
from pages.components.navigation import page
from pages.components.services import datasets, gone, snapshot
from pages.components.session import workspace
from pages.components.states import state_badge
from pages.components.text import escaped


def draw_sidebar() -> None:
    """Data set, run and machine; on a timer of its own only while the run is active."""
    with st.sidebar:
        _data()
        run = _run()
        every = "3s" if run is not None and run.state.active else None
        st.fragment(guard(_state), run_every=every)(run.run_id if run else "")
        _person()


def _data() -> None:
    st.caption("DATA SET")
    if not workspace().dataset:
        st.markdown("None yet")
        return
    try:
        info = datasets().info(workspace().dataset, viewer())
    except UserError:
        st.markdown("Not on this server any more")
        return
    st.markdown(f"**{escaped(info.name)}**  \n{info.rows:,} rows · {size(info.bytes)}")


def _run() -> RunSnapshot | None:
    st.caption("RUN")
    if not workspace().run:
        st.markdown("None yet")
        return None
    try:
        run = snapshot(workspace().run)
    except UserError:
        st.markdown("Not on this server any more")
        return None
    plan = plan_line(run.plan)
    st.markdown(f"**{escaped(run.name)}**" + ("" if plan in run.name else f"  \n{escaped(plan)}"))
    return run


def _state(run_id: str) -> None:
    if run_id:
        if gone(run_id):
            st.rerun()
        run = snapshot(run_id)
        done = f" {run.share_done:.0%}" if run.state.at_work and run.share_done else ""
        st.markdown(state_badge(run) + done)
        if run.state.active:
            st.page_link(page("model"), label="Watch it", icon=":material/visibility:")
    st.caption("MACHINE")
    st.markdown(
        f"{plural(os.cpu_count() or 1, 'core')} · {size(free_memory_bytes())} free  \n"
        f"{size(resident_bytes())} of memory in use here"
    )


def _person() -> None:
    if auth_configured():
        st.caption("SIGNED IN")
        st.markdown(escaped(owner()))
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)
