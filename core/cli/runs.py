"""List, resume, redraw, export, compare and delete stored runs: those that the dashboard shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict

from core.cli import stored
from core.cli.options import place
from core.cli.status import DONE
from core.report import wording
from core.report.results import write_json
from core.runs.compare import compare_runs
from core.runs.manager import RunManager
from core.runs.requests import RunSummary

LARGEST_DIFFERENCES = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which runs."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="Every run, newest first.")
    listing.add_argument("--json", type=place, metavar="FILE", help="Write the list to FILE as JSON.")
    actions.add_parser("resume", help="Go on from the last checkpoint.").add_argument("run", metavar="ID")
    redrawing = actions.add_parser("redraw", help="Draw the posterior again; nothing is fitted again.")
    redrawing.add_argument("run", metavar="ID")
    redrawing.add_argument("--draws", type=int, metavar="N", help="So many draws instead.")
    redrawing.add_argument("--mass", type=float, metavar="SHARE", help="Probability inside the intervals instead.")
    exporting = actions.add_parser("export", help="Write tables, draws and manifest; nothing is fitted again.")
    exporting.add_argument("run", metavar="ID")
    exporting.add_argument("--out", type=place, required=True, metavar="DIR", help="Folder for the results.")
    comparing = actions.add_parser("compare", help="Choices that differ, elasticities with the largest differences.")
    comparing.add_argument("runs", nargs="+", metavar="ID")
    actions.add_parser("delete", help="Delete a run and all its files; asks on a terminal.").add_argument(
        "run", metavar="ID"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do it. Exit status 2 for a run that is not there or does not allow it."""
    with stored.manager() as runs:
        return ACTIONS[arguments.action](runs, arguments)


def _list(runs: RunManager, arguments: argparse.Namespace) -> int:
    found = runs.runs()
    if arguments.json:
        write_json(arguments.json, {"runs": [asdict(summary) for summary in found]})
    for summary in found:
        print(_line(summary))
    return DONE


def _line(summary: RunSummary) -> str:
    place = f" {summary.queue_position}" if summary.queue_position else ""
    loss = f"{summary.loss:.4f}" if summary.loss is not None else "-"
    return "  ".join(
        (
            summary.run_id,
            f"{summary.state.value}{place:<3}",
            f"{summary.steps_done:,} steps",
            f"loss {loss}",
            wording.seconds(summary.seconds),
            summary.name,
        )
    )


def _resume(runs: RunManager, arguments: argparse.Namespace) -> int:
    runs.resume(arguments.run)
    return stored.follow(runs, arguments.run)


def _redraw(runs: RunManager, arguments: argparse.Namespace) -> int:
    runs.redraw(arguments.run, arguments.draws, arguments.mass)
    return stored.follow(runs, arguments.run)


def _export(runs: RunManager, arguments: argparse.Namespace) -> int:
    stored.export(runs, arguments.run, arguments.out)
    return DONE


def _compare(runs: RunManager, arguments: argparse.Namespace) -> int:
    found = compare_runs(runs, tuple(arguments.runs))
    print(found.choices.to_string(index=False) if len(found.choices) else "The plans are the same.")
    if found.elasticities is not None:
        print(found.elasticities.head(LARGEST_DIFFERENCES).to_string(index=False, float_format="{:.3f}".format))
    for name in found.without_result:
        print(f"{name} has no result.")
    return DONE


def _delete(runs: RunManager, arguments: argparse.Namespace) -> int:
    if sys.stdin.isatty() and not _sure(runs.store.row(arguments.run).name):
        print("kept", file=sys.stderr)
        return DONE
    runs.discard(arguments.run)
    return DONE


def _sure(name: str) -> bool:
    try:
        return input(f"Delete '{name}' and everything it found? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


ACTIONS: dict[str, Callable[[RunManager, argparse.Namespace], int]] = {
    "list": _list,
    "resume": _resume,
    "redraw": _redraw,
    "export": _export,
    "compare": _compare,
    "delete": _delete,
}
