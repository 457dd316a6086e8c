"""Figures by page. Each takes finished numbers and a theme, and returns a Chart."""

from core.report.figures.checks import coverage_chart, truth_scatter, z_histogram
from core.report.figures.comparison import compare_runs, loss_curves
from core.report.figures.levels import caterpillar, forest, shrinkage_view
from core.report.figures.product import demand_figure, density_figure, period_effects_figure

__all__ = [
    "caterpillar",
    "compare_runs",
    "coverage_chart",
    "demand_figure",
    "density_figure",
    "forest",
    "loss_curves",
    "period_effects_figure",
    "shrinkage_view",
    "truth_scatter",
    "z_histogram",
]
