"""Turn a posterior into the table that pages show and exports hold, and cut the page of it that is on screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.posterior.posterior import LEVELS, Posterior

CONTRACT_COLUMNS = (
    "level", "category", "product", "n_obs", "mean", "sd", "lower", "median", "upper", "prob_elastic",
)  # fmt: skip
"""First columns of every elasticity table, in this order: what the command line promises."""
VERDICT_COLUMN = "verdict"


def elasticity_table(posterior: Posterior) -> pd.DataFrame:
    """One row for the market, one per category, one per product, in the order of the labels.

    Names are text, empty where a level has none. Elasticities are % units per % price; `price_sd` is the standard
    deviation of log price; own-data columns and diagnostics are missing above the level of products.
    """
    parts = [_level(posterior, name) for name in LEVELS]
    return pd.concat(parts, ignore_index=True)


def _level(posterior: Posterior, level: str) -> pd.DataFrame:
    summary = posterior.levels[level]
    n_obs, price_sd = _rows_and_price_variation(posterior, level)
    category, product = _names(posterior, level)
    columns: dict[str, object] = {
        "level": pd.array([level] * summary.size, dtype="str"),
        "category": pd.array(category, dtype="str"),
        "product": pd.array(product, dtype="str"),
        "n_obs": n_obs.astype(np.int64),
        "mean": summary.mean,
        "sd": summary.sd,
        "lower": summary.lower,
        "median": summary.median,
        "upper": summary.upper,
        "prob_elastic": summary.prob_elastic,
        "price_sd": price_sd,
        **_own(posterior, level),
    }
    # What an engine reports may bear the name of a summary of the draws, which keeps its place.
    more = {name: values for name, values in _diagnostics(posterior, level).items() if name not in columns}
    verdict = pd.array(posterior.verdicts(level), dtype="str")
    return pd.DataFrame({**columns, **more, VERDICT_COLUMN: verdict})


def _names(posterior: Posterior, level: str) -> tuple[list[str], list[str]]:
    labels = posterior.labels
    if level == "global":
        return [""], [""]
    if level == "category":
        return list(labels.categories), [""] * len(labels.categories)
    return [labels.categories[code] for code in posterior.category_of_product], list(labels.products)


def _rows_and_price_variation(posterior: Posterior, level: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of each member, and the sd of centred log price over them."""
    n_obs = np.asarray(posterior.labels.n_obs, dtype=np.float64)
    price_sd = np.asarray(posterior.labels.price_sd, dtype=np.float64)
    if level == "product":
        return n_obs, price_sd
    group = np.zeros(len(n_obs), np.int64) if level == "global" else posterior.category_of_product
    size = posterior.levels[level].size
    rows = np.bincount(group, n_obs, minlength=size)
    squares = np.bincount(group, n_obs * price_sd**2, minlength=size)
    return rows, np.sqrt(squares / np.maximum(rows, 1))


def _own(posterior: Posterior, level: str) -> dict[str, np.ndarray]:
    if level != "product":
        missing = np.full(posterior.levels[level].size, np.nan)
        return {"own_estimate": missing, "own_se": missing, "shrinkage": missing}
    return {
        "own_estimate": posterior.own.estimate,
        "own_se": posterior.own.se,
        "shrinkage": posterior.shrinkage,
    }


def _diagnostics(posterior: Posterior, level: str) -> dict[str, np.ndarray]:
    missing = np.full(posterior.levels[level].size, np.nan)
    return {name: value if level == "product" else missing for name, value in posterior.diagnostics.items()}


@dataclass(frozen=True)
class TablePage:
    """The rows on screen, how many matched, and which page of how many this is; pages count from 1."""

    rows: pd.DataFrame
    matched: int
    page: int
    pages: int


def matching(
    table: pd.DataFrame, search: str = "", category: str | None = None, verdict: str | None = None
) -> pd.DataFrame:
    """Rows whose product or category contains `search` (case ignored, taken literally), of one category and verdict."""
    kept = np.ones(len(table), dtype=bool)
    if search.strip():
        text = search.strip()
        kept &= _contains(table["product"], text) | _contains(table["category"], text)
    if category:
        kept &= (table["category"] == category).to_numpy()
    if verdict:
        kept &= (table[VERDICT_COLUMN] == verdict).to_numpy()
    return table[kept]


def page_of(
    table: pd.DataFrame,
    search: str = "",
    category: str | None = None,
    verdict: str | None = None,
    sort: str = "product",
    ascending: bool = True,
    page: int = 1,
    size: int = 50,
) -> TablePage:
    """Filter, sort and cut on the server. Missing values sort last; a page past the end shows the last one.

    Raises KeyError for an unknown column to sort by.
    """
    found = matching(table, search, category, verdict).sort_values(
        sort, ascending=ascending, kind="stable", na_position="last"
    )
    pages = max(1, -(-len(found) // size))
    page = min(max(page, 1), pages)
    return TablePage(found.iloc[(page - 1) * size : page * size], len(found), page, pages)


def _contains(names: pd.Series, text: str) -> np.ndarray:
    return names.str.contains(text, case=False, regex=False).to_numpy(dtype=bool)
