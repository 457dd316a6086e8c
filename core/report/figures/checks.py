"""Draw how far a posterior can be trusted: truth against estimate, z scores, intervals promised and kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import norm

from core.posterior.accuracy import rms
from core.posterior.recovery import Recovery, width_verdict
from core.report.chart import Chart, blank, compact, dots, plain, sentence, thinned
from core.report.palette import Theme, colour, faint
from core.report.wording import plural, share

Z_EDGE = 4.0
Z_BINS = 32
MEMBERS = {
    "global": ("market", "markets"),
    "category": ("category", "categories"),
    "product": ("product", "products"),
}


def truth_scatter(table: pd.DataFrame, truth: np.ndarray, theme: Theme = "light") -> Chart:
    """Known elasticity against estimate with its interval, for the rows of `table` in their order."""
    data = table[["category", "product", "mean", "lower", "upper"]].assign(truth=np.asarray(truth, float))
    data = data[data["truth"].notna()].reset_index(drop=True)
    data["inside"] = data["truth"].between(data["lower"], data["upper"])
    drawn = data.iloc[thinned(len(data))]
    figure = blank(theme, "true elasticity", "estimate", height=420)
    for inside, thing, name in ((True, "product", "interval holds the truth"), (False, "inelastic", "interval misses")):
        part = drawn[drawn["inside"] == inside]
        figure.add_trace(
            dots(len(drawn))(
                x=compact(part["truth"]), y=compact(part["mean"]), mode="markers", name=name,
                text=[plain(name) for name in part["product"]],
                customdata=np.stack([compact(part["lower"]), compact(part["upper"])], axis=1),
                hovertemplate="%{text}<br>truth %{x:.2f}, estimate %{y:.2f}"
                " [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<extra></extra>",
                marker={"color": colour(thing, theme), "size": 5, "opacity": 0.7,
                        "symbol": "circle" if inside else "diamond"},
            )
        )  # fmt: skip
    edge = [float(data["truth"].min()), float(data["truth"].max())] if len(data) else [-3.0, 0.0]
    figure.add_trace(
        go.Scatter(
            x=edge, y=edge, mode="lines", name="truth", hoverinfo="skip",
            line={"color": colour("truth", theme), "dash": "dot", "width": 1.5},
        )
    )  # fmt: skip
    rmse = rms((data["mean"] - data["truth"]).to_numpy())
    alt = (
        f"Estimates against known elasticities of {plural(len(data), 'product')}: typical error {rmse:.2f};"
        f" {share(float(data['inside'].mean()))} of the intervals hold the truth."
    )
    return Chart(figure, alt, data)


def z_histogram(recovery: Recovery, theme: Theme = "light") -> Chart:
    """Errors in units of their own sd, over the standard normal that a calibrated posterior gives."""
    z = recovery.z[np.isfinite(recovery.z)]
    edges = np.linspace(-Z_EDGE, Z_EDGE, Z_BINS + 1)
    counts, _ = np.histogram(np.clip(z, -Z_EDGE, Z_EDGE), edges)
    middle, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    density = counts / max(1, len(z)) / width
    figure = blank(theme, "(estimate − truth) / posterior sd", "density", height=320)
    figure.add_trace(
        go.Bar(x=middle, y=density, width=width, name=recovery.level, marker_color=faint("product", theme, 0.6))
    )
    figure.add_trace(
        go.Scatter(x=edges, y=norm.pdf(edges), mode="lines", name="calibrated", line={"color": colour("truth", theme)})
    )
    spread = float(np.std(z)) if len(z) else float("nan")
    alt = (
        f"z scores of {plural(len(z), *MEMBERS[recovery.level])}: sd {spread:.2f}, where 1 is expected. Of the 90 %"
        f" intervals {share(recovery.coverage[0.9])} hold the truth: {width_verdict(recovery)}."
    )
    return Chart(figure, alt, pd.DataFrame({"z": middle, "density": density, "count": counts}))


def coverage_chart(coverage: Mapping[float, float], what: str, theme: Theme = "light") -> Chart:
    """Share inside intervals against the mass they promise; on the dotted line they keep it. `what` names the insides,
    as in 'cells' or 'true elasticities'."""
    mass = np.array(sorted(coverage))
    inside = np.array([coverage[value] for value in mass])
    figure = blank(theme, "promised", "inside", height=320)
    figure.add_trace(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", name="calibrated", hoverinfo="skip",
            line={"color": colour("truth", theme), "dash": "dot"},
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=mass, y=inside, mode="lines+markers", name=what, line={"color": colour("product", theme)},
            hovertemplate="promised %{x:.0%}, inside %{y:.1%}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_xaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    told = ", ".join(
        f"{100 * part:.1f} % inside {share(promised)} intervals" for promised, part in zip(mass, inside, strict=True)
    )
    return Chart(figure, sentence(f"Of the {what}:", told + "."), pd.DataFrame({"mass": mass, "inside": inside}))
