"""What is drawn of a report: which bars, which points, which lines, with what said in words."""

import numpy as np
import pytest

from core.benchmark.cases import VARIANTS
from core.benchmark.figures import (
    THINGS,
    accuracy_chart,
    beside_published,
    published_table,
    record_table,
    scaling_lines,
    speedup_bars,
)
from core.benchmark.published import PUBLISHED
from core.report.palette import COLOURS
from tests.core.benchmark.records import failed, record

STEP = [
    record(34.0, variant="article"),
    record(2.0),
    record(90.0, variant="article", loss="RenyiELBO", particles=4),
    record(4.0, loss="RenyiELBO", particles=4),
    failed(placement="gpu"),
]


def test_every_variant_has_a_colour_of_the_palette():
    assert THINGS.keys() == VARIANTS.keys()
    assert set(THINGS.values()) <= COLOURS.keys()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_bar_stands_for_each_record_with_a_baseline(theme):
    chart = speedup_bars(STEP, "step", theme)
    assert chart.data["times faster"].tolist() == pytest.approx([1.0, 17.0, 1.0, 22.5])
    assert sum(len(trace.x) for trace in chart.figure.data) == 4
    assert chart.figure.layout.xaxis.type == "log"
    assert "article" in chart.figure.layout.xaxis.title.text
    assert "panel · RenyiELBO x 4 · cpu, 22 x" in chart.alt


def test_numbers_stand_outside_their_bars_with_room_inside_the_frame():
    for chart, column in (
        (speedup_bars(STEP, "step"), "times faster"),
        (beside_published(STEP), "ns per row and step"),
    ):
        assert {trace.textposition for trace in chart.figure.data} == {"outside"}
        low, high = chart.figure.layout.xaxis.range
        ends = np.log10(chart.data[column].agg(["min", "max"]))
        assert ends["min"] - low >= 0.2 and high - ends["max"] >= 0.2


def test_a_report_without_a_baseline_says_so():
    assert "Nothing to compare" in speedup_bars([record()], "step").alt
    assert "No fit" in accuracy_chart([]).alt
    assert "No scaling" in scaling_lines([]).alt


def _fit(variant, seconds, error):
    measures = {"rmse_to_truth": error, "coverage90": 0.9}
    return record(seconds, case="posterior", variant=variant, accuracy=measures, compile_seconds=0.0)


def test_accuracy_is_drawn_against_the_seconds_of_the_whole_fit():
    chart = accuracy_chart([_fit("structured", 3.0, 0.1), _fit("article", 40.0, 1.2)])
    assert chart.data["seconds"].tolist() == [3.0, 40.0]
    assert {trace.name for trace in chart.figure.data} == {"article", "structured"}
    assert "structured · Trace_ELBO · cpu · 100 steps reached 0.100" in chart.alt


def test_fits_of_other_step_counts_have_bars_of_their_own():
    fits = [record(float(n), n, case="posterior", variant="svi") for n in (300, 1_000)]
    end = record(9e4, 10**6, case="posterior", variant="article-extrapolated")
    chart = speedup_bars([*fits, end], "posterior")
    assert chart.data["what"].is_unique
    assert "svi · Trace_ELBO · cpu · 1,000 steps" in set(chart.data["what"])


def test_an_extrapolated_time_is_a_labelled_line_without_an_error():
    extrapolated = record(
        9e4, 10**6, case="posterior", variant="article-extrapolated", accuracy={"extrapolated_from_steps": 40.0}
    )
    chart = accuracy_chart([_fit("structured", 3.0, 0.1), extrapolated])
    assert chart.data["variant"].tolist() == ["structured"]
    (note,) = chart.figure.layout.annotations
    assert note.text.strip() == "article's 1,000,000 steps, cpu, extrapolated"
    assert 10**note.x == pytest.approx(9e4 + 0.5)
    assert "(extrapolated)" in chart.alt


def test_small_markets_are_not_mixed_with_the_large_one():
    small = record(1.0, case="posterior", variant="nuts", n_obs=10, accuracy={"rmse_to_truth": 0.5, "coverage90": 0.9})
    assert accuracy_chart([small, _fit("structured", 3.0, 0.1)]).data["variant"].tolist() == ["structured"]


def test_scaling_counts_a_step_where_there_is_a_loss_and_the_whole_fit_elsewhere():
    steps = [record(rows / 1e6, case="scale", n_products=rows // 100, n_obs=rows) for rows in (10_000, 160_000)]
    fit = record(3.0, case="scale", variant="structured", loss="", particles=0, compile_seconds=1.0)
    data = scaling_lines([*steps, fit]).data.set_index(["variant", "rows"])["seconds"]
    assert data["panel", 160_000] == pytest.approx(0.16 / 100)
    assert data["structured", 1_000] == pytest.approx(4.0)
    assert "16 times the rows took 16 times as long" in scaling_lines(steps).alt


def test_a_market_of_other_periods_is_not_on_the_line():
    sizes = [(10, 1_000), (100, 10_000), (1_000, 26_000)]
    fits = [
        record(rows / 1e6, case="scale", variant="structured", loss="", particles=0, n_products=p, n_obs=rows)
        for p, rows in sizes
    ]
    chart = scaling_lines(fits)
    assert [len(trace.x) for trace in chart.figure.data] == [2, 1]
    assert chart.figure.data[1].name == "structured, whole fit, cpu, 26 periods"
    assert chart.data["products"].tolist() == [10, 100, 1_000]


def test_the_table_has_every_record_and_the_reason_of_those_that_did_not_run():
    table = record_table(STEP)
    assert len(table) == len(STEP)
    assert table.loc[~table["success"], "error"].tolist() == ["Not run: no GPU."]
    assert {"step_seconds_min", "step_seconds_median", "step_seconds_max", "processor"} <= set(table.columns)


def test_published_figures_are_labelled_beside_measured_ones():
    chart = beside_published(STEP)
    published = chart.data[chart.data["source"] == "published"]
    assert len(published) == len(PUBLISHED)
    assert published["what"].str.contains("published").all()
    hatched = [trace.marker.pattern.shape for trace in chart.figure.data if "published" in trace.name]
    assert hatched == ["/"]
    assert set(published_table()["source"]) == {"published, not measured here"}
