"""Print problems where a person at a terminal looks for them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from core.errors import Problem

RANK = {"error": 0, "warning": 1, "note": 2}


def say_problems(problems: Iterable[Problem]) -> None:
    """Print problems on stderr, errors first, each with its remedy."""
    for problem in sorted(problems, key=lambda problem: RANK[problem.severity]):
        print(f"{problem.severity}: {problem}", file=sys.stderr)
