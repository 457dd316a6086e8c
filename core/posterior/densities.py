"""Turn draws into densities to draw: a product's posterior over the spread of its category's products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import gaussian_kde

from core.model.sites import PRODUCT, SITES
from core.posterior.posterior import Posterior

POINTS = 200
POOLED_DRAWS = 4_000
"""Most draws of a category's products that enter one density."""


@dataclass(frozen=True)
class ProductDensities:
    """Densities per unit of elasticity over one grid: of the product, and of products of its category at large."""

    elasticity: Float[np.ndarray, "point"]
    product: Float[np.ndarray, "point"]
    category: Float[np.ndarray, "point"]


def product_densities(posterior: Posterior, product: int, seed: int = 0, points: int = POINTS) -> ProductDensities:
    """Kernel densities of product `product` (its code) and of what a new product of its category would be.

    The latter draws N(category's elasticity, spread of products) where the fit learned that spread, and pools the
    draws of the category's products where it did not.
    """
    own = posterior.draws.elasticity_product[:, product].astype(np.float64)
    category = _category_spread(posterior, int(posterior.category_of_product[product]), seed)
    edges = [_middle(own), _middle(category)]
    grid = np.linspace(min(low for low, _ in edges), max(high for _, high in edges), points)
    return ProductDensities(grid, density(own, grid), density(category, grid))


def density(draws: Float[np.ndarray, "draw"], grid: Float[np.ndarray, "point"]) -> Float[np.ndarray, "point"]:
    """Gaussian kernel density with Scott's bandwidth; draws that do not vary are a spike of area 1 on an even grid."""
    if len(draws) < 2 or np.ptp(draws) == 0:
        spike = np.zeros(len(grid))
        spike[np.abs(grid - draws[0]).argmin()] = 1 / (grid[1] - grid[0])
        return spike
    return gaussian_kde(draws)(grid)


def _category_spread(posterior: Posterior, category: int, seed: int) -> Float[np.ndarray, "draw"]:
    random = np.random.default_rng(seed)
    draws = posterior.draws
    spread = draws.others.get(SITES[PRODUCT].scale)
    if spread is not None and spread.ndim == 1:
        centre = draws.elasticity_category[:, category].astype(np.float64)
        return centre + spread * random.standard_normal(len(centre))
    members = np.flatnonzero(posterior.category_of_product == category)
    picked = random.integers(posterior.n_draws, size=POOLED_DRAWS), random.choice(members, POOLED_DRAWS)
    return draws.elasticity_product[picked].astype(np.float64)


def _middle(draws: Float[np.ndarray, "draw"]) -> tuple[float, float]:
    """Where nearly all draws lie, with a margin: a heavy tail must not flatten the picture."""
    low, high = np.quantile(draws, [0.005, 0.995])
    margin = 0.15 * (high - low) + 1e-3
    return float(low - margin), float(high + margin)
