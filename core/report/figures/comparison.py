"""Draw runs side by side: elasticities of one against those of another, and losses of several."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.report.chart import Chart, blank, compact, dots, plain, thinned
from core.report.palette import Theme, colour
from core.report.wording import loss, plural

RUN_THINGS = ("elastic", "inelastic", "category", "product", "truth")
"""Whose colours stand for the first to the fifth run."""


def compare_runs(compared: pd.DataFrame, first: str, second: str, theme: Theme = "light") -> Chart:
    """Products of two runs against each other; `compared` is the table of `core.report.comparison.side_by_side`."""
    means = [f"{run}: mean" for run in (first, second)]
    products = compared[compared["level"] == "product"].dropna(subset=means).reset_index(drop=True)
    drawn = products.iloc[thinned(len(products))]
    x, y = (compact(drawn[mean]) for mean in means)
    figure = blank(theme, f"elasticity, {plain(first)}", f"elasticity, {plain(second)}", height=420)
    figure.add_trace(
        dots(len(drawn))(
            x=x, y=y, mode="markers", name="products", text=[plain(name) for name in drawn["product"]],
            hovertemplate="%{text}<br>%{x:.2f} and %{y:.2f}<extra></extra>",
            marker={"color": colour("product", theme), "size": 5, "opacity": 0.7},
        )
    )  # fmt: skip
    if len(products):
        edge = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
        figure.add_trace(
            go.Scatter(
                x=edge, y=edge, mode="lines", name="equal", hoverinfo="skip",
                line={"color": colour("quiet", theme), "dash": "dot", "width": 1},
            )
        )  # fmt: skip
    figure.update_layout(showlegend=False)
    return Chart(figure, _words(products, first, second), products)


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
    one, other = (products[f"{run}: mean"].to_numpy() for run in (first, second))
    difference = np.abs(other - one)
    far = int(np.argmax(difference))
    return (
        f"{plural(len(products), 'product')} in both {first} and {second}: the elasticities typically differ by"
        f" {np.median(difference):.2f}, most for {products['product'].iloc[far]} ({one[far]:.2f} and {other[far]:.2f})."
    )
