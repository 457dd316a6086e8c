"""Draw a report: times faster, accuracy against time, seconds against rows. Finished numbers in, Charts out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import mode

import pandas as pd
import plotly.graph_objects as go

from core.benchmark.cases import BATCH_PRODUCTS, batch_variant
from core.benchmark.published import PUBLISHED
from core.benchmark.ratios import BASELINES, Speedup, speedups
from core.benchmark.records import Record, Report, best_earlier, compare
from core.benchmark.wording import accuracy_words, label_of, scaling_words, speedup_words, times_text
from core.report.chart import Chart, blank
from core.report.palette import Theme, colour

THINGS: dict[str, str] = {
    "article": "uncertain",
    "article-fused": "prior",
    "article-extrapolated": "uncertain",
    "panel": "elastic",
    "svi": "elastic",
    "svi-lowrank": "product",
    "live": "elastic",
    "fused": "prior",
    "structured": "category",
    "structured-fixed": "no variation",
    "all-products": "elastic",
    **{batch_variant("minibatch", size): "category" for size in BATCH_PRODUCTS},
    **{batch_variant("streamed", size): "product" for size in BATCH_PRODUCTS},
    "nuts": "truth",
    "numpyro-progress-bar": "uncertain",
    "numpyro-scan": "inelastic",
}
"""Whose colour of the palette each variant wears: the article grey, our SVI blue, the structured engine green."""
SYMBOLS = {"structured": "diamond", "structured-fixed": "diamond-tall", "nuts": "star", "svi-lowrank": "square"}
BAR_HEIGHT = 30
NUMBER_SHARE = 0.15
"""Part of a chart's width that the number beside a bar takes."""


def speedup_bars(records: Sequence[Record], case: str, theme: Theme = "light") -> Chart:
    """Times faster than the case's baseline on the CPU, on a log scale; the baseline itself is the bar at 1."""
    found = [speedup for speedup in speedups(records) if speedup.record.case == case]
    data = pd.DataFrame(
        [_speedup_row(speedup) for speedup in found],
        columns=["what", "rows", "variant", "times faster", "seconds", "of", "baseline"],
    )
    baseline = BASELINES.get(case, "")
    figure = blank(theme, f"times faster than {baseline} on the CPU", "", height=90 + BAR_HEIGHT * max(len(data), 2))
    for variant, part in data.groupby("variant", sort=False):
        figure.add_trace(
            go.Bar(
                y=_rows_named(part), x=part["times faster"] - 1.0, base=1.0, orientation="h",
                name=str(variant), marker_color=colour(THINGS[str(variant)], theme), showlegend=False,
                text=part["times faster"].map(times_text), textposition="outside", cliponaxis=False,
                customdata=part[["of", "baseline", "times faster"]],
                hovertemplate="%{y}<br>%{customdata[2]:.3g} times faster than %{customdata[1]}, %{customdata[0]}"
                "<extra></extra>",
            )
        )  # fmt: skip
    figure.add_vline(1.0, line_color=colour("quiet", theme), line_width=1)
    if len(data):
        figure.update_xaxes(type="log", dtick=1, range=_roomy(data["times faster"], 1.0))
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    figure.update_layout(bargap=0.25)
    return Chart(figure, speedup_words(found, baseline), data)


def _roomy(values: pd.Series, base: float) -> list[float]:
    """Ends of a log axis with room for a number beyond each bar: on hatching and grey it could not be read."""
    low, high = math.log10(min(values.min(), base)), math.log10(max(values.max(), base))
    room = 0.2 + NUMBER_SHARE * (high - low)
    return [low - room, high + room]


def _rows_named(part: pd.DataFrame) -> pd.Series:
    """Names of bars: what ran, and on how many rows."""
    return part["what"] + " · " + part["rows"].map("{:,} rows".format)


def _speedup_row(speedup: Speedup) -> tuple[object, ...]:
    record, baseline = speedup.record, label_of(speedup.baseline)
    return (
        label_of(record), record.n_obs, record.variant, speedup.times, speedup.seconds, speedup.what, baseline,
    )  # fmt: skip


def accuracy_chart(records: Iterable[Record], theme: Theme = "light") -> Chart:
    """Error against seconds for whole fits of the largest market; a dotted line where the article's steps would end."""
    timed = [record for record in records if record.case == "posterior" and record.success]
    largest = max((record.n_obs for record in timed), default=0)
    timed = [record for record in timed if record.n_obs == largest]
    fits = [record for record in timed if "rmse_to_truth" in record.accuracy]
    data = pd.DataFrame(
        [_accuracy_row(record) for record in fits],
        columns=["what", "variant", "seconds", "error", "cover 90 %", "steps"],
    )
    figure = blank(theme, "seconds, compilation included (log scale)", "error of elasticities (RMSE)", height=420)
    for variant, part in data.groupby("variant", sort=False):
        figure.add_trace(
            go.Scatter(
                x=part["seconds"], y=part["error"], mode="lines+markers",
                name=str(variant), customdata=part[["what", "cover 90 %", "steps"]],
                hovertemplate="%{customdata[0]}<br>%{x:.3g} s, error %{y:.3f}<br>90 % intervals hold "
                "%{customdata[1]:.1%}<br>%{customdata[2]:,} steps<extra></extra>",
                line={"color": colour(THINGS[str(variant)], theme), "dash": "dot"},
                marker={"size": 11, "symbol": SYMBOLS.get(str(variant), "circle")},
            )
        )  # fmt: skip
    ends = [record for record in timed if record.extrapolated]
    for record in ends:
        at = record.total_seconds or 1.0
        figure.add_vline(at, line_color=colour("quiet", theme), line_dash="dot")
        figure.add_annotation(  # on a log axis a shape stands at its value, an annotation at the value's logarithm
            x=math.log10(at), y=1.0, yref="paper", xanchor="right", yanchor="top", showarrow=False,
            text=f"article's {record.steps:,} steps, {record.placement}, extrapolated ",
            font={"color": colour("quiet", theme)},
        )  # fmt: skip
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(rangemode="tozero")
    return Chart(figure, accuracy_words(data, ends, largest), data)


def _accuracy_row(record: Record) -> tuple[object, ...]:
    return (
        label_of(record), record.variant, record.total_seconds, record.accuracy["rmse_to_truth"],
        record.accuracy.get("coverage90"), record.steps,
    )  # fmt: skip


def scaling_lines(records: Iterable[Record], theme: Theme = "light") -> Chart:
    """Seconds against rows, both on log scales: a whole structured fit, one step of the others."""
    runs = [record for record in records if record.case == "scale" and record.success]
    usual = mode([_periods(r) for r in runs]) if runs else 0
    data = pd.DataFrame(
        [(_line_of(r, usual), r.variant, r.placement, r.n_products, r.n_obs, _scale_seconds(r)) for r in runs],
        columns=["what", "variant", "placement", "products", "rows", "seconds"],
    ).sort_values(["what", "rows"], ignore_index=True)
    figure = blank(theme, "rows (log scale)", "seconds (log scale)", height=420)
    for what, part in data.groupby("what", sort=False):
        figure.add_trace(
            go.Scatter(
                x=part["rows"], y=part["seconds"], mode="lines+markers", name=str(what), customdata=part["products"],
                line={"color": colour(THINGS[part["variant"].iloc[0]], theme),
                      "dash": "solid" if part["placement"].iloc[0] == "cpu" else "dash"},
                marker_symbol="star" if str(what).endswith("periods") else "circle", marker_size=9,
                hovertemplate="%{x:,} rows of %{customdata:,} products: %{y:.3g} s<extra></extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1)
    return Chart(figure, scaling_words(data), data)


def _line_of(record: Record, usual: int) -> str:
    """Which line a record is on: markets of other periods than the `usual` cost otherwise per row."""
    work = "one step" if record.loss else "whole fit"
    periods = "" if _periods(record) == usual else f", {_periods(record):,} periods"
    return f"{record.variant}, {work}, {record.placement}{periods}"


def _periods(record: Record) -> int:
    return record.n_obs // max(record.n_products, 1)


def _scale_seconds(record: Record) -> float | None:
    return record.step_seconds.min if record.loss and record.step_seconds else record.total_seconds


def record_table(records: Iterable[Record], earlier: Sequence[Report] = ()) -> pd.DataFrame:
    """Every record as a row of plain columns: names, seconds, accuracy, how it stands to the best of `earlier` on the
    same machine, and the reason where it did not run."""
    rows = []
    for record in records:
        before = best_earlier(record, earlier)
        values = asdict(record)
        steps = values.pop("step_seconds") or {"min": None, "median": None, "max": None}
        environment, accuracy = values.pop("environment"), values.pop("accuracy")
        values |= {f"step_seconds_{name}": value for name, value in steps.items()}
        values |= {"processor": environment["processor"], "cores": environment["cores"]} if environment else {}
        against = compare(record, before).sentence if before else ""
        rows.append(values | {"extrapolated": record.extrapolated, "against_earlier": against, **accuracy})
    return pd.DataFrame(rows)


def published_table() -> pd.DataFrame:
    """The article's figures, one row a time, labelled as published."""
    return pd.DataFrame(
        [
            {
                "source": "published, not measured here",
                "recipe": p.recipe,
                "devices": p.devices,
                "products": p.n_products,
                "rows": p.n_obs,
                "hours": p.hours,
                "ns per row and step": p.ns_per_obs_step,
            }
            for p in PUBLISHED
        ]
    )


def beside_published(records: Iterable[Record], theme: Theme = "light") -> Chart:
    """Nanoseconds per row and step: measured here in full colour, published by the article hatched."""
    here = [r for r in records if r.case == "step" and r.success and r.loss and r.ns_per_obs_step]
    rows = [("measured here", label_of(r), r.variant, r.n_obs, r.ns_per_obs_step) for r in here]
    rows += [
        ("published", f"article · {p.devices} · published", "article", p.n_obs, p.ns_per_obs_step) for p in PUBLISHED
    ]
    data = pd.DataFrame(rows, columns=["source", "what", "variant", "rows", "ns per row and step"])
    figure = blank(theme, "nanoseconds per row and step (log scale)", "", height=90 + BAR_HEIGHT * len(data))
    for (source, variant), part in data.groupby(["source", "variant"], sort=False):
        figure.add_trace(
            go.Bar(
                y=_rows_named(part), x=part["ns per row and step"],
                orientation="h", name=f"{variant}, {source}", text=part["ns per row and step"].map("{:.3g}".format),
                textposition="outside", cliponaxis=False,
                marker={"color": colour(THINGS[str(variant)], theme),
                        "pattern": {"shape": "/" if source == "published" else ""}},
            )
        )  # fmt: skip
    cost = data["ns per row and step"]
    figure.update_xaxes(type="log", dtick=1, range=_roomy(cost, float(cost.min())))
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    words = "Cost of one step per row: measured on this machine, and as the article published it for its own."
    return Chart(figure, words, data)
