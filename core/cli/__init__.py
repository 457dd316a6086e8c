"""The command line: `python -m core COMMAND ...`, one module per command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from core.cli.status import status_of

COMMANDS = {
    "simulate": "Write a simulated market with known elasticities to a file.",
    "check": "Say how a sales file is understood, with every problem and its remedy.",
    "fit": "Fit a sales file; write its elasticities, posterior draws and manifest.",
    "runs": "List, resume, export, compare and delete the runs that the dashboard shows.",
    "reference": "Write docs/choices.md: every choice with its default and when to use it.",
    "calibrate": "Count how often intervals hold the truth, over simulated markets.",
    "benchmark": "Time the article's recipe and ours on the devices of this machine.",
}
"""Each is a module of this package with `add_options(parser)` and `run(arguments) -> exit status`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit status 0 when done, 2 with every problem on stderr when the input is at fault."""
    typed = list(sys.argv[1:] if argv is None else argv)
    arguments = build_parser(typed[0] if typed else "").parse_args(typed)
    return status_of(lambda: import_module(f"core.cli.{arguments.command}").run(arguments))


def build_parser(wanted: str) -> argparse.ArgumentParser:
    """The parser of every command. Only `wanted` gets its options: the others' modules need not be imported."""
    parser = argparse.ArgumentParser(
        prog="python -m core", description="Bayesian price elasticities: the same engine as the dashboard."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == wanted:
            import_module(f"core.cli.{name}").add_options(command)
    return parser
