"""Draw what a run has shown so far with charts that change in place: thinned loss, intervals of what is watched.

A chart is a Vega-Lite specification, made once, with its numbers beside it: Altair checks a chart for longer than all
else of a look takes, and everybody who watches looks every second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import altair as alt
import pandas as pd

from core.inference.fit import Estimates
from core.report.palette import Theme, colour
from core.runs.curves import Curve
from core.runs.snapshots import Progress

HEIGHT = 330
MOST_CATEGORIES = 14
"""Categories drawn live; the page of elasticities draws all of them."""
KINDS = {"Market": "global", "Category": "category", "Product": "product"}
"""What is watched, and whose colour it has."""


type Drawing = dict[str, Any]
"""A Vega-Lite specification with its tables under `datasets`, for `st.vega_lite_chart`."""


def loss_chart(curve: Curve) -> Drawing:
    """The raw range, faint, and the running mean, strong."""
    raw = pd.DataFrame({"step": curve.step, "loss": curve.loss})
    smooth = pd.DataFrame({"step": curve.smooth_step, "loss": curve.smooth})
    return json.loads(_loss_lines()) | {"datasets": {"raw": raw, "smooth": smooth}}


@lru_cache(maxsize=1)
def _loss_lines() -> str:
    x = alt.X("step:Q", title="step", axis=alt.Axis(format=",d", tickCount=6))
    y = alt.Y("loss:Q", title="nats per observation", scale=alt.Scale(zero=False))
    raw = alt.Chart(alt.NamedData("raw")).mark_line(strokeWidth=1, opacity=0.35)
    smooth = alt.Chart(alt.NamedData("smooth")).mark_line(strokeWidth=2.5)
    return _described(alt.layer(raw.encode(x, y), smooth.encode(x, y)))


def estimate_rows(estimates: Estimates, progress: Progress, mass: float) -> pd.DataFrame:
    """Name, kind, mean and interval of everything that is watched live: market, pinned products, categories."""
    z = NormalDist().inv_cdf((1 + mass) / 2)
    rows = [("Market", "Market", estimates.global_mean, estimates.global_sd)]
    rows += _named(progress.pinned, "Product", estimates.pinned_mean, estimates.pinned_sd)
    rows += _named(progress.categories, "Category", estimates.category_mean, estimates.category_sd)[:MOST_CATEGORIES]
    frame = pd.DataFrame(rows, columns=["name", "kind", "mean", "sd"])
    return frame.assign(lower=frame["mean"] - z * frame["sd"], upper=frame["mean"] + z * frame["sd"])


def estimates_chart(rows: pd.DataFrame, theme: Theme) -> Drawing:
    """A dot and an interval for each row, in the order given."""
    # A product may be called like a category; both keep a row of their own.
    named = rows.assign(row=rows["kind"] + "\N{NO-BREAK SPACE}" + rows["name"])
    return json.loads(_intervals(theme)) | {"datasets": {"rows": named}}


@lru_cache(maxsize=2)
def _intervals(theme: Theme) -> str:
    base = alt.Chart(alt.NamedData("rows"))
    labels = alt.Axis(labelExpr="slice(datum.label, indexof(datum.label, '\N{NO-BREAK SPACE}') + 1)", labelLimit=160)
    y = alt.Y("row:N", sort=None, title=None, axis=labels)
    scale = alt.Scale(domain=list(KINDS), range=[colour(thing, theme) for thing in KINDS.values()])
    color = alt.Color("kind:N", legend=None, scale=scale)
    x = alt.X("lower:Q", title="elasticity", scale=alt.Scale(zero=False))
    bars = base.mark_rule(strokeWidth=2.5).encode(x, alt.X2("upper:Q"), y, color)
    dots = base.mark_circle(size=70, opacity=1).encode(alt.X("mean:Q"), y, color)
    return _described(alt.layer(bars, dots))


def _described(chart: alt.LayerChart) -> str:
    described = chart.properties(height=HEIGHT).to_dict()
    # The page's theme, not Altair's.
    described.pop("config", None)
    return json.dumps(described)


def _named(
    names: Iterable[str], kind: str, means: Iterable[float], sds: Iterable[float]
) -> list[tuple[str, str, float, float]]:
    return [(name, kind, float(mean), float(sd)) for name, mean, sd in zip(names, means, sds, strict=False)]
