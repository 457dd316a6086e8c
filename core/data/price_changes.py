"""Look for products whose price never changes: rows of a draft in, a finding out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from core.data.choices import Choices
from core.data.draft import Draft, listed
from core.data.findings import Findings
from core.errors import Problem
from core.words import plural

SAME_PRICE = 1e-9
"""Relative difference of prices that is rounding."""
MOST_SERIES = 20_000_000
"""Products x stores up to which an array holds one number for each, sold or not."""


def check_price_changes(draft: Draft, choices: Choices, findings: Findings) -> None:
    """Find products that never change price (in any store): they have nothing to learn an elasticity from."""
    changes, present = _price_changes(draft, findings)
    constant = present & ~changes
    if not constant.any():
        return
    rows = constant[draft.product.codes] & findings.kept
    nothing = not (present & changes).any()
    findings.say(_constant_prices(draft, constant, rows, nothing, choices))
    if choices.constant_price == "leave-out" and not nothing:
        findings.leave_out(rows, "product never changes price")


def _price_changes(draft: Draft, findings: Findings) -> tuple[Bool[np.ndarray, "product"], Bool[np.ndarray, "product"]]:
    """Whose price differs between two rows of one series; which products have a row at all."""
    product, price = findings.of_kept(draft.product.codes), findings.of_kept(draft.price)
    series, n_series = product, len(draft.product.texts)
    if draft.store is not None:
        series = product.astype(np.int64) * len(draft.store.texts) + findings.of_kept(draft.store.codes)
        n_series *= len(draft.store.texts)
    if n_series > MOST_SERIES:
        _, series = np.unique(series, return_inverse=True)
        n_series = int(series.max()) + 1
    first = np.zeros(n_series)
    first[series] = price
    changes, present = (np.zeros(len(draft.product.texts), dtype=bool) for _ in range(2))
    changes[product[np.abs(price / first[series] - 1) > SAME_PRICE]] = True
    present[product] = True
    return changes, present


def _constant_prices(draft: Draft, constant: np.ndarray, rows: np.ndarray, nothing: bool, choices: Choices) -> Problem:
    """What is said of products whose price never changes; an error where that is all of them."""
    treatment = "They are left out." if choices.constant_price == "leave-out" else "They are kept."
    return Problem(
        "price-constant",
        "No product ever changes its price"
        if nothing
        else f"The price of {plural(int(constant.sum()), 'product')} never changes",
        "Add periods in which prices differ: an elasticity is learned from price changes only.",
        where=listed(draft.roles.price),
        severity="error" if nothing else "note",
        rows=int(rows.sum()),
        examples=tuple(draft.product.texts[code] for code in np.flatnonzero(constant)[:3]),
        treatment="" if nothing else treatment,
        consequence="Their elasticity is their category's, with an interval as wide as products differ.",
        choice="" if nothing else "constant_price",
    )
