"""Put fits side by side: their elasticities, largest differences first, and the choices in which their plans differ."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.declare import Declared, declarations
from core.inference.plan import FitPlan, plan_values

KEYS = ["level", "category", "product"]
SHOWN = ("mean", "sd", "lower", "upper")
UNUSED = "not used"
MOST = 5
"""Fits that can be read side by side."""


def side_by_side(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Elasticities of several fits by name of the fit; rows are matched by level, category and product.

    For every fit its mean, sd, lower and upper, as '<fit>: mean'. `spread` is the largest mean minus the smallest, in
    % units per % price; `spread_in_sd` the same in units of the largest sd among the fits. Both are missing where
    fewer than two fits have the row. Largest `spread_in_sd` first. Raises ValueError for fewer than two tables.
    """
    if len(tables) < 2:
        raise ValueError("there is nothing to compare with fewer than two fits")
    parts = [table.set_index(KEYS)[[*SHOWN]].add_prefix(f"{fit}: ") for fit, table in tables.items()]
    joined = pd.concat(parts, axis=1)
    means = joined[[f"{fit}: mean" for fit in tables]]
    widest = joined[[f"{fit}: sd" for fit in tables]].max(axis=1)
    spread = (means.max(axis=1) - means.min(axis=1)).where(means.notna().sum(axis=1) >= 2)
    shown = joined[[f"{fit}: {column}" for fit in tables for column in SHOWN]]
    compared = shown.assign(spread=spread, spread_in_sd=spread / widest.where(widest > 0))
    return compared.sort_values("spread_in_sd", ascending=False, kind="stable", na_position="last").reset_index()


def truth_in_order(table: pd.DataFrame, truth: pd.DataFrame) -> Float[np.ndarray, "row"]:
    """The true elasticity of every row of an elasticity table, NaN where it is not known.

    `truth` has columns level, category, product, elasticity; rows are matched by level and the level's own name, so
    that a fit without a category column still finds its products.
    """
    known = dict(zip(_members(truth), truth["elasticity"].to_numpy(float), strict=True))
    return np.array([known.get(member, np.nan) for member in _members(table)], float)


def _members(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Level and, within it, name of every row."""
    columns = (frame[name].fillna("").astype(str).tolist() for name in ("level", "category", "product"))
    return [
        (level, {"category": category, "product": product}.get(level, ""))
        for level, category, product in zip(*columns, strict=True)
    ]


def plan_differences(plans: Mapping[str, FitPlan]) -> pd.DataFrame:
    """The choices that are not the same in all plans: one row a choice, one column of text a plan.

    A choice that the engine of a plan does not read is `UNUSED` there, and left out where it sets no two plans apart.
    """
    rules = {field.name: rule for field, rule in declarations(FitPlan)}
    values = {fit: _in_use(plan, rules) for fit, plan in plans.items()}
    differing = [name for name in rules if len({chosen[name] for chosen in values.values() if name in chosen}) > 1]
    columns = {fit: [chosen.get(name, UNUSED) for name in differing] for fit, chosen in values.items()}
    return pd.DataFrame({"choice": [rules[name].label for name in differing], **columns})


def _in_use(plan: FitPlan, rules: Mapping[str, Declared]) -> dict[str, str]:
    """Choices that the plan's engine reads, as text."""
    read = {name for name, rule in rules.items() if not rule.engines or plan.engine in rule.engines}
    return {name: str(value) for name, value in plan_values(plan).items() if name in read}
