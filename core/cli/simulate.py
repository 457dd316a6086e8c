"""Write a simulated market with known elasticities to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.cli.options import add_declared, settled
from core.data.markets import write_market, write_truth
from core.simulation import MarketPlan, simulate


def add_options(parser: argparse.ArgumentParser) -> None:
    """The market's plan, and where to write."""
    add_declared(parser, MarketPlan)
    parser.add_argument("--out", type=Path, required=True, help="File to write: .csv or .parquet")
    parser.add_argument("--truth", type=Path, help="File for the elasticities behind it: .csv or .parquet")


def run(arguments: argparse.Namespace) -> int:
    """Draw the market and write it; says on stderr what was written."""
    market = simulate(settled(arguments, MarketPlan, MarketPlan))
    write_market(market, arguments.out)
    if arguments.truth:
        write_truth(market, arguments.truth)
    print(f"{market.n_cells:,} rows of {market.plan.products:,} products written to {arguments.out}", file=sys.stderr)
    return 0
