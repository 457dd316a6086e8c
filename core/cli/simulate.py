"""Write a simulated market with known elasticities to a file."""

from __future__ import annotations

import argparse
import sys

from core.cli.options import add_declared, gathered, place, settled
from core.data.markets import check_writable, write_market, write_truth
from core.errors import Problem, UserError
from core.simulation import MarketPlan, simulate


def add_options(parser: argparse.ArgumentParser) -> None:
    """The market's plan, and where to write."""
    add_declared(parser, MarketPlan)
    parser.add_argument("--out", type=place, required=True, help="File to write: .csv or .parquet")
    parser.add_argument("--truth", type=place, help="File for the elasticities behind it: .csv or .parquet")


def run(arguments: argparse.Namespace) -> int:
    """Draw the market and write it; says on stderr what was written."""
    problems: list[Problem] = []
    with gathered(problems):
        plan = settled(arguments, MarketPlan, MarketPlan)
    for path in filter(None, (arguments.out, arguments.truth)):
        with gathered(problems):
            check_writable(path)
    if arguments.truth and arguments.truth.absolute() == arguments.out.absolute():
        problems.append(Problem("same-file", "It is the file of --out too", "Name another.", where="--truth"))
    if problems:
        raise UserError(problems)
    market = simulate(plan)
    write_market(market, arguments.out)
    if arguments.truth:
        write_truth(market, arguments.truth)
    print(f"{market.n_cells:,} rows of {market.plan.products:,} products written to {arguments.out}", file=sys.stderr)
    return 0
