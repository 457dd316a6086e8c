"""Tell what it would take to settle a verdict: how many more rows, at the usual price changes or in a price test.

A product's posterior is taken as normal. Rows add information: one row adds its squared distance from the usual log
price times `information`, which the own-data standard error reveals (1 / se^2 over all rows). The verdict is settled
when the posterior sd is so small that the present mean, if it holds, lies on its side of -1 with CERTAINTY.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from core.posterior.summaries import UNIT_ELASTIC
from core.posterior.verdicts import CERTAINTY, price_varies

TEST_STEP = 0.1
"""A price test moves the log price by this much up and down in turn: about 10 %."""


def information_per_row(
    own_se: Float[np.ndarray, "product"], n_obs: Float[np.ndarray, "product"], price_sd: Float[np.ndarray, "product"]
) -> Float[np.ndarray, "product"]:
    """Information about the elasticity that a row brings per squared log price; the median of all products where a
    product's own rows do not tell, NaN where none does."""
    own_se, n_obs, price_sd = (np.asarray(values, dtype=np.float64) for values in (own_se, n_obs, price_sd))
    told = np.isfinite(own_se) & (own_se > 0) & price_varies(price_sd)
    found = np.full(len(own_se), np.nan)
    found[told] = 1 / (own_se[told] ** 2 * n_obs[told] * price_sd[told] ** 2)
    return np.where(told, found, np.median(found[told]) if told.any() else np.nan)


def rows_to_settle(
    mean: Float[np.ndarray, "product"],
    sd: Float[np.ndarray, "product"],
    information: Float[np.ndarray, "product"],
    price_sd: Float[np.ndarray, "product"] | float,
    certainty: float = CERTAINTY,
) -> Float[np.ndarray, "product"]:
    """Further rows, whose log prices spread by `price_sd`, until P(elastic) reaches `certainty` or 1 - `certainty`.

    0 where it has, infinite where the price does not move or the mean is -1 itself.
    """
    distance = np.abs(np.asarray(mean, dtype=np.float64) - UNIT_ELASTIC)
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.maximum(norm.ppf(certainty) ** 2 / distance**2 - 1 / np.asarray(sd, dtype=np.float64) ** 2, 0.0)
        rows = missing / (information * np.square(price_sd))
    return np.where(missing == 0, 0.0, rows)
