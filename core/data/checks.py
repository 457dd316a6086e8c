"""Check one column for its role: read it, report every kind of trouble with a count, leave rows out as chosen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from core.data.cells import Names, Periods
from core.data.choices import Choices
from core.data.columns import CodedColumn, NumberColumn, Rows, coded, number_column, period_column
from core.data.dates import Dates, Order
from core.data.findings import LOST, Findings, either, severity_of, some, spelt, treated
from core.data.naming import natural_key
from core.data.numbers import Mark
from core.errors import Problem
from core.words import plural

TOTALS = re.compile(
    r"\W*(?:(?:grand|sub|over ?all|zwischen|gesamt)[ -]?)?(?:totals?|sums?|summe|gesamt|insgesamt)\W*|all products",
    re.I,
)
MAYBE_TOTALS = re.compile(r"total|sum|gesamt|all products", re.I)
NOISE = 1e-3
"""Distance from a whole number that is taken for rounding noise of a count."""
NOISE_SHARE = 1e-7
"""The same as a share of the count: what single precision leaves of a large one."""
EXACT_LIMIT = float(2**24)
LARGEST_COUNT = 1e12
MOST_PERIODS = 10_000
_SPACES = re.compile(r"[^\S\n ]|  |^ | $", re.M)
READABLE_SHARE = 0.5
VANISHING_SHARE = 0.05


def check_product(column: pd.Series, choices: Choices, findings: Findings) -> Names:
    """Product codes as spelt; rows without one, and rows that add up others, are left out."""
    where, cells = str(column.name), coded(column)
    blank = cells.blank()
    findings.report(
        "product-missing", blank, "{rows} name no product", "Fill in the product, or delete them.", where=where,
        treatment="These rows are left out.", consequence="Their sales count for no product.",
    )  # fmt: skip
    findings.leave_out(blank, "without product")
    totals = _totals(cells)
    kept = choices.totals == "keep"
    findings.report(
        "totals-rows", totals, "{rows} look like totals of other rows", "Delete them from the file.", where=where,
        spelt=spelt(cells), choice="totals", consequence="Counted as a product, they would double all sales.",
        treatment="They are kept." if kept else "These rows are left out.",
    )  # fmt: skip
    if not kept:
        findings.leave_out(totals, "totals of other rows")
    _look_alikes(cells, where, findings)
    return Names(cells.codes, cells.texts)


def _totals(cells: CodedColumn) -> Rows:
    if not MAYBE_TOTALS.search("\n".join(cells.texts)):
        return None
    return cells.rows(np.array([bool(TOTALS.fullmatch(text.strip())) for text in cells.texts], dtype=bool))


def check_store(column: pd.Series, findings: Findings) -> Names:
    """Store names as spelt; rows without one are left out."""
    cells = coded(column)
    blank = cells.blank()
    findings.report(
        "store-missing", blank, "{rows} name no store", "Fill in the store, or choose no store column.",
        where=str(column.name), treatment="These rows are left out.", consequence=LOST,
    )  # fmt: skip
    findings.leave_out(blank, "without store")
    return Names(cells.codes, cells.texts)


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


def check_period(column: pd.Series, choices: Choices, findings: Findings) -> Periods | None:
    """Periods by one format for the whole column; rows without a readable one are left out."""
    where = str(column.name)
    order: Order = "auto"
    if choices.date_order in ("day-first", "month-first"):
        order = "day-first" if choices.date_order == "day-first" else "month-first"
    texts = len(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else len(column)
    if texts > MOST_PERIODS and column.nunique() > MOST_PERIODS:
        findings.say(_too_many_periods(where, int(column.nunique())))
        return None
    cells, dates = period_column(column, order)
    stop = choices.bad_period == "stop"
    missing, unreadable = cells.rows(dates.missing), cells.rows(dates.unreadable)
    findings.report(
        "period-missing", missing, "{rows} have no date", "Fill it in, or choose no period column.", where=where,
        severity=severity_of(stop), treatment=treated(stop), choice="bad_period", consequence=LOST,
    )  # fmt: skip
    findings.leave_out(missing, "without date")
    findings.report(
        "period-unreadable", unreadable, "{rows} have a date that does not read as " + dates.reading,
        "Write all dates in one format, best as 2024-12-31.", where=where, spelt=spelt(cells),
        severity=severity_of(stop), treatment=treated(stop), choice="bad_period", consequence=LOST,
    )  # fmt: skip
    findings.leave_out(unreadable, "unreadable date")
    _note_reading(dates, where, findings)
    return _periods(cells, dates)


def _periods(cells: CodedColumn, dates: Dates) -> Periods:
    """Codes in time, and what they stand for."""
    if dates.values is not None:
        known = np.flatnonzero(~np.isnat(dates.values))
        values, codes = np.unique(dates.values[known], return_inverse=True)
        rank = np.zeros(len(cells.texts), np.int32)
        rank[known] = codes
        return Periods(rank[cells.codes], pd.DatetimeIndex(values))
    order = sorted(range(len(cells.texts)), key=lambda code: natural_key(cells.texts[code].strip()))
    names = list(dict.fromkeys(cells.texts[code].strip() for code in order if not dates.missing[code]))
    place = {name: position for position, name in enumerate(names)}
    rank = np.array([place.get(text.strip(), 0) for text in cells.texts], np.int32)
    return Periods(rank[cells.codes], pd.Index(names, dtype="str"))


def _note_reading(dates: Dates, where: str, findings: Findings) -> None:
    if dates.ordinal:
        findings.say(
            Problem(
                "period-ordinal",
                f"The periods are {dates.reading}, not dates",
                "Nothing, if their natural order is their order in time.",
                where=where,
                severity="note",
                treatment="Each different value is one period.",
            )
        )
    elif dates.ambiguous:
        findings.say(
            Problem(
                "date-ambiguous",
                "Nothing in the dates tells day from month",
                "Say which comes first if this reading is wrong.",
                where=where,
                severity="warning",
                treatment=f"They are read as {dates.reading}.",
                consequence="A wrong reading puts weeks in the wrong order.",
                choice="date_order",
            )
        )


def _look_alikes(cells: CodedColumn, where: str, findings: Findings) -> None:
    plain = "\n".join(cells.texts).casefold()
    if not _SPACES.search(plain) and len(set(plain.split("\n"))) == len(cells.texts):
        return
    seen: dict[str, str] = {}
    alike = np.zeros(len(cells.texts), dtype=bool)
    examples = []
    for code, text in enumerate(cells.texts):
        twin = seen.setdefault(" ".join(text.casefold().split()), text)
        if twin != text and text.strip():
            alike[code] = True
            examples.append(f"'{twin}' and '{text}'")
    rows = cells.rows(alike)
    if rows is not None:
        findings.say(
            Problem(
                "product-look-alikes",
                f"{plural(int(alike.sum()), 'product')} differ from another by capitals or spaces only",
                "Spell each product in one way if they are the same.",
                where=where,
                severity="note",
                rows=int(rows.sum()),
                examples=tuple(examples[:3]),
                treatment="They are different products, spelt as given.",
                consequence="Each learns from its own rows only.",
            )
        )


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


def _too_many_periods(where: str, count: int) -> Problem:
    return Problem(
        "too-many-periods",
        f"The column has {count:,} different values; at most {MOST_PERIODS:,} periods are used",
        "Choose a column of days, weeks or months, or cut time stamps down to days.",
        where=where,
    )
