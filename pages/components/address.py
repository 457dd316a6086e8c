"""Keep the data set and the run in the address, so that a reload or a colleague lands in the same place."""

from __future__ import annotations

import streamlit as st

from pages.components.access import viewer
from pages.components.services import datasets, gone, snapshot, still_there
from pages.components.session import update, workspace

LOST = "lost"
SHORT = 12
"""Digits of a data set's id in the address; more than enough to tell those of one server apart."""


def follow_address() -> None:
    """Take over what the address names, where it differs from the tab (a link, a reload, the back button)."""
    data, run = st.query_params.get("data", ""), st.query_params.get("run", "")
    now = workspace()
    if data and not now.dataset.startswith(data):
        if known := known_dataset(data):
            update(dataset=known, run="")
        else:
            _lost("data set", "the demo market is shown instead")
    if run and run != workspace().run:
        if still_there(run):
            update(run=run, dataset=snapshot(run).dataset_id)
        else:
            _lost("run", "it may have been deleted")
    elif workspace().run and gone(workspace().run):
        update(run="")
        st.session_state[LOST] = "The run that was open here has been discarded" + (
            ", or is not shared with you any more." if viewer() else "."
        )
    write_address()


def known_dataset(start: str) -> str:
    """The id of a data set that starts so and may be seen by who asks; empty where there is none."""
    if len(start) < SHORT:
        return ""
    return next((info.id for info in datasets().list(viewer()) if info.id.startswith(start)), "")


def write_address() -> None:
    """Make the address name the tab's data set and run, at once and only where it does not: each is one to go back."""
    now, there = workspace(), st.query_params.to_dict()
    # A run names its data set: a link to the run alone says enough.
    data = "" if now.run and "data" not in there else now.dataset[:SHORT]
    named = {"data": data, "run": now.run}
    wanted = {name: value for name, value in named.items() if value}
    if {name: there[name] for name in named if name in there} != wanted:
        st.query_params.from_dict({**{name: value for name, value in there.items() if name not in named}, **wanted})


def work_on(**changes: str) -> None:
    """Change data set or run, in the tab and in the address."""
    update(**changes)
    write_address()


def _lost(what: str, instead: str) -> None:
    st.session_state[LOST] = f"The {what} in the address is not on this server any more; {instead}."


def show_lost() -> None:
    """Say once, on the page that is shown at last, what the address named in vain."""
    if words := st.session_state.pop(LOST, ""):
        st.warning(words, icon=":material/link_off:")
