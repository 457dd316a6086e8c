"""Say how a sales file is understood: roles, rows used and left out, every problem with its remedy."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import Any

import pandas as pd

from core.cli import sales
from core.cli.options import place
from core.cli.problems import plain, say_problems
from core.cli.status import BAD_INPUT, DONE
from core.data.overview import Overview, overview
from core.data.roles import Roles
from core.data.validation import Checked
from core.report.results import write_json


def add_options(parser: argparse.ArgumentParser) -> None:
    """The data, and where to write the report."""
    sales.add_options(parser)
    parser.add_argument("--json", type=place, metavar="FILE", help="Also write the report to FILE.")


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Exit status 2 when the file cannot be fitted as it is."""
    source, roles, choices = sales.read(arguments)
    found = sales.checked(source, roles, choices)
    seen = overview(found.sales) if found.sales else None
    if arguments.json:
        write_json(arguments.json, _report(roles, found, seen))
    print(_words(roles, found, seen))
    say_problems(found.problems)
    return DONE if found.sales else BAD_INPUT


def _report(roles: Roles, found: Checked, seen: Overview | None) -> dict[str, Any]:
    account = found.sales.account if found.sales else None
    return {
        "usable": found.sales is not None,
        "roles": asdict(roles),
        "rows": asdict(account) if account else None,
        "overview": _figures(seen) if seen else None,
        "products": seen.by_product.to_dict("records") if seen else None,
        "problems": [asdict(problem) for problem in found.problems],
    }


def _figures(seen: Overview) -> dict[str, Any]:
    figures = {f.name: getattr(seen, f.name) for f in fields(seen)}
    return {name: value for name, value in figures.items() if not isinstance(value, pd.DataFrame)}


def _words(roles: Roles, found: Checked, seen: Overview | None) -> str:
    lines = [f"{role:<10} {plain(', '.join(column) if isinstance(column, tuple) else column or '-')}"
             for role, column in asdict(roles).items()]  # fmt: skip
    if found.sales:
        lines.append(str(found.sales.account))
    if seen:
        lines.append(f"{seen.products:,} products, {seen.categories:,} categories, {seen.periods:,} periods")
    return "\n".join(lines)
