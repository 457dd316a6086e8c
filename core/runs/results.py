"""Open the kept result of a run, or say why there is none."""

from __future__ import annotations

from pathlib import Path

from core.errors import Problem, UserError
from core.runs.requests import RunResult
from core.runs.store import RunRow
from core.runs.values import from_bytes, unreadable

LOST = ("result-missing", "stored-unreadable")
"""Codes of the problems that drawing a run's posterior again mends."""


def load_result(path: Path) -> RunResult:
    """The result kept in a file. Raises UserError where it is missing, damaged or of another version."""
    try:
        content = path.read_bytes()
    except OSError as bad:
        raise UserError(
            Problem("result-missing", "The kept result of this run is missing", "Draw it again: nothing is lost by it.")
        ) from bad
    result = from_bytes(content)
    if not isinstance(result, RunResult):
        raise unreadable()
    return result


def no_result(row: RunRow) -> UserError:
    """Why a run has none."""
    what = f"The run has no result: {row.outcome}" if row.outcome else f"The run has no result yet; it is {row.state}"
    return UserError(Problem("result-none", what.rstrip("."), "Wait for it, or resume it.", where="run"))
