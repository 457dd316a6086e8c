"""Check prices and units: read the column, report every kind of trouble with a count, leave rows out as chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from core.data.choices import Choices
from core.data.columns import NumberColumn, Rows, number_column
from core.data.findings import LOST, Findings, either, severity_of, some, treated
from core.data.numbers import Mark

NOISE = 1e-3
"""Distance from a whole number that is taken for rounding noise of a count."""
NOISE_SHARE = 1e-7
"""The same as a share of the count: what single precision leaves of a large one."""
EXACT_LIMIT = float(2**24)
LARGEST_COUNT = 1e12
READABLE_SHARE = 0.5
VANISHING_SHARE = 0.05


def check_price(column: pd.Series, mark: Mark, choices: Choices, findings: Findings) -> np.ndarray:
    """Prices above 0; rows without are left out."""
    where, numbers = str(column.name), number_column(column, mark)
    stop = choices.bad_price == "stop"
    if _unusable(numbers, where, "prices", findings):
        return numbers.values
    _missing_and_unreadable(numbers, where, "price", "bad_price", stop, findings)
    not_positive = some(numbers.values <= 0) if (numbers.distinct <= 0).any() else None
    findings.report(
        "price-not-positive", not_positive, "{rows} have a price of zero or less",
        "Check whether these are gifts, samples or corrections; an elasticity needs prices above zero.", where=where,
        spelt=numbers.spelt, severity=severity_of(stop), treatment=treated(stop), choice="bad_price",
        consequence=LOST,
    )  # fmt: skip
    findings.leave_out(not_positive, "price zero or negative")
    return numbers.values


def check_units(column: pd.Series, mark: Mark, choices: Choices, findings: Findings) -> np.ndarray:
    """Whole units; negative ones stay for `cells_of` to net. Noise is rounded; fractions are refused unless chosen."""
    where, numbers = str(column.name), number_column(column, mark)
    stop = choices.bad_units == "stop"
    if _unusable(numbers, where, "units", findings):
        return numbers.values
    values = numbers.values
    if choices.bad_units == "zero" and numbers.missing is not None:
        values = np.where(numbers.missing, 0.0, values)
        findings.report(
            "units-missing", numbers.missing, "{rows} have no units", "Fill them in.", where=where,
            treatment="They count as nothing sold.", choice="bad_units", consequence="Zeros lower the product's level.",
        )  # fmt: skip
        numbers = replace(numbers, missing=None)
    _missing_and_unreadable(numbers, where, "units", "bad_units", stop, findings)
    endless = some(np.abs(values) > LARGEST_COUNT) if (np.abs(numbers.distinct) > LARGEST_COUNT).any() else None
    findings.report(
        "units-endless", endless, "{rows} have more than a million million units", "Check these numbers.", where=where,
        spelt=numbers.spelt, treatment="These rows are left out.", choice="bad_units",
        consequence="No count of sales is that large.",
    )  # fmt: skip
    findings.leave_out(endless, "units beyond any count")
    return _whole(replace(numbers, values=values), where, choices, findings)


def _whole(numbers: NumberColumn, where: str, choices: Choices, findings: Findings) -> np.ndarray:
    known = numbers.distinct[np.isfinite(numbers.distinct)]
    if np.array_equal(known, np.round(known)) and (known <= EXACT_LIMIT).all():
        return numbers.values
    nearest = np.round(numbers.values)
    off = np.abs(numbers.values - nearest)
    fractions = some((off > np.maximum(NOISE, NOISE_SHARE * np.abs(nearest))) & findings.kept)
    _report_fractions(numbers, nearest, fractions, where, choices, findings)
    noisy = some((off > 0) & findings.kept) if fractions is None else None
    findings.report(
        "units-rounded", noisy, "{rows} have units a hair away from a whole number", "Nothing, if units are counts.",
        where=where, spelt=numbers.spelt, severity="note", treatment="They are rounded to the whole number.",
        consequence="None: the differences are below a thousandth.",
    )  # fmt: skip
    huge = some((nearest > EXACT_LIMIT) & findings.kept)
    findings.report(
        "units-huge", huge, "{rows} have more than 16,777,216 units", "Count in packs or in thousands if you can.",
        where=where, spelt=numbers.spelt, severity="note", treatment="They are used as they are.",
        consequence="Single numbers this large are kept to seven digits.",
    )  # fmt: skip
    return nearest


def _report_fractions(
    numbers: NumberColumn, nearest: np.ndarray, rows: Rows, where: str, choices: Choices, findings: Findings
) -> None:
    if rows is None:
        return
    positive = rows & (numbers.values > 0)
    vanishing = int((positive & (nearest == 0)).sum())
    shares = vanishing > VANISHING_SHARE * max(int(positive.sum()), 1)
    refused = choices.fractional_units == "refuse" or (choices.fractional_units == "round" and shares)
    treatment = {"round": "They are rounded.", "leave-out": "These rows are left out.", "refuse": ""}
    findings.report(
        "units-fractional", rows, "{rows} have units that are no whole numbers",
        "Choose a column of counts; turn weights into the smallest unit sold (grams instead of kilograms)"
        + ("; turn shares back into counts." if shares else ", or choose to round."),
        where=where, spelt=numbers.spelt, severity=severity_of(refused), choice="fractional_units",
        treatment="" if refused else treatment[choices.fractional_units],
        consequence=f"Rounding would turn {vanishing:,} of them into 0."
        if vanishing
        else "The model counts whole units; rounding changes these rows.",
    )  # fmt: skip
    if choices.fractional_units == "leave-out":
        findings.leave_out(rows, "units not whole")


def _unusable(numbers: NumberColumn, where: str, noun: str, findings: Findings) -> bool:
    """Report a column that is hardly numbers at all, as the wrong column it is."""
    rows = len(numbers.values)
    if numbers.missing is None and numbers.unreadable is None:
        return False
    readable = int(np.isfinite(numbers.values).sum())
    filled = rows - (int(numbers.missing.sum()) if numbers.missing is not None else 0)
    if readable and readable >= READABLE_SHARE * filled:
        return False
    bad = either(numbers.missing, numbers.unreadable)
    findings.report(
        f"{noun}-not-numbers", bad, f"{{rows}} of {rows:,} hold no readable {noun}", "Choose another column.",
        where=where, spelt=numbers.spelt, severity="error", consequence="Without numbers nothing can be estimated.",
    )  # fmt: skip
    return True


def _missing_and_unreadable(
    numbers: NumberColumn, where: str, noun: str, choice: str, stop: bool, findings: Findings
) -> None:
    more: dict[str, Any] = {"where": where, "choice": choice, "severity": severity_of(stop), "treatment": treated(stop)}
    more["consequence"] = LOST
    findings.report(f"{noun}-missing", numbers.missing, f"{{rows}} have no {noun}", "Fill it in.", **more)
    findings.leave_out(numbers.missing, f"without {noun}")
    findings.report(
        f"{noun}-unreadable", numbers.unreadable, f"{{rows}} have a {noun} that is no number",
        "Write plain numbers, all with the same decimal mark.", spelt=numbers.spelt, **more,
    )  # fmt: skip
    findings.leave_out(numbers.unreadable, f"unreadable {noun}")
