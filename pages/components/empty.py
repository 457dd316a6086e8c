"""Say what to do next where there is nothing to show yet."""

from __future__ import annotations

import streamlit as st

from pages.components.navigation import page


def empty_state(title: str, text: str, icon: str, label: str, target: str) -> None:
    """A quiet box: what is missing, and the one step that mends it."""
    with st.container(border=True, horizontal_alignment="center", gap="small"):
        st.space("small")
        st.markdown(f"### {icon} {title}", text_alignment="center")
        st.markdown(text, text_alignment="center")
        if st.button(label, type="primary", key=f"empty-{target}"):
            st.switch_page(page(target))
        st.space("small")


def nothing_to_fit(text: str = "Choose a data set first: the demo market is ready, or upload your own sales.") -> None:
    """For the model page without usable data."""
    empty_state("Nothing to fit yet", text, ":material/table_chart:", "Go to the data", "data")


def nothing_learned() -> None:
    """For the page of elasticities without a finished run."""
    text = "Fit a market first. The demo market takes a few seconds and shows its known truth beside the estimates."
    empty_state("No elasticities yet", text, ":material/show_chart:", "Go to the data", "data")


def nothing_done() -> None:
    """For the list of runs on a new installation."""
    text = "Every fit you start is kept here, with its plan, its losses and its result, until you delete it."
    empty_state("No runs yet", text, ":material/history:", "Go to the data", "data")
