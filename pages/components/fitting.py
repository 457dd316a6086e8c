"""Start from the data page: the default fit at one click, or the way to every choice."""

from __future__ import annotations

import streamlit as st

from core.errors import UserError
from core.inference.plan import FitPlan
from pages.components.actions import start
from pages.components.address import work_on
from pages.components.navigation import page
from pages.components.problems import show_problems


def fit_buttons(ready: bool) -> None:
    """The page's one primary action, and the detour; both wait for data that passed the check."""
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Choose the model", icon=":material/tune:", disabled=not ready, key="choose-model"):
            work_on(run="")
            st.switch_page(page("model"))
        fit = st.button(
            "Fit with the defaults", type="primary", icon=":material/play_arrow:", disabled=not ready, key="fit",
            help="Negative binomial, time effects by category, structured engine: right for most files.",
        )  # fmt: skip
    if fit:
        try:
            start(FitPlan(), forward=True)
        except UserError as error:
            show_problems(error.problems)
        else:
            st.switch_page(page("model"))
