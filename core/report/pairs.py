"""Read two fits of the same products against each other: one table of both, and what it says in sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.inference.plan import FitPlan
from core.report.chart import sentence
from core.report.comparison import side_by_side
from core.report.wording import MISSING, plural

MEAN_FIELD = ("AutoNormal", "AutoDiagonalNormal")
"""Guides that treat all unknowns as independent."""
SAME_MEAN = 0.25
"""Distance of means, in sd, up to which two fits say the same: the tolerance the engines are held to."""
SAME_WIDTH = 1.12
"""Ratio of interval widths up to which they are the same, either way."""
ENGINE_NAMES = {"structured": "Structured", "svi": "SVI", "nuts": "NUTS"}
TRUSTED = {"svi": 0, "structured": 1, "nuts": 2}


@dataclass(frozen=True)
class Pair:
    """Two fits side by side. `judged` is read against `reference`, the one to trust more."""

    judged: str
    reference: str
    rows: pd.DataFrame
    """`side_by_side` of both, with `sd_ratio` (judged to reference). Largest difference of means first."""
    words: str


def pair_of(tables: Mapping[str, pd.DataFrame], plans: Mapping[str, FitPlan], unfinished: Collection[str] = ()) -> Pair:
    """Two fits by name: tables of elasticities and plans; `unfinished` names those that had not converged.

    Raises ValueError for another number of fits.
    """
    if len(tables) != 2 or set(tables) != set(plans):
        raise ValueError(f"a pair is two fits with their plans, not {len(tables)} and {len(plans)}")
    # On a draw the first is judged: the one whose page it is.
    judged, reference = sorted(tables, key=lambda name: TRUSTED[plans[name].engine])
    rows = side_by_side(tables)
    own, other = (rows[f"{name}: sd"].to_numpy(np.float64) for name in (judged, reference))
    rows = rows.assign(sd_ratio=np.divide(own, other, out=np.full(len(rows), np.nan), where=other > 0))
    early = [name for name in tables if name in unfinished]
    meaning = _too_early(early) if early else _meaning(rows, plans[judged], plans[reference])
    words = sentence(_differences(rows, judged, reference), meaning)
    return Pair(judged, reference, rows, words)


def short_names(first: str, second: str, engines: tuple[str, str]) -> tuple[str, str]:
    """What tells two runs apart: their engines; else the parts between dots that their names do not share; else which
    of them is at hand."""
    if engines[0] != engines[1]:
        return ENGINE_NAMES[engines[0]], ENGINE_NAMES[engines[1]]
    one, other = (name.split(" · ") for name in (first, second))
    kept = tuple(" · ".join(part for part in a if part not in b) for a, b in ((one, other), (other, one)))
    if all(kept) and kept[0] != kept[1]:
        return kept[0], kept[1]
    return (first, second) if first != second else (f"{first} (this run)", f"{second} (the other)")


def displayed_pair(pair: Pair, most: int) -> pd.DataFrame:
    """The `most` largest differences as people read them: mean, sd and interval of both as text beside the product."""
    rows = pair.rows.head(most)
    columns: dict[str, object] = {
        name: rows[name] for name in ("product", "category", "level", "spread_in_sd", "sd_ratio")
    }
    for fit in (pair.judged, pair.reference):
        mean, sd, lower, upper = (rows[f"{fit}: {part}"] for part in ("mean", "sd", "lower", "upper"))
        columns[f"{fit}: mean"], columns[f"{fit}: sd"] = mean, sd
        columns[f"{fit}: interval"] = [
            f"[{low:.2f}, {high:.2f}]" if np.isfinite(low) else MISSING for low, high in zip(lower, upper, strict=True)
        ]
    return pd.DataFrame(columns)


def _both(rows: pd.DataFrame) -> pd.DataFrame:
    """Products in both fits."""
    return rows[(rows["level"] == "product") & rows["spread"].notna()]


def _widths(rows: pd.DataFrame, judged: str, reference: str) -> np.ndarray:
    own, other = ((rows[f"{name}: upper"] - rows[f"{name}: lower"]).to_numpy() for name in (judged, reference))
    return np.asarray(own[other > 0] / other[other > 0])


def _differences(rows: pd.DataFrame, judged: str, reference: str) -> str:
    both = _both(rows)
    if not len(both):
        return f"{judged} and {reference} have no product in common."
    alone = int((rows["level"] == "product").sum()) - len(both)
    in_both = f"{plural(len(both), 'product')} in both" + (f", {alone:,} in one of them only" if alone else "")
    widths, worst = _widths(both, judged, reference), both["spread_in_sd"].max()
    parts = [f"{in_both}."]
    if len(widths):
        times = f"{_mean_ratio(widths):.2f} times as wide as"
        parts.append(f"The intervals of {judged} are on average {times} those of {reference}.")
    if np.isfinite(worst):
        farthest = both["product"].iloc[int(np.nanargmax(both["spread_in_sd"].to_numpy()))]
        typical = both["spread_in_sd"].median()
        parts.append(f"The means differ by at most {worst:.2f} sd ({farthest}), typically by {typical:.2f}.")
    if alone:
        parts.append("They pool over different products, so differences are no verdict on an engine.")
    return " ".join(parts)


def _mean_ratio(ratios: np.ndarray) -> float:
    """Geometric mean: half and twice as wide cancel."""
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-12)))))


def _meaning(rows: pd.DataFrame, judged: FitPlan, reference: FitPlan) -> str:
    both = _both(rows)
    same_market = len(both) == int((rows["level"] == "product").sum())
    if not len(both) or not same_market or both["spread_in_sd"].isna().all():
        return ""
    ratio = _mean_ratio(both["sd_ratio"].dropna().to_numpy())
    same_means = bool(both["spread_in_sd"].max() <= SAME_MEAN)
    if same_means and 1 / SAME_WIDTH <= ratio <= SAME_WIDTH:
        return "Read: both say the same; either will do." + _exact(reference)
    found = "the means agree" if same_means else f"some means differ by more than {SAME_MEAN} sd"
    return f"Read: {found}{_about_width(ratio, judged)}.{_exact(reference)}"


def _too_early(names: list[str]) -> str:
    return f"Read: too early to tell, {' and '.join(names)} had not converged; allow more steps and compare again."


def _about_width(ratio: float, judged: FitPlan) -> str:
    if 1 / SAME_WIDTH <= ratio <= SAME_WIDTH:
        return ", and the intervals are as wide"
    if ratio > 1:
        return ", and the first of the two is less sure than it need be"
    if judged.engine == "svi" and judged.svi.guide in MEAN_FIELD:
        return ", but a mean-field guide treats all unknowns as independent, which makes its intervals too narrow"
    return ", but the narrower intervals promise more certainty than the other fit finds"


def _exact(reference: FitPlan) -> str:
    return (
        " NUTS is exact up to Monte-Carlo error: where they differ, believe it." if reference.engine == "nuts" else ""
    )
