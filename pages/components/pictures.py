"""Put a finished chart on a page in its own colours, its message in words and its numbers one click away."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import streamlit as st

from core.report.chart import Chart
from core.report.exports import to_csv
from core.report.palette import Theme
from pages.components.shelf import kept
from pages.components.text import escaped

MOST_ROWS = 1_000
"""Rows of a chart's data shown on the page; the download holds all of them."""


def theme() -> Theme:
    """Light or dark, as this tab shows it."""
    return "dark" if st.context.theme.type == "dark" else "light"


def kept_chart(key: str, ids: tuple[Hashable, ...], draw: Callable[[Theme], Chart]) -> Chart:
    """The chart that `key` and `ids` decide, drawn once in this tab's colours for all tabs; see `shelf.kept`."""
    shade = theme()
    return kept(f"chart {key}", (*ids, shade), lambda: _finished(draw(shade)))


def show_kept(key: str, ids: tuple[Hashable, ...], draw: Callable[[Theme], Chart]) -> None:
    """Show the same."""
    show_chart(kept_chart(key, ids, draw), key)


def _finished(chart: Chart) -> Chart:
    """The chart, its figure described once: Plotly copies every trace at each look, though nothing changes any more."""
    described = chart.figure.to_dict()
    chart.figure.to_dict = lambda: described
    return chart


def show_chart(chart: Chart, key: str) -> None:
    """The figure, its message, and its data. `key` names the chart on its page."""
    st.plotly_chart(chart.figure, theme=None, key=f"{key}-{theme()}", alt=chart.alt, config=PLOTLY)
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        st.caption(escaped(chart.alt), width="stretch")
        with st.popover("Data", icon=":material/table:", type="tertiary"):
            st.dataframe(chart.data.head(MOST_ROWS), hide_index=True, alt="The numbers of the chart", key=f"{key}-data")
            if len(chart.data) > MOST_ROWS:
                st.caption(f"The first {MOST_ROWS:,} of {len(chart.data):,} rows; the download holds all.")
            st.download_button(
                "Download CSV", lambda: to_csv(chart.data), f"{key}.csv", "text/csv", key=f"{key}-csv",
                icon=":material/download:", on_click="ignore",
            )  # fmt: skip


PLOTLY = {"displaylogo": False, "displayModeBar": "hover", "modeBarButtonsToRemove": ["select2d", "lasso2d"]}
