"""Let each product answer to covariates in its own way, where a market is small and has no categories.

A covariate has one effect per category. Without a category column that would be one effect for everything in the file:
three brands that promote differently would be forced to gain alike, and what does not fit shows up as price effects.
So each product gets a column of its own, 0 in the rows of others.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

FEW_PRODUCTS = 12
"""Up to so many products have effects of their own; more are held together by sharing one."""


def own_columns(
    covariates: Float[np.ndarray, "covariate cell"], product: Int[np.ndarray, "cell"], n_products: int
) -> Float[np.ndarray, "column cell"]:
    """A column per covariate and product, covariate by covariate; numbers are centred within the product."""
    columns = []
    for values in covariates:
        indicator = bool(((values == 0) | (values == 1)).all())
        for number in range(n_products):
            own = product == number
            centre = 0.0 if indicator or not own.any() else values[own].mean()
            columns.append(np.where(own, values - centre, 0.0))
    return np.stack(columns)


def own_names(covariates: tuple[str, ...], products: tuple[str, ...]) -> tuple[str, ...]:
    """Names of those columns: 'feat (tropicana)'."""
    return tuple(f"{covariate} ({product})" for covariate in covariates for product in products)
