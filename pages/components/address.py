"""Keep the data set and the run in the address, so that a reload or a colleague lands in the same place."""

from __future__ import annotations

import streamlit as st

from pages.components.session import update, workspace

NAMES = ("data", "run")


def follow_address() -> None:
    """Take over what the address names, where it differs from the tab (a link, a reload, the back button)."""
    given = {name: st.query_params.get(name, "") for name in NAMES}
    if any(given.values()):
        now = workspace()
        if (given["data"] or now.dataset, given["run"]) != (now.dataset, now.run):
            update(dataset=given["data"] or now.dataset, run=given["run"])
    write_address()


def write_address() -> None:
    """Make the address name the tab's data set and run."""
    now = workspace()
    wanted = {name: value for name, value in zip(NAMES, (now.dataset, now.run), strict=True) if value}
    if {name: st.query_params.get(name) for name in NAMES if name in st.query_params} != wanted:
        for name in NAMES:
            if name in st.query_params and name not in wanted:
                del st.query_params[name]
        st.query_params.update(wanted)


def work_on(**changes: str) -> None:
    """Change data set or run, in the tab and in the address."""
    update(**changes)
    write_address()
