"""A finished picture: the figure, its message in words, and the numbers it draws."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.posterior.summaries import UNIT_ELASTIC
from core.report.palette import Theme, colour

MOST_POINTS = 20_000
"""Most marks that one trace draws; more are thinned evenly and the alt text says so."""
WEBGL_POINTS = 1_500
"""Marks from which WebGL draws a trace: browsers allow a page about 16 WebGL contexts, and a figure takes three."""
LONGEST_NAME = 32
TOP_WITH_LABEL = 62
"""Pixels above a frame with a legend and, under it, the label of a vertical line."""


@dataclass(frozen=True)
class Chart:
    """`figure` to show with the page's own theme off, `alt` for readers who do not see it, `data` one click away."""

    figure: go.Figure
    alt: str
    data: pd.DataFrame


def blank(theme: Theme, x: str, y: str, height: int = 380) -> go.Figure:
    """An empty figure on transparent ground in the colours of `theme`, with axis titles."""
    ink, quiet, grid = (colour(name, theme) for name in ("ink", "quiet", "grid"))
    axis = {
        "gridcolor": grid,
        "linecolor": grid,
        "zeroline": False,
        "title": {"font": {"color": quiet, "size": 13}},
        "tickfont": {"color": quiet},
    }
    figure = go.Figure(
        layout=go.Layout(
            template="plotly_dark" if theme == "dark" else "plotly_white",
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font={"color": ink, "size": 13},
            margin={"l": 60, "r": 20, "t": 36, "b": 48},
            height=height,
            xaxis=axis,
            yaxis=axis,
            legend={
                "orientation": "h",
                "y": 1.02,
                "yanchor": "bottom",
                "x": 0,
                "font": {"color": ink},
                "traceorder": "normal",
            },
            hoverlabel={"font": {"size": 13}},
        )
    )
    figure.update_xaxes(title_text=x)
    figure.update_yaxes(title_text=y)
    return figure


def mark_unit_elastic(figure: go.Figure, theme: Theme, axis: str = "y") -> None:
    """A dotted line at -1, where a price change leaves revenue as it is."""
    style = {"line_color": colour("quiet", theme), "line_dash": "dot", "line_width": 1}
    words, shade = "−1: revenue unchanged", colour("quiet", theme)
    if axis == "y":
        figure.add_hline(
            UNIT_ELASTIC, annotation_position="top left", annotation_text=words, annotation_font_color=shade, **style
        )
        return
    figure.add_vline(UNIT_ELASTIC, **style)
    # Above the frame, clear of the marks; the legend goes above it.
    figure.add_annotation(
        x=UNIT_ELASTIC, y=1.0, yref="paper", xanchor="right", yanchor="bottom", text=words, font={"color": shade},
        showarrow=False,
    )  # fmt: skip
    figure.update_layout(margin_t=TOP_WITH_LABEL, legend={"yref": "container", "y": 1.0, "yanchor": "top"})


def plain(name: str) -> str:
    """A name from a file, made harmless for Plotly's markup and short enough for an axis."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return html.escape(short, quote=False)


def dots(total: int) -> type[go.Scatter] | type[go.Scattergl]:
    """The kind of trace for a figure of `total` marks."""
    return go.Scattergl if total > WEBGL_POINTS else go.Scatter


def thinned(size: int, most: int = MOST_POINTS) -> np.ndarray:
    """At most `most` evenly spaced indices of `size` things, first and last among them."""
    if size <= most:
        return np.arange(size)
    return np.unique(np.linspace(0, size - 1, most).astype(np.int64))


def compact(values: object) -> np.ndarray:
    """Float32, which Plotly sends as four bytes a number."""
    return np.asarray(values, dtype=np.float32)


def sentence(*parts: str) -> str:
    """Parts that say something, joined by spaces."""
    return " ".join(part for part in parts if part)
