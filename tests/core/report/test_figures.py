"""What figures draw, what they say, and how large they get."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.posterior.checks import predictive_checks
from core.posterior.curve import demand_curve, observations_of
from core.posterior.densities import product_densities
from core.posterior.posterior import posterior_from_draws
from core.posterior.recovery import recovery
from core.posterior.seasons import period_effects
from core.report.comparison import side_by_side
from core.report.figures import (
    caterpillar,
    compare_runs,
    coverage_chart,
    demand_figure,
    density_figure,
    forest,
    loss_curves,
    period_effects_figure,
    shrinkage_view,
    truth_scatter,
    z_histogram,
)
from core.report.palette import COLOURS, SYMBOLS, colour
from core.report.tables import elasticity_table
from tests.core.posterior.handmade import market

LARGEST_JSON = 1_500_000
"""Bytes of a figure of 12,000 products: about a second on a slow line, far under Streamlit's message limit."""


@pytest.fixture(scope="module")
def parts():
    panel, labels, draws = market()
    names = ("<b>bold</b>", *labels.products[1:])
    return posterior_from_draws(draws, panel, replace(labels, products=names)), panel


@pytest.fixture(scope="module")
def table(parts):
    return elasticity_table(parts[0])


@pytest.fixture(scope="module")
def products(table):
    return table[table["level"] == "product"].reset_index(drop=True)


@pytest.fixture(scope="module")
def many():
    """12,000 products with every verdict, names as long as real ones."""
    random = np.random.default_rng(0)
    size = 12_000
    mean = random.normal(-1.5, 0.8, size)
    names = ["elastic", "rises", "inelastic", "no variation"]
    verdict = np.select([mean < -1.5, mean > 0.3, mean > -0.6, mean > -0.7], names, "uncertain")
    return pd.DataFrame(
        {
            "level": "product", "category": "c", "product": [f"00{code:010d} 500 g" for code in range(size)],
            "n_obs": 100, "mean": mean, "lower": mean - 0.5, "upper": mean + 0.5, "own_estimate": mean * 1.3,
            "shrinkage": 0.4, "verdict": verdict,
        }
    )  # fmt: skip


def _every_chart(parts, table, products, theme):
    posterior, panel = parts
    truth = posterior.levels["product"].mean + 0.05
    checks = predictive_checks(posterior, panel, cells=200, replicates=20)
    effects = period_effects(posterior, 1)
    return [
        forest(table, theme=theme, truth={"": -2.0, "category 1": -1.9}),
        caterpillar(products, theme=theme),
        shrinkage_view(products, theme=theme),
        demand_figure(observations_of(panel, posterior.labels, 0), demand_curve(posterior, panel, 0), "<b>bold</b>",
                      posterior.labels.periods, theme=theme),
        density_figure(product_densities(posterior, 0), "<b>bold</b>", "category 0", theme=theme),
        period_effects_figure(effects, "category 1", theme=theme),
        truth_scatter(products, truth, theme=theme),
        z_histogram(recovery(posterior, "product", truth), theme=theme),
        coverage_chart(checks.coverage, "cells", theme=theme),
        compare_runs(side_by_side({"a": table, "b": table.assign(mean=table["mean"] + 0.1)}), "a", "b", theme=theme),
        loss_curves({"a": pd.DataFrame({"step": [1, 2], "loss": [3.0, 2.5]})}, theme=theme),
    ]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_has_words_with_numbers_its_data_and_no_ground_of_its_own(parts, table, products, theme):
    for chart in _every_chart(parts, table, products, theme):
        assert any(character.isdigit() for character in chart.alt) and chart.alt.endswith(".")
        assert "nan" not in chart.alt
        assert len(chart.data) and len(chart.figure.data)
        assert chart.figure.layout.paper_bgcolor == chart.figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert chart.figure.layout.font.color == colour("ink", theme)


def test_names_of_files_are_not_read_as_markup(parts, table, products):
    for chart in _every_chart(parts, table, products, "light"):
        assert "<b>bold" not in chart.figure.to_json().replace("\\u003c", "<")


def test_the_forest_draws_market_and_categories_with_their_intervals(table):
    chart = forest(table, mass=0.8, truth={"": -2.0, "category 1": -1.9})
    categories, overall, truth = chart.figure.data
    rows = table[table["level"] == "category"].sort_values("mean")
    np.testing.assert_allclose(categories.x, rows["mean"])
    np.testing.assert_allclose(categories.x + categories.error_x.array, rows["upper"])
    np.testing.assert_allclose(categories.x - categories.error_x.arrayminus, rows["lower"])
    assert overall.x[0] == table.loc[0, "mean"]
    assert list(chart.figure.layout.yaxis.ticktext) == [*rows["category"], "Market"]
    assert np.isnan(truth.x[:-1]).sum() == 2 and truth.x[-1] == -2.0
    assert "80 % interval" in categories.name


def test_the_label_of_the_forest_stands_above_its_frame_and_under_the_legend(table):
    layout = forest(table, truth={"": -2.0}).figure.layout
    (label,) = layout.annotations
    assert (label.y, label.yref, label.yanchor) == (1.0, "paper", "bottom")
    assert (layout.legend.yref, layout.legend.y) == ("container", 1.0)


def test_data_without_categories_are_one_row_of_a_forest(table):
    alone = table.iloc[[0, 1]].assign(category=["", "all products"])
    chart = forest(alone, truth={"": -2.0, "all products": -2.0})
    assert list(chart.figure.layout.yaxis.ticktext) == ["Market"]
    assert len(chart.data) == 1 and "categor" not in chart.alt


def test_a_forest_of_many_categories_draws_those_with_most_rows(table):
    category = pd.concat([table.iloc[[1]]] * 100, ignore_index=True).assign(
        category=[f"c{code}" for code in range(100)], n_obs=np.arange(100)
    )
    chart = forest(pd.concat([table.iloc[[0]], category], ignore_index=True))
    assert len(chart.figure.data[0].x) == 60
    assert chart.data["n_obs"].iloc[:-1].min() == 40
    assert "60 with most rows" in chart.alt
    low, high = chart.figure.layout.yaxis.range
    assert -1 < low < 0 and 60 < high < 61, "no empty band above the first row or below the last"


def test_a_small_caterpillar_draws_every_interval(products):
    chart = caterpillar(products)
    assert sum(len(trace.x) for trace in chart.figure.data) == 12
    assert all(trace.error_y.array is not None for trace in chart.figure.data)
    assert chart.data["mean"].is_monotonic_increasing


def test_a_caterpillar_of_12000_products_is_readable_and_bounded(many):
    chart = caterpillar(many)
    assert len(chart.figure.to_json()) < LARGEST_JSON
    dots = [trace for trace in chart.figure.data if trace.type == "scattergl"]
    assert sum(len(trace.x) for trace in dots) == 12_000
    assert {trace.marker.color for trace in dots} == {COLOURS[name].light for name in SYMBOLS}
    assert sum(trace.showlegend is not False for trace in chart.figure.data) == 6
    assert "12,000 products" in chart.alt
    assert chart.figure.data[1].fill == "tonexty" and len(chart.figure.data[1].x) == 200


def test_a_million_products_are_thinned_and_the_words_say_so(many):
    chart = caterpillar(pd.concat([many] * 10, ignore_index=True))
    assert len(chart.figure.to_json()) < 2 * LARGEST_JSON
    assert "20,000 evenly spaced ones are drawn" in chart.alt
    assert len(chart.data) == 120_000


def test_the_shrinkage_view_is_bounded_and_frames_the_bulk(many):
    wild = many.assign(own_estimate=many["own_estimate"].where(many.index != 0, -400.0))
    chart = shrinkage_view(wild)
    assert len(chart.figure.to_json()) < LARGEST_JSON
    assert chart.figure.layout.xaxis.range[0] > -10
    assert "wild estimate" in chart.alt
    assert -400.0 in chart.data["own_estimate"].to_numpy()


def test_products_without_an_own_estimate_are_left_out_of_the_shrinkage_view(products):
    chart = shrinkage_view(products)
    assert len(chart.data) == 11
    assert "1 product without" in chart.alt
    nothing = shrinkage_view(products.assign(own_estimate=np.nan))
    assert nothing.alt.startswith("No product has an estimate") and not len(nothing.data)


def test_the_demand_figure_draws_cells_curve_and_band(parts):
    posterior, panel = parts
    observations, curve = observations_of(panel, posterior.labels, 0), demand_curve(posterior, panel, 0)
    chart = demand_figure(observations, curve, "one", posterior.labels.periods)
    low, high, dots, line = chart.figure.data
    np.testing.assert_allclose(dots.y, observations.units)
    np.testing.assert_array_equal(line.y, curve.mean)
    assert (np.asarray(low.y) < line.y).all() and (np.asarray(high.y) > line.y).all()
    assert chart.figure.layout.yaxis.title.text == "units per period"
    assert dots.text[0] == posterior.labels.periods[observations.period[0]]
    assert set(chart.data["part"]) == {"observed", "curve"}


def test_period_effects_are_per_cent_of_usual_units(parts):
    posterior, _ = parts
    effects = period_effects(posterior, 2)
    wanted = 100 * np.expm1(posterior.draws.others["time_effect"][:, 2].astype(float)).mean(axis=0)
    np.testing.assert_allclose(effects.mean, wanted, rtol=1e-5)
    assert period_effects(replace(posterior, draws=replace(posterior.draws, others={})), 2) is None


def test_z_scores_of_a_narrow_posterior_are_called_too_narrow(parts):
    posterior, _ = parts
    truth = posterior.levels["product"].mean + np.linspace(-1, 1, 12)
    words = z_histogram(recovery(posterior, "product", truth)).alt
    assert words.startswith("z scores of 12 products: sd ") and words.endswith("too narrow.")


def test_compared_runs_name_the_product_that_differs_most(table):
    other = table.copy()
    other.loc[7, "mean"] += 1.0
    other = other[other["product"] != "00011"]
    chart = compare_runs(side_by_side({"first": table, "second": other}), "first", "second")
    assert len(chart.data) == len(chart.figure.data[0].x) == 11
    assert table.loc[7, "product"] in chart.alt
    np.testing.assert_allclose(chart.figure.data[0].y - chart.figure.data[0].x, chart.data["spread"], atol=1e-6)


def test_runs_without_a_product_in_common_say_so(table):
    compared = side_by_side({"a": table, "b": table.assign(product=table["product"] + "x")})
    assert compare_runs(compared, "a", "b").alt == "a and b have no product in common."


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_verdicts_stand_out_from_the_ground(theme):
    ground = {"light": "#FFFFFF", "dark": "#0F161D"}[theme]
    for thing in (*SYMBOLS, "global", "category", "product", "truth"):
        assert _contrast(colour(thing, theme), ground) >= 3.0, thing


def _contrast(one: str, other: str) -> float:
    """Contrast of two colours by WCAG 2.1, section 1.4.11, which asks 3 of graphics."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(code: str) -> float:
    parts = np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
