"""Fit a sales file and write its elasticities, posterior draws and manifest to a folder."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

from core.cli import sales
from core.cli.options import add_declared, gathered, settled
from core.cli.problems import say_problems
from core.cli.progress import Narrator
from core.data.encoding import encode
from core.data.sales import SalesTable
from core.errors import Problem, UserError
from core.inference.engines import fit
from core.inference.fit import Ending, Fit
from core.inference.memory import refuse_if_too_big
from core.inference.plan import FitPlan, plan_with
from core.panel import Panel
from core.posterior.posterior import Posterior, posterior_of
from core.report import wording
from core.report.results import write_result

USABLE, UNUSABLE, INTERRUPTED = 0, 1, 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """The data, where to write, and every choice of the plan."""
    sales.add_options(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="Folder for the results.")
    add_declared(parser.add_argument_group("what is fitted, and how"), FitPlan)


def run(arguments: argparse.Namespace) -> int:
    """Fit and write. Exit status 1 when no posterior came of it, 130 when it was stopped and what there was is kept."""
    plan, table = _read(arguments)
    panel, labels = encode(table)
    refuse_if_too_big(plan, panel)
    result = _fitted(plan, panel)
    print(result.outcome.sentence, file=sys.stderr)
    if not result.outcome.usable:
        return UNUSABLE
    posterior = posterior_of(result, panel, labels, plan.seed)
    write_result(arguments.out, posterior, result, table.account, table.name, table.sha256)
    print(_summary(posterior, result, arguments.out), file=sys.stderr)
    return INTERRUPTED if result.outcome.ending is Ending.STOPPED else USABLE


def _read(arguments: argparse.Namespace) -> tuple[FitPlan, SalesTable]:
    """The plan and the sales. Raises UserError with every problem of both."""
    problems: list[Problem] = []
    with gathered(problems):
        plan = settled(arguments, FitPlan, partial(plan_with, FitPlan()))
    with gathered(problems):
        _refuse_a_file(arguments.out)
    with gathered(problems):
        found = sales.checked(*sales.read(arguments))
        table = sales.usable(found)
    if problems:
        raise UserError(problems)
    say_problems(found.problems)
    return plan, table


def _fitted(plan: FitPlan, panel: Panel) -> Fit:
    total = {"svi": plan.svi.steps, "nuts": plan.nuts.chains * (plan.nuts.warmup + plan.nuts.samples)}
    narrator = Narrator(total.get(plan.engine, 0), int(np.asarray(panel.weight).sum()))
    with narrator.stop_on_interrupt():
        result = fit(plan, panel, narrator.watcher())
    narrator.close()
    return result


def _summary(posterior: Posterior, result: Fit, folder: Path) -> str:
    market = posterior.levels["global"]
    elasticity = wording.elasticity(float(market.mean[0]), float(market.lower[0]), float(market.upper[0]))
    timing = result.timing
    return (
        f"Market elasticity {elasticity} ({posterior.mass:.0%} interval), {len(posterior.labels.products):,} products; "
        f"compiled in {wording.seconds(timing.compile_seconds)}, ran {wording.seconds(timing.run_seconds)}; "
        f"written to {folder}"
    )


def _refuse_a_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(Problem("out-is-a-file", f"{folder} is a file", "Name a folder for --out.", where="--out"))
