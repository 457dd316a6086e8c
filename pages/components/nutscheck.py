"""Check a finished run with NUTS on a few products: choose them, see the cost, start, be led to the result."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import UserError
from core.runs.nutscheck import MOST, check_requests, cost_in_words, products_to_check
from pages.components.access import owner
from pages.components.actions import REFUSED, default_name, show_refusal
from pages.components.address import work_on
from pages.components.against import TITLE
from pages.components.errors import guard
from pages.components.services import manager, result, snapshot, still_there
from pages.components.states import state_badge
from pages.components.text import escaped

STARTED = "nuts-check"
"""Runs of the last check of this tab: the one to show first, and the one to hold it against."""
FOUND = 50
EVERY = "2s"


def check_with_nuts(run_id: str, table: pd.DataFrame) -> None:
    """The button and what opens under it."""
    with st.popover("Check with NUTS", icon=":material/rule:"):
        st.fragment(guard(_choose))(run_id, table[table["level"] == "product"])


def _choose(run_id: str, products: pd.DataFrame) -> None:
    run, key = result(run_id), f"to-check-{run_id}"
    doing = "the structured engine" if run.fit.plan.engine == "nuts" else "NUTS, which is exact but slow"
    st.markdown(f"Fits the market of a few products alone, as here and with {doing}, to compare the two.")
    chosen = st.session_state.get(key, products_to_check(products))
    text = st.text_input("Find products", type="search", key=f"{key}-find", placeholder="part of a name")
    found = products["product"][products["product"].str.contains(text or "", case=False, regex=False)].head(FOUND)
    chosen = st.multiselect(
        "Products", list(dict.fromkeys([*chosen, *found])), list(chosen), max_selections=MOST, key=key,
        help="To begin with those whose approximation is in doubt most (largest k-hat); all of a small market.",
    )  # fmt: skip
    if chosen:
        rows = products[products["product"].isin(chosen)]
        st.caption(escaped(cost_in_words(run, rows, manager().store.rows())))
    start = st.button("Start", key="start-check", type="primary", icon=":material/play_arrow:", disabled=not chosen)
    if start:
        _start(run_id, tuple(chosen))
        st.rerun()


def _start(run_id: str, products: tuple[str, ...]) -> None:
    run = result(run_id)
    try:
        requests = check_requests(
            run, products, lambda plan: default_name(run.dataset_id, plan), owner(), shared=not owner()
        )
        started = tuple(manager().submit(request) for request in requests)
    except UserError as error:
        st.session_state[REFUSED] = error.problems
        return
    st.session_state[STARTED] = (run_id, *started)[-2:]


def check_progress() -> None:
    """How far the check of this tab is, on a timer while it is; then the way to its result."""
    show_refusal()
    runs = st.session_state.get(STARTED, ())
    if not runs or not all(map(still_there, runs)):
        return
    busy = any(snapshot(run_id).state.active for run_id in runs)
    with st.container(border=True):
        st.fragment(guard(_progress), run_every=EVERY if busy else None)(runs, busy)
        if not busy:
            _result(runs)


def _progress(runs: tuple[str, ...], was_busy: bool) -> None:
    shown = [snapshot(run_id) for run_id in runs]
    if was_busy and not any(run.state.active for run in shown):
        st.rerun()
    for run in shown:
        st.markdown(f"{state_badge(run)} **{escaped(run.name)}** {escaped(run.outcome)}")
        if run.state.active:
            st.progress(run.share_done)


def _result(runs: tuple[str, ...]) -> None:
    with st.container(horizontal=True):
        if all(snapshot(run_id).usable for run_id in runs) and st.button(
            "Show side by side", key="show-check", type="primary", icon=":material/compare_arrows:"
        ):
            del st.session_state[STARTED]
            work_on(run=runs[0])
            st.session_state["picture"] = TITLE
            st.session_state[f"against-{runs[0]}"] = runs[1]
            st.rerun()
        if st.button("Close", key="close-check", type="tertiary"):
            del st.session_state[STARTED]
            st.rerun()
