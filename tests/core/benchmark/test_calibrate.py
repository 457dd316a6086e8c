"""The calibration study: counting, pooling, and what it writes."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.benchmark.calibrate import run_calibration, share_poor
from core.benchmark.calibration import Calibration, CalibrationPlan
from core.benchmark.calibration_report import histogram_svg, pooled, write_report
from core.benchmark.runner import ROOT
from core.errors import UserError
from core.inference.structured.psis import GOOD

TINY = CalibrationPlan(markets=1, products=8, periods=6, categories=2, likelihoods="poisson", scales="fixed")
EXAMPLE = Calibration(
    likelihood="poisson", seed=0, mean_units=1.0, products=100, categories=2, product_90=0.9, product_50=0.5,
    category_90=1.0, category_50=0.5, global_90=1.0, global_50=0.0, z_mean=0.0, z_sd=1.0, bias=0.0, spread=0.5,
    poor=0.0, seconds=1.0, outcome="converged", histogram=tuple([0] * 15 + [50, 50] + [0] * 15),
)  # fmt: skip


def test_every_product_counts_once_in_the_pool():
    large = replace(EXAMPLE, products=300, product_90=0.8)
    assert pooled([EXAMPLE, large])["product_90"] == pytest.approx(0.825)
    assert pooled([EXAMPLE, large])["global_90"] == 1.0


def test_study_writes_a_line_per_market_and_a_report(tmp_path: Path):
    seen: list[Calibration] = []
    found = run_calibration(TINY, tmp_path, seen.append)
    assert tuple(seen) == found
    with (tmp_path / "calibration.csv").open(encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert float(line["product_90"]) == pytest.approx(found[0].product_90)
    assert sum(found[0].histogram) == TINY.products
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    command = (
        "--markets 1 --products 8 --periods 6 --categories 2 --likelihoods poisson --scales fixed --out docs/studies"
    )
    assert f"    python -m core calibrate {command}\n" in text
    assert "nan" not in text


def test_a_study_of_no_likelihood_is_refused_with_what_would_do():
    for text in (",", "", " , "):
        with pytest.raises(UserError, match="names none; name at least one of poisson"):
            CalibrationPlan(likelihoods=text)
    assert CalibrationPlan(likelihoods="poisson, poisson").likelihood_names == ("poisson",)


def test_products_without_a_k_hat_are_not_called_good(tmp_path: Path):
    assert math.isnan(share_poor({}))
    assert share_poor({"k_hat": np.array([0.1, GOOD, GOOD + 0.01, np.nan])}) == 0.5
    write_report(tmp_path, TINY, [replace(EXAMPLE, poor=math.nan, spread=math.nan)])
    row = (tmp_path / "calibration.md").read_text(encoding="utf-8").splitlines()[-1]
    assert row.endswith("| - | - | 1.0 | converged |")


def test_the_committed_study_states_the_command_of_its_plan():
    text = (ROOT / "docs" / "studies" / "calibration.md").read_text(encoding="utf-8")
    assert text.splitlines()[2] == "    python -m core calibrate --out docs/studies"
    assert f"{CalibrationPlan().markets} simulated markets of each likelihood" in text


def test_histogram_is_a_density_that_holds_every_product():
    drawn = histogram_svg([EXAMPLE])
    assert drawn.count("<polyline") == 2
    steps = drawn.split('points="')[2].split('"')[0].split()
    x, y = np.array([[float(v) for v in point.split(",")] for point in steps]).T
    area = np.sum(np.diff(x) * (230 - y[:-1])) / (580 / 8) / 200 * 0.5
    assert area == pytest.approx(1.0, abs=0.01)
