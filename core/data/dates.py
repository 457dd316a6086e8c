"""Read a column of periods: one format for the whole column, day or month first by what the column shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Literal

import numpy as np
from jaxtyping import Bool

from core.data.numbers import MISSING

Order = Literal["auto", "day-first", "month-first"]

_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(am|pm)?\s*(?:z|utc|[+-]\d{2}:?\d{2})?)?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


Groups = tuple[str, ...]


@dataclass(frozen=True)
class Dates:
    """Texts read as periods. `values` are datetime64[s] (NaT where missing or unreadable), or None: see `ordinal`."""

    values: np.ndarray | None
    missing: Bool[np.ndarray, "text"]
    unreadable: Bool[np.ndarray, "text"]
    reading: str
    """How the column was read, in words."""
    ambiguous: bool = False
    """Day and month could be swapped and nothing in the column decides."""
    ordinal: bool = False
    """Not dates: numbers or texts in their natural order."""


@dataclass(frozen=True)
class _Format:
    reading: str
    pattern: re.Pattern[str]
    build: Callable[[Groups], date]


def _date(year: str, month: str, day: str = "1") -> date:
    return date(_full_year(year), int(month), int(day))


def _monday(year: str, week: str) -> date:
    return date.fromisocalendar(int(year), int(week), 1)


def _full_year(year: str) -> int:
    """Two digits are years from 1970 to 2069; four must lie between 1900 and 2100."""
    number = int(year)
    if len(year) > 2:
        if not 1900 <= number <= 2100:
            raise ValueError(f"{number} is no year of sales")
        return number
    return number + (1900 if number >= 70 else 2000)


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].lower()) + 1)


_YEAR = r"((?:19|20)\d{2})"
_ANY_YEAR = r"(\d{4}|\d{2})"
_NAMED = "(" + "|".join(_MONTHS) + r")[a-z]*\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_PARTS = rf"(\d{{1,2}})[-/.](\d{{1,2}})[-/.]{_ANY_YEAR}"


def _format(reading: str, pattern: str, build: Callable[[Groups], date]) -> _Format:
    return _Format(reading, re.compile(pattern, re.IGNORECASE), build)


FORMATS = (
    _format("year-month-day", rf"{_YEAR}[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_TIME}", lambda g: _date(g[0], g[1], g[2])),
    _format("yearmonthday", rf"{_YEAR}(\d{{2}})(\d{{2}})", lambda g: _date(g[0], g[1], g[2])),
    _format("day-month-year", _PARTS + _TIME, lambda g: _date(g[2], g[1], g[0])),
    _format("month-day-year", _PARTS + _TIME, lambda g: _date(g[2], g[0], g[1])),
    _format(
        "day, name of month, year",
        rf"{_DAY}[-/ .]+{_NAMED}[-/ ,]*{_ANY_YEAR}{_TIME}",
        lambda g: _date(g[2], _month(g[1]), g[0]),
    ),
    _format(
        "name of month, day, year",
        rf"{_NAMED}[-/ ]*{_DAY},?[-/ ]+(\d{{4}}){_TIME}",
        lambda g: _date(g[2], _month(g[0]), g[1]),
    ),
    _format("name of month, year", rf"{_NAMED}[-/ ,]*{_ANY_YEAR}", lambda g: _date(g[1], _month(g[0]))),
    _format("year, name of month", rf"{_YEAR}[-/ ]*{_NAMED}", lambda g: _date(g[0], _month(g[1]))),
    _format("year-month", rf"{_YEAR}[-/.]?(\d{{2}})", lambda g: _date(g[0], g[1])),
    _format("month-year", rf"(\d{{1,2}})[-/.]{_YEAR}", lambda g: _date(g[1], g[0])),
    _format("year and week", rf"{_YEAR}[-/. ]?(?:w|kw|wk)?[-/. ]?(\d{{1,2}})", lambda g: _monday(g[0], g[1])),
    _format("year and quarter", rf"{_YEAR}[-/. ]?q([1-4])", lambda g: _date(g[0], str(3 * int(g[1]) - 2))),
    _format("year", _YEAR, lambda g: _date(g[0], "1")),
)
SWAPPABLE = ("day-month-year", "month-day-year")
SURE_MONTHS = 3
"""Months that a file whose dates all have a 1 in the same place must show before that 1 counts as the day."""


def read_dates(texts: Sequence[str], order: Order = "auto") -> Dates:
    """Read the texts, each a distinct value of one column, by the one format that reads most of them.

    Formats in which day and month could be swapped are decided by the whole column: a part above 12 is a day; else the
    order that gives the more even calendar; else a part that is always 1 is the day of a monthly file.
    """
    missing = np.array([text.strip().lower() in MISSING for text in texts], dtype=bool)
    if missing.all():
        return Dates(np.full(len(texts), "NaT", "datetime64[s]"), missing, ~missing, "nothing")
    read = {form.reading: [_parse(form, text.strip()) for text in texts] for form in FORMATS if _fits(form, texts)}
    counts = {reading: sum(value is not None for value in values) for reading, values in read.items()}
    if not counts or 2 * max(counts.values()) < int((~missing).sum()):
        return _ordinal(texts, missing)
    best = max(counts, key=lambda reading: counts[reading])
    ambiguous = False
    if best in SWAPPABLE:
        best, ambiguous = _day_or_month(read, counts, texts, order)
    values = np.array([np.datetime64(value, "s") if value else np.datetime64("NaT", "s") for value in read[best]])
    return Dates(values.astype("datetime64[s]"), missing, np.isnat(values) & ~missing, best, ambiguous)


def _fits(form: _Format, texts: Sequence[str]) -> bool:
    sample = texts[:: max(1, len(texts) // 200)]
    return any(form.pattern.fullmatch(text.strip()) for text in sample)


def _parse(form: _Format, text: str) -> str | None:
    found = form.pattern.fullmatch(text)
    if found is None:
        return None
    groups = found.groups()
    try:
        day = form.build(groups).isoformat()
        return day + _clock(groups[3:7]) if len(groups) > 6 else day
    except ValueError:
        return None


def _clock(groups: tuple[str | None, ...]) -> str:
    """Raises ValueError for an hour, minute or second that no clock shows."""
    hour, minute, second, half = groups
    if hour is None:
        return ""
    number = int(hour) % 12 + (12 if half.lower() == "pm" else 0) if half else int(hour)
    return f"T{time(number, int(minute or 0), int(second or 0)).isoformat()}"


def _day_or_month(
    read: dict[str, list[str | None]], counts: dict[str, int], texts: Sequence[str], order: Order
) -> tuple[str, bool]:
    """The reading to use, and whether nothing but habit decided."""
    if order != "auto":
        return ("day-month-year" if order == "day-first" else "month-day-year"), False
    day, month = counts.get("day-month-year", 0), counts.get("month-day-year", 0)
    if day != month:
        return ("day-month-year" if day > month else "month-day-year"), False
    evenness = {reading: _evenness(read[reading]) for reading in SWAPPABLE}
    if abs(evenness["day-month-year"] - evenness["month-day-year"]) > 0.2:
        return max(evenness, key=lambda reading: evenness[reading]), False
    parts = [found.groups() for text in texts if (found := re.match(_PARTS, text.strip()))]
    firsts, seconds = ({part[i].zfill(2) for part in parts} for i in (0, 1))
    if firsts == {"01"} and len(seconds) >= SURE_MONTHS:
        return "day-month-year", False
    if seconds == {"01"} and len(firsts) >= SURE_MONTHS:
        return "month-day-year", False
    return ("month-day-year" if any("/" in text for text in texts) else "day-month-year"), True


def _evenness(values: list[str | None]) -> float:
    """Share of the commonest gap among successive dates, months counting as equally long; 0 below two gaps."""
    days = np.unique(np.array([value[:10] for value in values if value], dtype="datetime64[D]"))
    gaps = [30 if 28 <= gap <= 31 else gap for gap in np.diff(days).astype(int).tolist()]
    return Counter(gaps).most_common(1)[0][1] / len(gaps) if len(gaps) > 1 else 0.0


def _ordinal(texts: Sequence[str], missing: np.ndarray) -> Dates:
    """Week numbers and other names of periods: used as they are, in natural order."""
    whole = sum(bool(re.fullmatch(r"\s*\d+(?:\.0+)?\s*", text)) for text in texts)
    kind = "whole numbers" if whole >= (~missing).sum() else "names in natural order"
    return Dates(None, missing, np.zeros(len(texts), dtype=bool), kind, ordinal=True)
