"""Check the columns chosen as covariates: numbers, yes and no; texts are refused, constants left aside."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.data.choices import Choices
from core.data.columns import number_column
from core.data.findings import LOST, Findings, either, severity_of, treated
from core.data.numbers import Mark
from core.errors import Problem

MOSTLY = 0.05
"""Share of unreadable cells up to which a column still counts as numbers."""
LEAK = 0.98
"""Correlation with units from which a covariate looks like a result of the sale."""


def check_covariates(
    frame: pd.DataFrame,
    names: tuple[str, ...],
    marks: dict[str, Mark],
    units: np.ndarray,
    choices: Choices,
    findings: Findings,
) -> dict[str, np.ndarray]:
    """Covariates as numbers; texts are refused, constants left aside, rows without a value treated as chosen."""
    read = {name: _check_covariate(frame[name], marks[name], choices, findings) for name in names}
    kept: dict[str, np.ndarray] = {}
    for name, values in read.items():
        some = values[findings.kept & np.isfinite(values)]
        if some.size and some.min() == some.max():
            findings.say(_constant_covariate(name, some[0]))
        elif some.size:
            kept[name] = values
            _note_leak(name, values, units, findings)
    return kept


def _check_covariate(column: pd.Series, mark: Mark, choices: Choices, findings: Findings) -> np.ndarray:
    where, numbers = str(column.name), number_column(column, mark, truths=True)
    filled = len(column) - (int(numbers.missing.sum()) if numbers.missing is not None else 0)
    bad = int(numbers.unreadable.sum()) if numbers.unreadable is not None else 0
    if bad > MOSTLY * filled or filled == 0:
        findings.report(
            "covariate-text", numbers.unreadable if bad else numbers.missing, "{rows} hold no number, yes or no",
            "Choose a column of numbers, or turn each text into a column of 0 and 1.", where=where,
            spelt=numbers.spelt, severity="error", consequence="The model cannot use texts as a covariate.",
        )  # fmt: skip
        return numbers.values
    lacking = either(numbers.missing, numbers.unreadable)
    stop, fill = choices.missing_covariate == "stop", choices.missing_covariate == "mean"
    findings.report(
        "covariate-missing", lacking, "{rows} have no value", "Fill it in, or leave the covariate out.", where=where,
        spelt=numbers.spelt, severity=severity_of(stop), choice="missing_covariate",
        treatment="They get the column's mean." if fill else treated(stop), consequence=LOST
        if not fill else "The covariate's effect is drawn towards nothing.",
    )  # fmt: skip
    if lacking is not None and fill:
        return np.where(lacking, np.nanmean(numbers.values), numbers.values)
    findings.leave_out(lacking, f"without {where}")
    return numbers.values


def _note_leak(name: str, values: np.ndarray, units: np.ndarray, findings: Findings) -> None:
    rows = findings.kept & np.isfinite(values) & np.isfinite(units)
    if rows.sum() < 10 or np.ptp(units[rows]) == 0:
        return
    likeness = float(np.corrcoef(values[rows], units[rows])[0, 1])
    if abs(likeness) > LEAK:
        findings.say(
            Problem(
                "covariate-leak",
                f"The covariate moves with units almost one to one (correlation {likeness:.3f})",
                "Leave it out if it is a result of the sale, such as revenue or customers.",
                where=name,
                severity="warning",
                treatment="It is used as it is.",
                consequence="It would explain sales by sales, and prices would seem to do nothing.",
            )
        )


def _constant_covariate(name: str, value: float) -> Problem:
    return Problem(
        "covariate-constant",
        f"The covariate is {value:g} on every row",
        "Choose a column that varies.",
        where=name,
        severity="warning",
        treatment="It is left aside.",
        consequence="Its effect cannot be told from the level of sales.",
    )
