"""Find what cuts a text table into columns and what the columns are called, from the first lines of it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from core.data.numbers import bare_number
from core.errors import Problem, UserError

USUAL_DELIMITERS = (",", ";", "\t", "|")
FEWEST_COLUMNS = 3


def rows_of(sample: str, delimiter: str, skip: int, count: int = 200) -> list[list[str]]:
    """The first rows of a sample below `skip` lines; fewer where it can be cut no further."""
    lines = io.StringIO(sample, newline="")
    rows = []
    try:
        for number, row in enumerate(csv.reader(lines, delimiter=delimiter)):
            if number >= skip and row:
                rows.append(row)
            if len(rows) >= count:
                break
    except csv.Error:
        pass
    return rows


def find_delimiter(sample: str) -> tuple[str, int]:
    """The character that cuts the sample most evenly into most columns, and the lines to skip before the header."""
    first = sample.splitlines()[0]
    declared = re.fullmatch(r"sep=([\x01-\x7f])", first.strip(' \r\n"'))
    if declared:
        return declared[1], 1
    unusual = [
        c
        for c in dict.fromkeys(first)
        if c.isascii() and not c.isalnum() and c not in " .\"'_-/()%#&" + "".join(USUAL_DELIMITERS)
    ]
    candidates = [c for c in (*USUAL_DELIMITERS, *unusual[:5], " ") if c in first]
    scores = {candidate: _evenness(rows_of(sample, candidate, 0)) for candidate in candidates}
    best = max(scores, key=lambda candidate: scores[candidate], default=",")
    return (best, 0) if scores.get(best, 0.0) > 0 else (",", 0)


def _evenness(rows: list[list[str]]) -> float:
    """Columns of the header x share of rows that have as many, squared so that one odd row does not decide."""
    if not rows or len(rows[0]) < 2:
        return 0.0
    same = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    return same * same * len(rows[0]) ** 0.5


def header_of(sample: str, delimiter: str, skip: int, max_columns: int) -> list[str]:
    """The columns' names as spelt. Raises UserError where they are too few, too many or too long."""
    rows = rows_of(sample, delimiter, skip, count=1)
    if not rows and any(len(line) > csv.field_size_limit() for line in sample.splitlines()[: skip + 1]):
        raise UserError(_long_name())
    if not rows:
        raise UserError(Problem("file-empty", "The file has no table", "Export the data again.", where="file"))
    if len(rows[0]) > max_columns:
        raise UserError(too_many_columns(len(rows[0]), max_columns))
    if len(rows[0]) < FEWEST_COLUMNS:
        raise UserError(too_few_columns(rows[0]))
    return rows[0]


def unique_names(header: list[str]) -> list[str]:
    """Names of columns as given, made unique and not empty: 'price', 'price (2)', 'column 3'."""
    names: list[str] = []
    for position, given in enumerate(header, start=1):
        stem = given.strip() or f"column {position}"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem} ({number})"
        names.append(name)
    return names


def header_notes(header: list[str]) -> list[Problem]:
    """What was done about duplicate and empty column names."""
    counts = Counter(name.strip() for name in header if name.strip())
    twice = sorted(name for name, count in counts.items() if count > 1)
    notes = []
    if twice:
        notes.append(
            Problem(
                "duplicate-columns",
                f"{len(twice)} column names occur more than once",
                "Rename them to tell them apart.",
                where=", ".join(twice[:5]),
                severity="warning",
                examples=tuple(twice[:3]),
                treatment="Later ones are numbered, as in 'price (2)'.",
            )
        )
    unnamed = [str(i) for i, name in enumerate(header, start=1) if not name.strip()]
    if unnamed:
        notes.append(
            Problem(
                "unnamed-columns",
                f"{len(unnamed)} columns have no name",
                "Name them in the file if you need them.",
                where="header",
                severity="note",
                examples=tuple(unnamed[:3]),
                treatment="They are called by their place, as in 'column 3'.",
            )
        )
    return notes


def header_problems(header: list[str]) -> list[Problem]:
    """What was done about odd names. Raises UserError where they read like data."""
    numbers = sum(bool(re.fullmatch(r"[+-]?\d+([.,]\d+)*", bare_number(name))) for name in header)
    if 2 * numbers >= len(header) and numbers > 0:
        raise UserError(
            Problem(
                "no-header",
                "The first line reads like data, not like names of columns",
                "Put a line with the columns' names on top of the file.",
                where="header",
                examples=tuple(header[:3]),
            )
        )
    return header_notes(header)


def no_rows() -> Problem:
    return Problem("no-rows", "The file has a header and no rows", "Export the data again.", where="file")


def _long_name() -> Problem:
    return Problem(
        "long-name",
        f"The header has a name of more than {csv.field_size_limit():,} characters",
        "Check that the header ends in a line end and that its quotes are closed.",
        where="header",
    )


def too_few_columns(names: Sequence[str]) -> Problem:
    return Problem(
        "too-few-columns",
        f"Only {len(names)} columns were found: {', '.join(names)[:100]}",
        "Product, price and units are needed, cut by comma, semicolon, tab or another single sign.",
        where="file",
    )


def too_many_columns(count: int, limit: int) -> Problem:
    return Problem(
        "too-many-columns",
        f"The file has {count:,} columns; at most {limit:,} are read",
        "Keep product, price, units and the few columns the model may use. A table with one column per week must be "
        "turned into one row per product and week.",
        where="file",
    )
