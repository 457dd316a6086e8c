"""Count how often intervals hold the truth, over simulated markets with known elasticities."""

from __future__ import annotations

import argparse
import sys

from core.benchmark.calibrate import run_calibration
from core.benchmark.calibration import Calibration, CalibrationPlan
from core.cli.options import add_declared, place, settled


def add_options(parser: argparse.ArgumentParser) -> None:
    """The study's size, and where to write it."""
    add_declared(parser, CalibrationPlan)
    parser.add_argument("--out", type=place, required=True, metavar="DIR", help="Folder for report and figures.")


def run(arguments: argparse.Namespace) -> int:
    """Fit every market, a line on stderr for each, then write the report."""
    plan = settled(arguments, CalibrationPlan, CalibrationPlan)
    arguments.out.mkdir(parents=True, exist_ok=True)
    run_calibration(plan, arguments.out, _say)
    return 0


def _say(market: Calibration) -> None:
    inside = f"{market.product_90:.1%} of products inside 90 %, {market.product_50:.1%} inside 50 %"
    print(f"{market.likelihood}, mean units {market.mean_units:g}: {inside}", file=sys.stderr, flush=True)
