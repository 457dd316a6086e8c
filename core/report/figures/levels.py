"""Draw elasticities of a whole market: categories as a forest, all products as a caterpillar, what pooling moved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.data.encoding import ONE_CATEGORY
from core.posterior.verdicts import VERDICTS
from core.report.chart import Chart, blank, compact, dots, mark_unit_elastic, plain, sentence, thinned
from core.report.palette import SYMBOLS, Theme, colour, faint
from core.report.tables import VERDICT_COLUMN
from core.report.wording import elasticity, plural, share

ELASTICITY = "elasticity, % units per % price"
LEVEL_WORDS = {"global": "market", "category": "category"}
MOST_CATEGORIES = 60
"""Categories of one forest: more cannot be read."""
FOREST_EDGES = 116
"""Pixels of a forest that are not rows."""
HALF_ROW = 0.6
MOST_BARS = 150
"""Products up to which every interval is drawn as a bar of its own; above, a band of typical intervals."""
BAND_BINS = 200
MIDDLE = (0.01, 0.99)
"""Own-data estimates between these quantiles decide the frame of the shrinkage view: a few are always wild."""


def forest(
    table: pd.DataFrame, mass: float = 0.9, theme: Theme = "light", truth: Mapping[str, float] | None = None
) -> Chart:
    """The market and its categories with intervals, most elastic at the bottom; of data without categories the market.

    `table` is an elasticity table; of more than 60 categories those with most rows are drawn. `truth` maps categories
    to known elasticities, and '' to the market's.
    """
    market = table[table["level"] == "global"]
    categories = table[table["level"] == "category"]
    if categories["category"].tolist() == [ONE_CATEGORY]:
        categories = categories.iloc[:0]
    drawn = categories.nlargest(MOST_CATEGORIES, "n_obs", keep="first").sort_values("mean", kind="stable")
    rows = pd.concat([drawn, market], ignore_index=True)
    figure = blank(theme, ELASTICITY, "", height=FOREST_EDGES + 26 * len(rows))
    for level in ("category", "global"):
        part = rows[rows["level"] == level]
        figure.add_trace(_interval_trace(part, part.index, level, mass, theme))
    if truth:
        known = rows["category"].map(truth)
        figure.add_trace(
            go.Scatter(
                x=known, y=rows.index, mode="markers", name="truth", hovertemplate="truth %{x:.2f}<extra></extra>",
                marker={"symbol": "line-ns-open", "size": 14, "color": colour("truth", theme), "line_width": 2},
            )
        )  # fmt: skip
        rows = rows.assign(truth=known)
    names = [plain(name) for name in rows["category"].where(rows["level"] == "category", "Market")]
    figure.update_yaxes(
        tickvals=rows.index.tolist(), ticktext=names, showgrid=False, range=[-HALF_ROW, len(rows) - 1 + HALF_ROW]
    )
    figure.update_layout(showlegend=bool(truth))
    mark_unit_elastic(figure, theme, axis="x")
    return Chart(figure, _forest_words(market, categories, len(drawn), mass), rows)


def caterpillar(products: pd.DataFrame, mass: float = 0.9, theme: Theme = "light") -> Chart:
    """All products, sorted by elasticity and coloured by verdict in WebGL, with a legend entry for each verdict.

    `products` is a product table. Up to 150 products carry their own interval; above, a band shows the typical
    interval of neighbours in rank and each product's own stands in its hover text. At most 20,000 points are drawn.
    """
    ordered = products.sort_values("mean", kind="stable", ignore_index=True)
    data = ordered.assign(rank=np.arange(1, len(ordered) + 1))
    drawn = data.iloc[thinned(len(data))]
    figure = blank(theme, "products, most elastic first", ELASTICITY, height=420)
    if len(drawn) > MOST_BARS:
        for trace in _band(drawn, mass, theme):
            figure.add_trace(trace)
    for name, verdict in VERDICTS.items():
        part = drawn[drawn[VERDICT_COLUMN] == name]
        if len(part):
            count = int((products[VERDICT_COLUMN] == name).sum())
            figure.add_trace(_verdict_trace(part, name, f"{verdict.label} ({count:,})", len(drawn), theme))
    figure.update_xaxes(tickformat=",d")
    mark_unit_elastic(figure, theme)
    return Chart(figure, _caterpillar_words(products, len(drawn)), data)


def shrinkage_view(products: pd.DataFrame, theme: Theme = "light") -> Chart:
    """Own-data estimate against pooled estimate: points on the dotted line stayed, flat clouds were pulled in."""
    known = products[products["own_estimate"].notna()].reset_index(drop=True)
    drawn = known.iloc[thinned(len(known))]
    figure = blank(theme, "own-data estimate", "pooled estimate", height=420)
    for name, verdict in VERDICTS.items():
        part = drawn[drawn[VERDICT_COLUMN] == name]
        if len(part):
            figure.add_trace(
                dots(len(drawn))(
                    x=compact(part["own_estimate"]), y=compact(part["mean"]), mode="markers", name=verdict.label,
                    text=[plain(product) for product in part["product"]],
                    hovertemplate="%{text}<br>own data %{x:.2f}, pooled %{y:.2f}<extra></extra>",
                    marker={"color": colour(name, theme), "symbol": SYMBOLS[name], "size": 6, "opacity": 0.7},
                )
            )  # fmt: skip
    if len(known):
        low, high = _frame(known)
        figure.add_trace(
            go.Scatter(
                x=[low, high], y=[low, high], mode="lines", name="no pooling", hoverinfo="skip",
                line={"color": colour("quiet", theme), "dash": "dot", "width": 1},
            )
        )  # fmt: skip
        figure.update_xaxes(range=[low, high])
    return Chart(figure, _shrinkage_words(products, known), known)


def _interval_trace(part: pd.DataFrame, at: pd.Index, level: str, mass: float, theme: Theme) -> go.Scatter:
    return go.Scatter(
        x=part["mean"], y=at, mode="markers", name=f"{LEVEL_WORDS[level]}, {share(mass)} interval",
        text=[elasticity(*row) for row in part[["mean", "lower", "upper"]].itertuples(index=False)],
        customdata=part["n_obs"],
        hovertemplate="%{text}<br>%{customdata:,} rows<extra></extra>",
        marker={"color": colour(level, theme), "size": 10, "symbol": "diamond" if level == "global" else "circle"},
        error_x={
            "type": "data", "symmetric": False, "array": part["upper"] - part["mean"],
            "arrayminus": part["mean"] - part["lower"], "color": colour(level, theme), "thickness": 2, "width": 0,
        },
    )  # fmt: skip


def _band(drawn: pd.DataFrame, mass: float, theme: Theme) -> tuple[go.Scatter, go.Scatter]:
    """Median bounds of equal bins of neighbours in rank."""
    bins = np.arange(len(drawn)) * BAND_BINS // len(drawn)
    middle = drawn.groupby(bins)[["rank", "lower", "upper"]].median()
    low = go.Scatter(
        x=compact(middle["rank"]), y=compact(middle["lower"]), mode="lines", line={"width": 0}, showlegend=False,
        hoverinfo="skip",
    )  # fmt: skip
    high = go.Scatter(
        x=compact(middle["rank"]), y=compact(middle["upper"]), mode="lines", line={"width": 0}, fill="tonexty",
        fillcolor=faint("quiet", theme, 0.25), name=f"typical {share(mass)} interval", hoverinfo="skip",
    )  # fmt: skip
    return low, high


def _verdict_trace(part: pd.DataFrame, name: str, label: str, total: int, theme: Theme) -> go.Scatter | go.Scattergl:
    bars = total <= MOST_BARS
    bounds = np.stack([compact(part["lower"]), compact(part["upper"])], axis=1)
    error = {
        "type": "data", "symmetric": False, "array": compact(part["upper"] - part["mean"]),
        "arrayminus": compact(part["mean"] - part["lower"]), "thickness": 1.5, "width": 0,
    }  # fmt: skip
    return dots(total)(
        x=np.asarray(part["rank"], np.int32), y=compact(part["mean"]), mode="markers", name=label,
        text=[plain(product) for product in part["product"]], customdata=bounds,
        hovertemplate="%{text}<br>%{y:.2f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<extra></extra>",
        marker={"color": colour(name, theme), "symbol": SYMBOLS[name], "size": 8 if bars else 4},
        error_y=error if bars else None,
    )  # fmt: skip


def _frame(known: pd.DataFrame) -> tuple[float, float]:
    """Where nearly all own-data estimates and all pooled ones lie."""
    low, high = known["own_estimate"].quantile(list(MIDDLE))
    low, high = min(low, known["mean"].min()), max(high, known["mean"].max())
    margin = 0.05 * (high - low) + 1e-3
    return float(low - margin), float(high + margin)


def _forest_words(market: pd.DataFrame, categories: pd.DataFrame, drawn: int, mass: float) -> str:
    overall = market.iloc[0]
    told = (
        f"Elasticity of the market {elasticity(overall['mean'], overall['lower'], overall['upper'])}"
        f" ({share(mass)} interval)."
    )
    if categories.empty:
        return told
    means = categories["mean"].to_numpy()
    low, high = categories.iloc[int(np.argmin(means))], categories.iloc[int(np.argmax(means))]
    return sentence(
        told,
        f"{plural(len(categories), 'category', 'categories')}, from"
        f" {low['category']} {elasticity(low['mean'], low['lower'], low['upper'])}"
        f" to {high['category']} {elasticity(high['mean'], high['lower'], high['upper'])}.",
        f"Drawn are the {drawn} with most rows." if drawn < len(categories) else "",
    )


def _caterpillar_words(products: pd.DataFrame, drawn: int) -> str:
    counts = products[VERDICT_COLUMN].value_counts()
    told = ", ".join(
        f"{counts[name]:,} {verdict.label.lower()}" for name, verdict in VERDICTS.items() if counts.get(name, 0)
    )
    low, middle, high = products["mean"].quantile([0.05, 0.5, 0.95])
    return sentence(
        f"Elasticities of {plural(len(products), 'product')}: {told}.",
        f"The middle one is {elasticity(middle)}; nine in ten lie between {elasticity(low)} and {elasticity(high)}.",
        f"{drawn:,} evenly spaced ones are drawn." if drawn < len(products) else "",
    )


def _shrinkage_words(products: pd.DataFrame, known: pd.DataFrame) -> str:
    if not len(known):
        return "No product has an estimate of its own: prices never change, or nothing was sold."
    low, high = _frame(known)
    outside = int((~known["own_estimate"].between(low, high)).sum())
    spread_own = known["own_estimate"].quantile(0.75) - known["own_estimate"].quantile(0.25)
    spread_pooled = known["mean"].quantile(0.75) - known["mean"].quantile(0.25)
    unknown = len(products) - len(known)
    return sentence(
        f"Pooling moved the middle product {share(known['shrinkage'].median())} of the way from its own-data estimate"
        f" to its category.",
        f"Half of the own-data estimates lie within {spread_own:.2f} of each other, half of the pooled ones within"
        f" {spread_pooled:.2f}.",
        f"{plural(outside, 'wild estimate')} lie outside the frame." if outside else "",
        f"{plural(unknown, 'product')} without an estimate of their own are not drawn." if unknown else "",
    )
