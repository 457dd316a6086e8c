"""From a file named on the command line to a validated sales table; what was noticed on the way goes to stderr."""

from __future__ import annotations

import argparse

from core.cli.options import add_declared, gathered, place, settled
from core.data.guessing import roles_from_options
from core.data.roles import ROLES, Roles
from core.data.sales import SalesTable
from core.data.source import Source, read_source
from core.data.validation import Checked, Choices, validate
from core.errors import Problem, UserError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The file, its roles, and what to do about rows that are not plain sales."""
    parser.add_argument("file", type=place, metavar="FILE", help="Sales as CSV, TSV, Parquet or XLSX.")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="ROLE=COLUMN",
        help=f"Which column plays a role, where the guess is wrong; again for more. Roles: {', '.join(ROLES)}. "
        "ROLE= leaves a role out.",
    )
    parser.add_argument("--covariates", default="", metavar="A,B", help="Columns that also move demand, by name.")
    add_declared(parser, Choices)


def read(arguments: argparse.Namespace) -> tuple[Source, Roles, Choices]:
    """Read the file and settle its roles. Raises UserError for what cannot be read, mapped or chosen."""
    problems: list[Problem] = []
    with gathered(problems):
        choices = settled(arguments, Choices, Choices)
    with gathered(problems):
        source = read_source(arguments.file)
        roles = roles_from_options(arguments.map, arguments.covariates, source)
    if problems:
        raise UserError(problems)
    return source, roles, choices


def checked(source: Source, roles: Roles, choices: Choices) -> Checked:
    """Every problem of the file in these roles, those met while reading included."""
    return validate(source, roles, choices)


def usable(found: Checked) -> SalesTable:
    """The sales table. Raises UserError with every problem where there are errors."""
    if found.sales is None:
        raise UserError(found.problems)
    return found.sales
