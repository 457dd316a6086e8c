"""Check products, stores and periods: read the column, report every kind of trouble, leave rows out as chosen."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from core.data.choices import Choices
from core.data.columns import CodedColumn, Rows, coded, period_column
from core.data.dates import Dates, Order
from core.data.draft import Names, Periods
from core.data.findings import LOST, Findings, severity_of, spelt, treated
from core.data.naming import natural_key
from core.errors import Problem
from core.words import plural

TOTALS = re.compile(
    r"\W*(?:(?:grand|sub|over ?all|zwischen|gesamt)[ -]?)?(?:totals?|sums?|summe|gesamt|insgesamt)\W*|all products",
    re.I,
)
MAYBE_TOTALS = re.compile(r"total|sum|gesamt|all products", re.I)
MOST_PERIODS = 10_000
_SPACES = re.compile(r"[^\S\n ]|  |^ | $", re.M)


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


def _too_many_periods(where: str, count: int) -> Problem:
    return Problem(
        "too-many-periods",
        f"The column has {count:,} different values; at most {MOST_PERIODS:,} periods are used",
        "Choose a column of days, weeks or months, or cut time stamps down to days.",
        where=where,
    )
