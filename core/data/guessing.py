"""Guess which column of a file plays which part in the model, from names and a sample of contents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from core.data.dates import FORMATS
from core.data.numbers import mark_votes, read_numbers
from core.data.roles import ROLES, Roles, assigned, role_problems
from core.data.source import Source
from core.errors import Problem, UserError

SAMPLE_ROWS = 1_000
COVARIATE_WORDS = re.compile(
    r"feat(ure)?d?|(is |on )?(promo|promotion|promoted|holiday|display|deal|discounted|advert(ised)?|ad|weekend|coupon|"
    r"leaflet|flyer|campaign|special|bonus|school holiday|state holiday|event|temperature)( flag| ind| indicator)?"
)
_LEAKS = re.compile(
    r"revenue|turnover|umsatz|amount|.*(sales|total).*(value|price|amount|revenue|usd|eur)|total.*|customers?|profit.*|"
    r"margin.*|cost.*|lag .*|comp .*|competitor.*|freight.*|.*(id|index)|unnamed.*|column \d+|rank|score|log .*"
)


def guess_roles(source: Source) -> Roles:
    """Roles by names and contents. What cannot be guessed stays None; no column gets two roles; covariates are offered
    (`offered_covariates`), never taken unasked."""
    columns = {name: _Column.of(name, source.frame[name]) for name in source.columns}
    taken: dict[str, Any] = {}
    for role in ("price", "units", "product", "period", "store", "category"):
        best = _best(role, columns, taken)
        if best is not None:
            taken[role] = best
    return Roles(**taken)


def offered_covariates(source: Source, roles: Roles) -> tuple[str, ...]:
    """Columns that could serve as covariates, likely ones first and results of the sale (revenue,
    profit, customers) last: numbers that vary and play no other part."""
    taken = set(assigned(roles).values())
    columns = [_Column.of(name, source.frame[name]) for name in source.columns if name not in taken]
    likely = [c.name for c in columns if c.is_covariate]
    others = [c for c in columns if c.numeric and c.distinct > 1 and c.name not in likely]
    leaks_last = sorted(others, key=lambda column: bool(_LEAKS.fullmatch(column.words)))
    return (*likely, *(column.name for column in leaks_last))


def roles_from_options(pairs: Iterable[str], covariates: str | Iterable[str], source: Source) -> Roles:
    """Guessed roles with `role=column` pairs and covariates put over them. `store=` leaves a role empty.

    Raises UserError naming every pair that is malformed, every unknown role or column, and every double use.
    """
    chosen: dict[str, str | None] = {}
    problems = []
    for pair in pairs:
        role, separator, column = pair.partition("=")
        if not separator or role not in ROLES:
            problems.append(
                Problem(
                    "map-unreadable",
                    f"'{pair}' does not name a role",
                    f"Write role=column, with a role of {', '.join(ROLES)}.",
                    where="--map",
                )
            )
            continue
        chosen[role] = column or None
    names = covariates.split(",") if isinstance(covariates, str) else list(covariates)
    names = [name.strip() for name in names if name.strip()]
    used = {*(name for name in chosen.values() if name), *names}
    guessed = {role: name for role, name in assigned(guess_roles(source)).items() if name not in used}
    roles = Roles(**{**guessed, **chosen}, covariates=tuple(names))
    problems += role_problems(roles, source.columns)
    if problems:
        raise UserError(problems)
    return roles


@dataclass(frozen=True)
class _Column:
    """What a sample of a column's cells looks like."""

    name: str
    words: str
    numeric: bool
    distinct: int
    rows: int
    low: float
    high: float
    whole: float
    """Share of whole numbers."""
    dated: bool

    @classmethod
    def of(cls, name: str, column: pd.Series) -> _Column:
        sample = column.iloc[:: max(1, len(column) // SAMPLE_ROWS)].iloc[:SAMPLE_ROWS]
        texts = [text for text in map(str, sample.to_numpy(object)) if text.strip() and text not in ("nan", "NaT")]
        dated = pd.api.types.is_datetime64_any_dtype(column) or _dated(texts)
        numbers = _sample_numbers(column, texts)
        some = numbers[np.isfinite(numbers)]
        numeric = not dated and len(some) > 0.9 * max(len(texts), 1)
        return cls(
            name=name,
            words=normal(name),
            numeric=numeric,
            distinct=len(set(texts)),
            rows=len(texts),
            low=float(some.min()) if numeric else np.nan,
            high=float(some.max()) if numeric else np.nan,
            whole=float((np.abs(some - np.round(some)) < 1e-3).mean()) if numeric else 0.0,
            dated=dated,
        )

    @property
    def is_covariate(self) -> bool:
        """Promotion flags and the like, by name, with numbers or truths that vary."""
        truths = self.distinct == 2
        return bool(COVARIATE_WORDS.fullmatch(self.words)) and self.distinct > 1 and (self.numeric or truths)


def normal(name: str) -> str:
    """A column's name as lower-case words: 'Weekly_UnitsSold' is 'weekly units sold'."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name)
    return re.sub(r"\s+", " ", spaced).strip().lower()


def _sample_numbers(column: pd.Series, texts: list[str]) -> np.ndarray:
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return np.full(len(texts), np.nan)
    if pd.api.types.is_numeric_dtype(column):
        return column.iloc[:SAMPLE_ROWS].to_numpy(np.float64)
    point, comma, _ = mark_votes(texts)
    return read_numbers(texts, "comma" if comma > point else "point").values


def _dated(texts: list[str]) -> bool:
    """Most texts read as dates of one format; bare numbers of four to six digits do not count as such."""
    sample = texts[:: max(1, len(texts) // 100)]
    if not sample or all(re.fullmatch(r"[\d.,]+", text) and len(re.sub(r"\D", "", text)) < 6 for text in sample):
        return False
    return any(sum(bool(f.pattern.fullmatch(t.strip())) for t in sample) > 0.8 * len(sample) for f in FORMATS)


def _best(role: str, columns: Mapping[str, _Column], taken: Mapping[str, str]) -> str | None:
    scores = {
        column.name: score
        for column in columns.values()
        if column.name not in taken.values() and (score := _score(role, column)) > 0
    }
    return max(scores, key=lambda name: scores[name]) if scores else None


def _score(role: str, column: _Column) -> float:
    """How well a column's name fits a role, 0 where its contents rule it out."""
    words = ROLES[role].words
    rank = next((len(words) - i for i, pattern in enumerate(words) if re.fullmatch(pattern, column.words)), 0)
    if not rank or not _contents_fit(role, column):
        return 0.0
    if role in ("price", "units") and _LEAKS.fullmatch(column.words):
        return 0.0
    bonus = len(words) * column.dated if role == "period" else 0.1 * (column.distinct > 1)
    return rank + bonus


def _contents_fit(role: str, column: _Column) -> bool:
    if role in ("price", "units"):
        return column.numeric and column.high > 0
    if role == "period":
        flag = bool(COVARIATE_WORDS.fullmatch(column.words))
        return not flag and (column.dated or (column.numeric and column.whole == 1.0 and column.low >= 0))
    if role == "product":
        return not column.dated and (not column.numeric or column.whole == 1.0)
    return (
        not column.dated and column.distinct < max(2, 0.5 * column.rows) and (not column.numeric or column.whole == 1)
    )
