"""Print problems where a person at a terminal looks for them."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable

from core.errors import Problem


def say_problems(problems: Iterable[Problem]) -> None:
    """Print problems on stderr, errors first, each with its remedy."""
    for problem in sorted(problems, key=lambda problem: problem.rank):
        print(f"{problem.severity}: {plain(str(problem))}", file=sys.stderr)


def plain(text: str) -> str:
    """`text` on one line without signs that a terminal would obey: names come out of strangers' files."""
    return "".join(" " if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign for sign in text)
