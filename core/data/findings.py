"""Keep count while a table is checked: which rows are left out and for which reason, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.data.columns import CodedColumn, Rows
from core.errors import Problem, Severity, worst_first
from core.words import plural

EXAMPLES = 3
FIRST_DATA_ROW = 2
"""Row number, as a spreadsheet shows it, of the first row below the header."""
LOST = "Their sales do not count."


class Findings:
    """Mutable while one table is validated, then read once. A row counts under the first reason that meets it.

    `shifted` says that lines of the file which are no rows of the table make a spreadsheet count otherwise.
    """

    def __init__(self, n_rows: int, shifted: bool = False) -> None:
        self._shifted = shifted
        self.kept: np.ndarray = np.ones(n_rows, dtype=bool)
        self.problems: list[Problem] = []
        self.left_out: dict[str, int] = {}

    def leave_out(self, rows: Rows, reason: str) -> None:
        """Take rows out of the table for `reason`, those that are still in."""
        if rows is None:
            return
        lost = int((rows & self.kept).sum())
        if lost:
            self.left_out[reason] = self.left_out.get(reason, 0) + lost
            self.kept &= ~rows

    def report(
        self,
        code: str,
        rows: Rows,
        what: str,
        remedy: str,
        *,
        where: str,
        spelt: Callable[[int], str] | None = None,
        severity: Severity = "warning",
        **more: str,
    ) -> None:
        """Add a problem about `rows`; `{rows}` in `what` becomes their number. Nothing is said about no rows."""
        if rows is None:
            return
        count = int(rows.sum())
        first = np.flatnonzero(rows)[:EXAMPLES].tolist()
        examples = tuple(self._place(row) + (f": '{spelt(row)}'" if spelt else "") for row in first)
        sentence = what.replace("{rows}", plural(count, "row"))
        self.problems.append(
            Problem(code, sentence, remedy, where=where, severity=severity, rows=count, examples=examples, **more)
        )

    def _place(self, row: int) -> str:
        return f"data row {row + 1:,}" if self._shifted else f"row {row + FIRST_DATA_ROW:,}"

    def say(self, problem: Problem) -> None:
        self.problems.append(problem)

    def of_kept(self, values: np.ndarray) -> np.ndarray:
        """The values of rows that are still in; the array itself where all are."""
        return values if self.kept.all() else values[self.kept]

    @property
    def failed(self) -> bool:
        return any(problem.severity == "error" for problem in self.problems)

    def sorted(self) -> tuple[Problem, ...]:
        """Problems, worst first: by severity, then by rows."""
        return tuple(worst_first(self.problems))


def severity_of(stop: bool) -> Severity:
    return "error" if stop else "warning"


def treated(stop: bool) -> str:
    """What happens by default to rows in trouble; nothing is promised where they stop the work."""
    return "" if stop else "These rows are left out."


def some(rows: np.ndarray) -> Rows:
    """The rows, or None where none is marked."""
    return rows if rows.any() else None


def either(left: Rows, right: Rows) -> Rows:
    return left if right is None else right if left is None else left | right


def spelt(cells: CodedColumn) -> Callable[[int], str]:
    """How to show a row's text."""
    return lambda row: cells.texts[cells.codes[row]]
