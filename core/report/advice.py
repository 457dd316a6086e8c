"""Say in a sentence what would change our mind about a product."""

from __future__ import annotations

import math

import pandas as pd

from core.posterior.advice import TEST_STEP, information_per_row, rows_to_settle
from core.report.tables import VERDICT_COLUMN
from core.report.wording import count

CLOSE = 0.05
"""Elasticities this close to -1 make revenue flat: there is little to settle."""
MANY_ROWS = 5_000


def what_would_settle(products: pd.DataFrame, product: str) -> str:
    """A sentence for the product named `product` of a product table; empty where the verdict stands already.

    Rows are the file's own, a product's weeks for example. Raises KeyError for a product that is not in the table.
    """
    found = products[products["product"] == product]
    if not len(found):
        raise KeyError(f"there is no product {product!r}")
    row = found.iloc[0]
    if row[VERDICT_COLUMN] in ("elastic", "inelastic", "rises"):
        return ""
    if abs(row["mean"] + 1) < CLOSE:
        return "So close to −1 that revenue hardly depends on this price: more data would change little."
    peers = products[products["category"] == row["category"]]
    information = information_per_row(peers["own_se"], peers["n_obs"], peers["price_sd"])
    own = information[(peers["product"] == product).to_numpy().argmax()]
    test, usual = (
        float(rows_to_settle(row["mean"], row["sd"], own, spread)) for spread in (TEST_STEP, row["price_sd"])
    )
    if not math.isfinite(test):
        return "Its price would have to change before its own sales can tell."
    tested = f"about {_rows(test)} with the price moved {TEST_STEP:.0%} up and down in turn".replace("%", " %")
    if row[VERDICT_COLUMN] == "no variation" or not math.isfinite(usual) or usual > MANY_ROWS:
        return f"If the estimate holds, {tested} would settle it."
    return f"If the estimate holds, about {_rows(usual)} at its usual price changes would settle it, or {tested}."


def _rows(number: float) -> str:
    whole = max(1, math.ceil(number))
    return f"{count(whole)} more {'row' if whole == 1 else 'rows'}"
