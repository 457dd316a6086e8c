"""See a column as codes into its distinct texts, and read those texts once as numbers, truths or periods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from core.data.dates import Dates, Order, read_dates
from core.data.numbers import MISSING, Mark, mark_votes, read_numbers

TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "wahr", "ja", "oui", "1"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n", "falsch", "nein", "non", "0"), 0.0),
}
Rows = Bool[np.ndarray, "row"] | None
"""Rows that have a trait; None where none has."""


@dataclass(frozen=True)
class CodedColumn:
    """A column of texts. `texts` may hold some that no row has."""

    codes: Int[np.ndarray, "row"]
    texts: list[str]

    def rows(self, flags: Bool[np.ndarray, "text"]) -> Rows:
        """Rows whose text is flagged."""
        if not flags.any():
            return None
        rows: np.ndarray = flags[self.codes]
        return rows if rows.any() else None

    def blank(self) -> Rows:
        """Rows without any text."""
        return self.rows(np.array([not text.strip() for text in self.texts], dtype=bool))


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: NaN where missing or unreadable."""

    values: Float[np.ndarray, "row"]
    missing: Rows
    unreadable: Rows
    spelt: Callable[[int], str]
    """A row's text as in the file."""
    distinct: Float[np.ndarray, "text"]
    """Every value that a row has, and perhaps some that none has: where none of these is in trouble, no row is."""


def coded(column: pd.Series) -> CodedColumn:
    """Codes and distinct texts, spelt as given. Numbers and dates of typed files get their plain spelling."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, names = pd.factorize(column)
    texts = spellings(pd.Series(names, copy=False))
    if (codes < 0).any():
        codes = np.where(codes < 0, len(texts), codes)
        texts = [*texts, ""]
    return CodedColumn(codes, texts)


def spellings(names: pd.Series) -> list[str]:
    """How to write the values of a typed column: 5.0 as '5', midnight as a date, truths as TRUE and FALSE."""
    if pd.api.types.is_datetime64_any_dtype(names):
        days = names.dt.normalize().eq(names).all()
        return names.dt.strftime("%Y-%m-%d" if days else "%Y-%m-%dT%H:%M:%S").tolist()
    if pd.api.types.is_bool_dtype(names):
        return [str(value).upper() for value in names.tolist()]
    if pd.api.types.is_float_dtype(names):
        return [str(int(v)) if v.is_integer() and abs(v) < 1e15 else repr(v) for v in map(float, names.tolist())]
    return [str(value) for value in names.to_numpy(object).tolist()]


def number_votes(column: pd.Series) -> tuple[int, int, int]:
    """`mark_votes` of a column's distinct texts; none where the file carries numbers as such."""
    if not _is_text(column):
        return 0, 0, 0
    return mark_votes(coded(column).texts)


def number_column(column: pd.Series, mark: Mark, truths: bool = False) -> NumberColumn:
    """Read a column as numbers; with `truths`, a column of nothing but yes and no reads as 1 and 0."""
    if not _is_text(column):
        return _typed_numbers(column)
    cells = coded(column)
    if truths and (flags := _truths(cells.texts)) is not None:
        values, missing = flags
        unreadable = np.zeros_like(missing)
    else:
        read = read_numbers(cells.texts, mark)
        values, missing, unreadable = read.values, read.missing, read.unreadable
    return NumberColumn(
        values[cells.codes],
        cells.rows(missing),
        cells.rows(unreadable),
        lambda row: cells.texts[cells.codes[row]],
        values,
    )


def period_column(column: pd.Series, order: Order) -> tuple[CodedColumn, Dates]:
    """A column of periods as codes, and each distinct text's reading."""
    cells = coded(column)
    return cells, read_dates(cells.texts, order)


def _is_text(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column))


def _typed_numbers(column: pd.Series) -> NumberColumn:
    if pd.api.types.is_datetime64_any_dtype(column):
        everywhere = np.ones(len(column), dtype=bool)
        nothing = np.full(len(column), np.nan)
        return NumberColumn(nothing, None, everywhere, lambda row: str(column.iloc[row]), nothing)
    values = column.to_numpy(np.float64, na_value=np.nan)
    missing, infinite = np.isnan(values), np.isinf(values)
    if infinite.any():
        values = np.where(infinite, np.nan, values)
    return NumberColumn(
        values,
        missing if missing.any() else None,
        infinite if infinite.any() else None,
        lambda row: str(column.iloc[row]),
        values,
    )


def _truths(texts: list[str]) -> tuple[np.ndarray, np.ndarray] | None:
    lowered = [text.strip().lower() for text in texts]
    missing = np.array([text in MISSING for text in lowered], dtype=bool)
    if not all(text in TRUTHS for text in lowered if text not in MISSING):
        return None
    return np.array([TRUTHS.get(text, np.nan) for text in lowered]), missing
