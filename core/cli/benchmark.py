"""Time the article's recipe and ours on the devices of this machine, each cell in a process of its own."""

from __future__ import annotations

import argparse
from functools import partial

from core.benchmark.command import main
from core.benchmark.options import BenchmarkOptions
from core.cli.options import add_declared, settled


def add_options(parser: argparse.ArgumentParser) -> None:
    """Every declared option of a benchmark."""
    add_declared(parser, BenchmarkOptions)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, keep the records. Exit status 130 when it was cancelled."""
    return main(settled(arguments, BenchmarkOptions, BenchmarkOptions), say=partial(print, flush=True))
