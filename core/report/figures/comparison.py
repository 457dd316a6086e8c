"""Draw runs side by side: elasticities of one against those of another, and losses of several."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.report.chart import Chart, blank, compact, plain, thinned
from core.report.palette import Theme, colour
from core.report.wording import loss, plural

RUN_THINGS = ("elastic", "inelastic", "category", "product", "truth")
"""Whose colours stand for the first to the fifth run."""


def compare_runs(compared: pd.DataFrame, first: str, second: str, theme: Theme = "light") -> Chart:
    """Products of two runs against each other. `compared` is the table of `core.report.tables.compare_tables`."""
    products = compared[compared["level"] == "product"].reset_index(drop=True)
    drawn = products.iloc[thinned(len(products))]
    figure = blank(theme, f"elasticity, {plain(first)}", f"elasticity, {plain(second)}", height=420)
    figure.add_trace(
        go.Scattergl(
            x=compact(drawn["mean_first"]), y=compact(drawn["mean_second"]), mode="markers", name="products",
            text=[plain(name) for name in drawn["product"]],
            hovertemplate="%{text}<br>%{x:.2f} and %{y:.2f}<extra></extra>",
            marker={"color": colour("product", theme), "size": 5, "opacity": 0.7},
        )
    )  # fmt: skip
    both = products[["mean_first", "mean_second"]]
    if len(products):
        edge = [float(both.to_numpy().min()), float(both.to_numpy().max())]
        figure.add_trace(
            go.Scatter(
                x=edge, y=edge, mode="lines", name="equal", hoverinfo="skip",
                line={"color": colour("quiet", theme), "dash": "dot", "width": 1},
            )
        )  # fmt: skip
    figure.update_layout(showlegend=False)
    return Chart(figure, _words(products, first, second), compared)


def loss_curves(curves: Mapping[str, pd.DataFrame], theme: Theme = "light") -> Chart:
    """Losses per observation of up to five runs; each frame has columns step and loss, thinned already."""
    figure = blank(theme, "step", "loss per observation, nats", height=340)
    for thing, (name, curve) in zip(RUN_THINGS, curves.items(), strict=False):
        figure.add_trace(
            go.Scatter(
                x=curve["step"], y=compact(curve["loss"]), mode="lines", name=plain(name),
                line={"color": colour(thing, theme), "width": 1.5},
            )
        )  # fmt: skip
    data = pd.concat([curve.assign(run=name) for name, curve in curves.items()], ignore_index=True)
    ends = ", ".join(f"{name} {loss(float(curve['loss'].iloc[-1]))}" for name, curve in curves.items() if len(curve))
    return Chart(figure, f"Loss per observation at the end: {ends}.", data)


def _words(products: pd.DataFrame, first: str, second: str) -> str:
    if not len(products):
        return f"{first} and {second} have no product in common."
    far = products.iloc[int(np.argmax(products["difference"].abs().to_numpy()))]
    typical = float(np.median(products["difference"].abs()))
    return (
        f"{plural(len(products), 'product')} in both {first} and {second}: the elasticities typically differ by"
        f" {typical:.2f}, most for {far['product']} ({far['mean_first']:.2f} and {far['mean_second']:.2f})."
    )
