"""Put two to five runs side by side: choices that differ, loss curves, elasticities by the largest differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from core.errors import Problem, UserError
from core.report.comparison import MOST, plan_differences, side_by_side
from core.report.tables import elasticity_table
from core.runs.curves import Curve
from core.runs.manager import RunManager
from core.runs.requests import RunResult
from core.runs.results import LOST


@dataclass(frozen=True)
class Comparison:
    """What sets runs apart. Names are unique: a run's own, numbered where two share one."""

    names: tuple[str, ...]
    choices: pd.DataFrame
    """One row for each choice of the plans that differs, one column a run."""
    losses: Mapping[str, Curve]
    """Loss per observation over the whole run."""
    elasticities: pd.DataFrame | None
    """Largest differences first, see `side_by_side`; None where fewer than two runs have a result."""
    without_result: tuple[str, ...]


def compare_runs(manager: RunManager, run_ids: tuple[str, ...], viewer: str | None = None) -> Comparison:
    """Compare two to five runs. Raises UserError for another number of them, or one that is not there."""
    if not 2 <= len(set(run_ids)) <= MOST:
        raise UserError(
            Problem("compare", f"{len(set(run_ids))} runs cannot be compared", f"Name two to {MOST} different runs.")
        )
    snapshots = {run_id: manager.snapshot(run_id, viewer) for run_id in dict.fromkeys(run_ids)}
    names = _names({run_id: snapshot.name for run_id, snapshot in snapshots.items()})
    tables = {
        names[run_id]: elasticity_table(result.posterior)
        for run_id, snapshot in snapshots.items()
        if snapshot.usable and (result := _result(manager, run_id, viewer)) is not None
    }
    return Comparison(
        names=tuple(names.values()),
        choices=plan_differences({names[run_id]: snapshot.plan for run_id, snapshot in snapshots.items()}),
        losses={names[run_id]: snapshot.progress.whole for run_id, snapshot in snapshots.items()},
        elasticities=side_by_side(tables) if len(tables) >= 2 else None,
        without_result=tuple(name for name in names.values() if name not in tables),
    )


def _result(manager: RunManager, run_id: str, viewer: str | None) -> RunResult | None:
    """The kept result; None where its file is lost, which must not hide the runs beside it."""
    try:
        return manager.result(run_id, viewer)
    except UserError as bad:
        if bad.problems[0].code in LOST:
            return None
        raise


def _names(given: Mapping[str, str]) -> dict[str, str]:
    names = list(given.values())
    return {run_id: name if names.count(name) == 1 else f"{name} ({run_id})" for run_id, name in given.items()}
