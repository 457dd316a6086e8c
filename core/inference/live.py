"""Say what a guide holds of the elasticities while it is still being fitted: cheap, inside the compiled chunk."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer import autoguide

from core.inference.fit import Estimates
from core.inference.minibatch import AnyProgram
from core.model import sites

LIVE_DRAWS = 48
"""Draws behind the live mean and sd of guides whose margins have no closed form."""
SHOWN = (sites.GLOBAL, sites.CATEGORY, sites.PRODUCT)
Moments = dict[str, tuple[Array, Array]]


def live_moments(program: AnyProgram, state: Any, pinned: Array) -> Moments:
    """Mean and sd of the market's, every category's and the pinned products' elasticity; traceable.

    Exact for normals that stand for elasticities themselves; else from a few draws. AutoDelta's sd is 0; the Laplace
    guide's is not known before its end: not a number.
    """
    params = program.params(state)
    guide = program.guide
    if isinstance(guide, autoguide.AutoLaplaceApproximation):
        moments = {name: (value, jnp.full_like(value, jnp.nan)) for name, value in guide.median(params).items()}
    elif isinstance(guide, autoguide.AutoNormal) and all(f"{name}_auto_loc" in params for name in SHOWN):
        moments = {name: (params[f"{name}_auto_loc"], params[f"{name}_auto_scale"]) for name in SHOWN}
    else:
        draws = guide.sample_posterior(jax.random.PRNGKey(0), params, program.small, sample_shape=(LIVE_DRAWS,))
        moments = {name: (draws[name].mean(axis=0), draws[name].std(axis=0)) for name in SHOWN}
    mean, sd = moments[sites.PRODUCT]
    return {**{name: moments[name] for name in SHOWN[:2]}, sites.PRODUCT: (mean[pinned], sd[pinned])}


def estimates_of(moments: Any) -> Estimates:
    """Moments fetched to the host, as the page takes them."""
    (market, market_sd), (category, category_sd), (product, product_sd) = (moments[name] for name in SHOWN)
    return Estimates(
        float(market), float(market_sd), np.array(category), np.array(category_sd), np.array(product),
        np.array(product_sd),
    )  # fmt: skip
