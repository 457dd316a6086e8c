"""Say what is wrong with what a person gave us: what, where, and what to do about it, all problems at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Worst first."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong or was changed, told so that an analyst can act on it.

    `what` states the fact, `where` names the column or option, `remedy` what to do, `treatment` what is done with it
    as things stand, `consequence` what that means for the result, `rows` how many rows it touches and `examples` a few
    of them as text. An error stops the work; a warning or a note is a thing to know. `code` names the kind of problem,
    for tests; `choice` the field of the data's `Choices` that treats it otherwise, where there is one.
    """

    code: str
    what: str
    remedy: str
    where: str = ""
    severity: Severity = "error"
    rows: int = 0
    examples: tuple[str, ...] = ()
    treatment: str = ""
    consequence: str = ""
    choice: str = ""

    @property
    def rank(self) -> int:
        """0 for the worst severity."""
        return SEVERITIES.index(self.severity)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        examples = f" (for example {', '.join(self.examples)})" if self.examples else ""
        return f"{place}{self.what}{examples}. {self.remedy}"


class UserError(Exception):
    """Something only the user can mend. Carries every problem found, never just the first."""

    def __init__(self, problems: Problem | Iterable[Problem]):
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def worst_first(problems: Iterable[Problem]) -> list[Problem]:
    """Errors, then warnings, then notes; within each, by rows touched."""
    return sorted(problems, key=lambda problem: (problem.rank, -problem.rows))
