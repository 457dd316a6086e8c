"""Fit a sales file; write its elasticities, posterior draws and manifest to a folder, or keep the run in the store."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from core.cli import sales, stored
from core.cli.options import add_declared, gathered, place, settled
from core.cli.problems import say_problems
from core.cli.progress import Narrator, interrupts, say_outcome
from core.cli.status import BAD_INPUT, DONE, INTERRUPTED, UNUSABLE, status_of
from core.data.choices import Choices
from core.data.encoding import encode
from core.data.roles import Roles
from core.data.sales import SalesTable
from core.data.source import Source
from core.errors import Problem, UserError
from core.inference.engines import ENGINES, fit
from core.inference.failing import reason_of
from core.inference.fit import Ending, Fit, Watcher
from core.inference.hosts import Team, first, join, leave, line_broken, parted, refuse_different
from core.inference.memory import free_memory
from core.inference.plan import FitPlan, plan_to_dict, plan_with
from core.inference.refusal import refuse_if_too_big
from core.panel import Panel
from core.posterior.posterior import Posterior, posterior_of
from core.report import wording
from core.report.results import write_result
from core.runs.requests import RunRequest
from core.settings import load_settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """The data, where to write, and every choice of the plan."""
    sales.add_options(parser)
    parser.add_argument("--out", type=place, metavar="DIR", help="Folder for the results.")
    parser.add_argument("--store", action="store_true", help="Keep the run in the store, where the dashboard shows it.")
    parser.add_argument("--name", default="", help="Name of a stored run.")
    parser.add_argument("--checkpoint-seconds", type=float, metavar="S", help="Time between two checkpoints, stored.")
    add_declared(parser.add_argument_group("what is fitted, and how"), FitPlan)
    team = parser.add_argument_group("several processes, on one host or many, each started with this same command")
    team.add_argument("--coordinator", metavar="HOST:PORT", help="Where process 0 listens. Not for NUTS.")
    team.add_argument("--processes", type=int, default=1, metavar="N", help="How many there are. Default 1.")
    team.add_argument("--process-id", type=int, default=0, metavar="I", help="Which this is, from 0. 0 writes.")


def run(arguments: argparse.Namespace) -> int:
    """Fit and write. Exit status 1 when no posterior came of it, 130 when it was stopped and what there was is kept."""
    order = _read(arguments)
    if arguments.store:
        return _run_stored(arguments, order)
    if order.team is None:
        return _run_here(arguments, order)
    join(order.team)
    return leave(status_of(lambda: _run_together(arguments, order)))


@dataclass(frozen=True)
class Order:
    """What was asked for, checked: it can be fitted."""

    plan: FitPlan
    source: Source
    roles: Roles
    choices: Choices
    sales: SalesTable
    team: Team | None

    @property
    def fingerprint(self) -> str:
        """sha256 of all that decides the fit."""
        told = (plan_to_dict(self.plan), self.roles, self.choices, self.sales.sha256)
        return hashlib.sha256(repr(told).encode()).hexdigest()


def _run_here(arguments: argparse.Namespace, order: Order) -> int:
    found = _found(order)
    return UNUSABLE if found is None else _write(arguments.out, order, *found)


def _run_together(arguments: argparse.Namespace, order: Order) -> int:
    """The same in one of several processes, which part when they are done; `leave` is for all other ends."""
    try:
        refuse_different("file, columns, choices and plan", order.fingerprint)
        found = _found(order)
        if found is None:
            return UNUSABLE
        status = parted(status_of(lambda: _write(arguments.out, order, *found)) if first() else DONE)
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        # Nothing may pass `leave` by: the others would wait for this process.
        remedy = "See what the other processes say, then start all of them again."
        raise line_broken(error) or UserError(Problem("team", reason_of(error, "a shared fit"), remedy)) from None
    if status == BAD_INPUT and not first():
        raise UserError(Problem("team", "the first process could not write the results", "See what it says."))
    return status


def _found(order: Order) -> tuple[Fit, Posterior] | None:
    """The fit and its posterior; None where the fit, as is then said, has none. A team must come here together."""
    plan = order.plan
    panel, labels = encode(order.sales)
    estimate = refuse_if_too_big(plan, panel, free_memory(plan.placement), load_settings().memory_share)
    if estimate.remark and first():
        print(estimate.remark, file=sys.stderr)
    result = _fitted(plan, panel)
    if first() or result.outcome.ending is Ending.FAILED:
        say_outcome(result.outcome.sentence)
    return (result, posterior_of(result, panel, labels, plan.seed)) if result.outcome.usable else None


def _write(folder: Path, order: Order, result: Fit, posterior: Posterior) -> int:
    table = order.sales
    write_result(folder, posterior, result, table.account, table.name, table.sha256)
    print(_summary(posterior, result, folder), file=sys.stderr)
    return INTERRUPTED if result.outcome.ending is Ending.STOPPED else DONE


def _run_stored(arguments: argparse.Namespace, order: Order) -> int:
    with stored.manager() as runs:
        request = RunRequest(
            dataset_id=runs.datasets.add(order.source),
            roles=order.roles,
            choices=order.choices,
            plan=order.plan,
            name=arguments.name,
            checkpoint_seconds=arguments.checkpoint_seconds,
        )
        run_id = runs.submit(request)
        print(run_id, flush=True)
        status = stored.follow(runs, run_id)
        if arguments.out and status != UNUSABLE:
            stored.export(runs, run_id, arguments.out)
    return status


def _read(arguments: argparse.Namespace) -> Order:
    """The plan and the sales. Raises UserError with every problem of both."""
    problems: list[Problem] = []
    with gathered(problems):
        plan = settled(arguments, FitPlan, partial(plan_with, FitPlan()))
        _check_team(arguments, plan)
    with gathered(problems):
        _check_out(arguments)
    with gathered(problems):
        _check_store(arguments)
    with gathered(problems):
        team = _team(arguments)
    with gathered(problems):
        source, roles, choices = sales.read(arguments)
        found = sales.checked(source, roles, choices)
        table = sales.usable(found)
    if problems:
        raise UserError(problems)
    say_problems(found.problems)
    return Order(plan, source, roles, choices, table, team)


def _fitted(plan: FitPlan, panel: Panel) -> Fit:
    total = {"svi": plan.svi.steps, "nuts": plan.nuts.chains * (plan.nuts.warmup + plan.nuts.samples)}
    narrator = Narrator(total.get(plan.engine, 0), int(np.asarray(panel.weight).sum()))
    with interrupts() as asked:
        watcher = narrator.watcher(lambda: bool(asked)) if first() else Watcher(should_stop=lambda: bool(asked))
        result = fit(plan, panel, watcher)
    narrator.close()
    return result


def _summary(posterior: Posterior, result: Fit, folder: Path) -> str:
    market = posterior.levels["global"]
    elasticity = wording.elasticity(float(market.mean[0]), float(market.lower[0]), float(market.upper[0]))
    timing = result.timing
    return (
        f"Market elasticity {elasticity} ({wording.share(posterior.mass)} interval), "
        f"{wording.plural(len(posterior.labels.products), 'product')}; "
        f"compiled in {wording.seconds(timing.compile_seconds)}, ran {wording.seconds(timing.run_seconds)}; "
        f"written to {folder}"
    )


def _check_store(arguments: argparse.Namespace) -> None:
    gap, problems = arguments.checkpoint_seconds, []
    if gap is not None and not 0 <= gap < math.inf:
        what = f"{gap} is no time"
        problems.append(Problem("checkpoint-seconds", what, "Give 0 or more seconds.", where="--checkpoint-seconds"))
    if not arguments.store:
        given = {"--name": arguments.name, "--checkpoint-seconds": gap is not None}
        problems += [
            Problem("needs-store", "It says how a run is stored, and none is", "Add --store, or leave it out.", where=o)
            for o, is_given in given.items()
            if is_given
        ]
    if problems:
        raise UserError(problems)


def _check_out(arguments: argparse.Namespace) -> None:
    folder = arguments.out
    if folder is None and not arguments.store:
        raise UserError(Problem("no-out", "There is nowhere to write to", "Name a folder, or --store.", where="--out"))
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(Problem("out-is-a-file", f"{folder} is a file", "Name a folder.", where="--out"))
    if folder is not None:
        _check_parent(folder.absolute().parent)


def _check_parent(folder: Path) -> None:
    """Found out before the fit, not after it."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = f"{there} is no folder that may be written to"
        raise UserError(Problem("out-unwritable", what, "Name a folder elsewhere.", where="--out"))


def _team(arguments: argparse.Namespace) -> Team | None:
    if arguments.coordinator is None:
        return None
    return Team(arguments.coordinator, arguments.processes, arguments.process_id)


def _check_team(arguments: argparse.Namespace, plan: FitPlan) -> None:
    if arguments.coordinator is None:
        return
    problems = []
    if not ENGINES[plan.engine].in_team:
        remedy = "Choose another engine, or leave --coordinator out."
        problems.append(Problem("team-engine", f"The engine {plan.engine} runs in one process", remedy, "--engine"))
    if arguments.store:
        what = "A run in the store belongs to one process"
        problems.append(Problem("team-store", what, "Give --out DIR instead of --store.", where="--store"))
    if problems:
        raise UserError(problems)
