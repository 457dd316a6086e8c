"""Draw one product: its cells with the demand curve, its posterior over its category's, its category's periods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.posterior.curve import DemandCurve, Observations
from core.posterior.densities import ProductDensities
from core.posterior.seasons import PeriodEffects
from core.posterior.summaries import UNIT_ELASTIC
from core.report import wording
from core.report.chart import Chart, blank, compact, dots, mark_unit_elastic, plain, sentence, thinned
from core.report.palette import Theme, colour, faint


def demand_figure(
    observations: Observations,
    curve: DemandCurve,
    name: str,
    periods: Sequence[str] = (),
    stores: Sequence[str] = (),
    theme: Theme = "light",
) -> Chart:
    """Observed cells as dots, expected units over price as a line with its band.

    The band is where expected demand lies; single weeks scatter more. `periods` and `stores` are the labels' names,
    for the hover text.
    """
    cells = _cells(observations, periods, stores)
    figure = blank(theme, "price", _unit(periods, stores), height=400)
    named = f"{wording.share(curve.mass)} interval"
    figure.add_traces(_band(curve.price, curve.lower, curve.upper, named, "product", theme))
    figure.add_trace(_observed(cells.iloc[thinned(len(cells))], theme))
    figure.add_trace(_expected(curve, theme))
    figure.update_yaxes(rangemode="tozero")
    line = pd.DataFrame(
        {"price": curve.price, "units": curve.mean, "lower": curve.lower, "upper": curve.upper, "part": "curve"}
    )
    data = pd.concat([cells.assign(part="observed"), line], ignore_index=True)
    return Chart(figure, _demand_words(cells, curve, name), data)


def _observed(cells: pd.DataFrame, theme: Theme) -> go.Scatter | go.Scattergl:
    return dots(len(cells))(
        x=compact(cells["price"]), y=compact(cells["units"]), mode="markers", name="observed",
        text=[plain(text) for text in cells["cell"]],
        hovertemplate="%{text}<br>price %{x:,.2f}, units %{y:,.0f}<extra></extra>",
        marker={"color": colour("quiet", theme), "size": 6, "opacity": 0.55},
    )  # fmt: skip


def _expected(curve: DemandCurve, theme: Theme) -> go.Scatter:
    return go.Scatter(
        x=curve.price, y=curve.mean, mode="lines", name="expected units",
        line={"color": colour("product", theme), "width": 2.5},
        hovertemplate="price %{x:,.2f}: %{y:,.1f} units expected<extra></extra>",
    )  # fmt: skip


def density_figure(densities: ProductDensities, name: str, category: str, theme: Theme = "light") -> Chart:
    """What is known about the product's elasticity, over how products of its category differ."""
    x = densities.elasticity
    figure = blank(theme, "elasticity, % units per % price", "density", height=320)
    figure.add_trace(
        go.Scatter(
            x=x, y=densities.category, mode="lines", name=f"products of {plain(category)}", fill="tozeroy",
            fillcolor=faint("category", theme), line={"color": colour("category", theme), "width": 1.5},
            hovertemplate="%{x:.2f}<extra></extra>",
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=x, y=densities.product, mode="lines", name=plain(name), fill="tozeroy",
            fillcolor=faint("product", theme), line={"color": colour("product", theme), "width": 2.5},
            hovertemplate="%{x:.2f}<extra></extra>",
        )
    )  # fmt: skip
    if x[0] < UNIT_ELASTIC < x[-1]:
        mark_unit_elastic(figure, theme, axis="x")
    figure.update_yaxes(showticklabels=False, showgrid=False, rangemode="tozero")
    data = pd.DataFrame({"elasticity": x, "product": densities.product, "category": densities.category})
    return Chart(figure, _density_words(densities, name, category), data)


def period_effects_figure(effects: PeriodEffects, category: str, theme: Theme = "light") -> Chart:
    """How many per cent more or less than usual a category sells in each period, at the same prices."""
    figure = blank(theme, "period", "% of usual units", height=320)
    periods = list(effects.periods)
    for trace in _band(
        periods, effects.lower, effects.upper, f"{wording.share(effects.mass)} interval", "category", theme
    ):
        figure.add_trace(trace)
    figure.add_trace(
        go.Scatter(
            x=periods, y=effects.mean, mode="lines", name=plain(category),
            line={"color": colour("category", theme), "width": 2},
            hovertemplate="%{x}: %{y:+.1f} %<extra></extra>",
        )
    )  # fmt: skip
    figure.add_hline(0, line_color=colour("quiet", theme), line_dash="dot", line_width=1)
    data = pd.DataFrame({"period": periods, "mean": effects.mean, "lower": effects.lower, "upper": effects.upper})
    low, high = int(np.argmin(effects.mean)), int(np.argmax(effects.mean))
    alt = (
        f"Sales of {category} by period at unchanged prices: from {effects.mean[low]:+.0f} % ({periods[low]})"
        f" to {effects.mean[high]:+.0f} % ({periods[high]}) of usual."
    )
    return Chart(figure, alt, data)


def _band(
    x: object, lower: object, upper: object, name: str, thing: str, theme: Theme
) -> tuple[go.Scatter, go.Scatter]:
    hidden = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    return (
        go.Scatter(x=x, y=lower, showlegend=False, **hidden),
        go.Scatter(x=x, y=upper, fill="tonexty", fillcolor=faint(thing, theme), name=name, **hidden),
    )


def _unit(periods: Sequence[str], stores: Sequence[str]) -> str:
    cell = " and ".join(word for word, names in (("store", stores), ("period", periods)) if names)
    return f"units per {cell or 'row'}"


def _cells(observations: Observations, periods: Sequence[str], stores: Sequence[str]) -> pd.DataFrame:
    def named(codes: np.ndarray, names: Sequence[str]) -> list[str]:
        return [names[code] if 0 <= code < len(names) else "" for code in codes]

    frame = pd.DataFrame(
        {
            "period": named(observations.period, periods),
            "store": named(observations.store, stores),
            "price": observations.price,
            "units": observations.units,
        }
    )
    both = [", ".join(part for part in pair if part) for pair in zip(frame["period"], frame["store"], strict=True)]
    return frame.assign(cell=both)


def _demand_words(cells: pd.DataFrame, curve: DemandCurve, name: str) -> str:
    middle = len(curve.price) // 2
    rise = np.log(curve.mean[-1] / curve.mean[0]) / np.log(curve.price[-1] / curve.price[0])
    return sentence(
        f"{name}: {wording.plural(len(cells), 'observation')} at prices from {wording.price(cells['price'].min())}"
        f" to {wording.price(cells['price'].max())}.",
        f"At {wording.price(curve.price[middle])} the model expects {wording.units(curve.mean[middle])} units"
        f" ({wording.units(curve.lower[middle])} to {wording.units(curve.upper[middle])},"
        f" {wording.share(curve.mass)} interval);",
        f"one per cent more price goes with about {rise:+.1f} % units.",
    )


def _density_words(densities: ProductDensities, name: str, category: str) -> str:
    product, products = (
        densities.elasticity[int(np.argmax(values))] for values in (densities.product, densities.category)
    )
    return (
        f"The elasticity of {name} is most plausibly near {wording.elasticity(float(product))};"
        f" products of {category} centre near {wording.elasticity(float(products))}."
    )
