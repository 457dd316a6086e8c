"""Small sales files for the tests of the edge, written where a test asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from core.data.choices import Choices
from core.data.roles import Roles
from core.data.source import Source, read_source
from core.data.validation import Checked, validate
from core.errors import UserError

ROLES = Roles(product="product", price="price", units="units")
DATED = Roles(product="product", price="price", units="units", period="week")
HEADER = "product,week,price,units"
GOOD = (
    "A,2024-01-01,1.00,10",
    "A,2024-01-08,1.50,7",
    "B,2024-01-01,2.00,5",
    "B,2024-01-08,2.50,3",
)


def write(folder: Path, text: str | bytes, name: str = "sales.csv") -> Path:
    """A file with exactly this content."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, name: str = "sales.csv") -> Source:
    return read_source(write(folder, text, name))


def texts(source: Source) -> list[list[str]]:
    """Every cell of a source as text."""
    return [list(map(str, row)) for row in source.frame.astype(object).to_numpy().tolist()]


def problem_of(folder: Path, content: str | bytes, name: str = "sales.csv") -> str:
    """The code of the problem that a file ends in; each problem says what to do."""
    with pytest.raises(UserError) as caught:
        read(folder, content, name)
    assert all(problem.remedy for problem in caught.value.problems)
    return caught.value.problems[0].code


def read_rows(folder: Path, rows: Sequence[str], header: str = HEADER) -> Source:
    return read(folder, "\n".join([header, *rows]) + "\n")


def check(folder: Path, rows: Sequence[str], header: str = HEADER, roles: Roles = DATED, **choices: str) -> Checked:
    """Validate a file of these rows; the account holds whatever happens."""
    source = read_rows(folder, rows, header)
    checked = validate(source, roles, Choices(**choices))
    if checked.sales is not None:
        account = checked.sales.account
        assert account.read == len(rows) == account.used + sum(account.left_out.values())
    return checked


def codes(checked: Checked) -> set[str]:
    return {problem.code for problem in checked.problems}


def left_out(checked: Checked) -> dict[str, int]:
    """Rows left out, by reason."""
    assert checked.sales is not None, checked.problems
    return dict(checked.sales.account.left_out)


def cells(checked: Checked) -> pd.DataFrame:
    """The table's cells with plain columns, sorted, for comparison."""
    assert checked.sales is not None, checked.problems
    frame = checked.sales.frame.copy()
    for name in ("product", "category", "store"):
        if name in frame:
            frame[name] = frame[name].astype(str)
    keys = [name for name in ("product", "store", "period") if name in frame]
    return frame.sort_values(keys, kind="stable").reset_index(drop=True)
