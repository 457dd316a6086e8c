"""Write the demand model once, in NumPyro, for every engine: priors here, the likelihood as one fused panel pass.

    log lambda[s,t] = level[s] + elasticity[p(s)] * x[s,t] + time[c(s),t] + z[s,t] . covariate[c(s)]

with x the centred log price. Products pool in categories, categories in the market; see `sites.SITES` for each unknown.
The article's preset takes the price uncentred, levels independent and demand clipped, as the published model does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import jax.numpy as jnp
import numpyro
from jax import Array
from jaxtyping import Bool, Float
from numpyro import distributions as dist
from numpyro import handlers

from core.model import sites
from core.model.likelihood import Predictor, log_likelihood
from core.model.plan import ModelPlan
from core.model.shards import category_of_series, product_values_by_series
from core.panel import Panel

ARTICLE_CLIP = (-4.0, 20.0)
"""Bounds of log demand in the article's model."""


def demand(panel: Panel, plan: ModelPlan, fused: bool = True) -> None:
    """The NumPyro model. Fillers of a divided panel are masked: they add exactly 0 to the log density.

    A mini-batch's own products, series and units count `panel.batches` times: over the batches of an epoch, the mean of
    the log density is that of the market.
    `fused=False` is for second derivatives: see `log_likelihood`.
    """
    elasticity = _elasticities(panel, plan)
    predictor = Predictor(
        level=_levels(panel, plan, elasticity),
        elasticity=elasticity,
        time=_time_effects(panel, plan),
        covariate=_covariate_effects(panel, plan),
        log_concentration=_concentrations(panel, plan),
    )
    clip = ARTICLE_CLIP if plan.preset == "article" else None
    numpyro.factor("units", panel.batches * log_likelihood(predictor, panel, plan.likelihood, clip, fused))


def site_names(panel: Panel, plan: ModelPlan) -> tuple[str, ...]:
    """Names of the unknowns that `demand` samples for this panel and plan, scales last."""
    article, timed = plan.preset == "article", plan.time_effects != "none" and panel.n_periods > 0
    dropped = {
        sites.LEVEL_GLOBAL: article,
        sites.LEVEL_CATEGORY: article,
        sites.TIME: not timed,
        sites.COVARIATE_GLOBAL: panel.n_covariates == 0,
        sites.COVARIATE_CATEGORY: panel.n_covariates == 0,
        sites.CONCENTRATION_GLOBAL: plan.likelihood != "negbin",
        sites.CONCENTRATION_CATEGORY: plan.likelihood != "negbin",
    }
    names = tuple(name for name in sites.SITES if not dropped.get(name, False))
    if plan.scales == "fixed":
        return names
    return names + tuple(scale for scale, name in sites.SCALES.items() if name in names)


def log_mean_units(panel: Panel) -> Float[Array, ""]:
    """Log of the market's mean units per observed cell: where the prior of the market's level is centred."""
    return jnp.asarray(panel.sums.market_log_mean)


def _elasticities(panel: Panel, plan: ModelPlan) -> Float[Array, "product"]:
    priors = plan.priors
    market = numpyro.sample(sites.GLOBAL, dist.Normal(priors.elasticity_mean, priors.elasticity_sd))
    category_scale, product_scale = _scale(plan, sites.CATEGORY), _scale(plan, sites.PRODUCT)
    with numpyro.plate("categories", panel.n_categories):
        category = numpyro.sample(sites.CATEGORY, dist.Normal(market, category_scale))
    with numpyro.plate("products", panel.n_products), own_part(panel, panel.real_product):
        return numpyro.sample(sites.PRODUCT, dist.Normal(category[panel.category_of_product], product_scale))


def _levels(panel: Panel, plan: ModelPlan, elasticity: Float[Array, "product"]) -> Float[Array, "series"]:
    """Log units of each series at its own mean price, time and covariates apart."""
    series_scale = _scale(plan, sites.LEVEL_SERIES)
    parent: Any = 0.0
    if plan.preset != "article":
        market = numpyro.sample(sites.LEVEL_GLOBAL, dist.Normal(log_mean_units(panel), plan.priors.level_sd))
        category_scale = _scale(plan, sites.LEVEL_CATEGORY)
        with numpyro.plate("categories", panel.n_categories):
            category = numpyro.sample(sites.LEVEL_CATEGORY, dist.Normal(market, category_scale))
        parent = category[category_of_series(panel)]
    with numpyro.plate("series", panel.n_series), own_part(panel, panel.real_series):
        level = numpyro.sample(sites.LEVEL_SERIES, dist.Normal(parent, series_scale))
    if plan.preset == "article":
        return level + product_values_by_series(elasticity, panel) * panel.reference
    return level


def _time_effects(panel: Panel, plan: ModelPlan) -> Float[Array, "category period"] | None:
    if plan.time_effects == "none" or panel.n_periods == 0:
        return None
    both = (panel.n_categories, panel.n_periods)
    shape = both if plan.time_effects == "category" else both[1:]
    scale = _scale(plan, sites.TIME)
    effect = numpyro.sample(sites.TIME, dist.Normal(0.0, scale).expand(shape).to_event(len(shape)))
    return jnp.broadcast_to(effect, both)


def _covariate_effects(panel: Panel, plan: ModelPlan) -> Float[Array, "category covariate"] | None:
    if panel.n_covariates == 0:
        return None
    shape = (panel.n_categories, panel.n_covariates)
    market = numpyro.sample(
        sites.COVARIATE_GLOBAL, dist.Normal(0.0, plan.priors.covariate_sd).expand(shape[1:]).to_event(1)
    )
    scale = _scale(plan, sites.COVARIATE_CATEGORY)
    return numpyro.sample(sites.COVARIATE_CATEGORY, dist.Normal(market, scale).expand(shape).to_event(2))


def _concentrations(panel: Panel, plan: ModelPlan) -> Float[Array, "category"] | None:
    if plan.likelihood != "negbin":
        return None
    priors = plan.priors
    market = numpyro.sample(sites.CONCENTRATION_GLOBAL, dist.Normal(priors.concentration_mean, priors.concentration_sd))
    with numpyro.plate("categories", panel.n_categories):
        return numpyro.sample(sites.CONCENTRATION_CATEGORY, dist.Normal(market, priors.concentration_scale))


def _scale(plan: ModelPlan, site: str) -> Any:
    """Spread of `site` around its parent: an unknown with a half-normal prior, or the number in the priors table."""
    name = sites.SITES[site].scale
    prior = getattr(plan.priors, name)
    return prior if plan.scales == "fixed" else numpyro.sample(name, dist.HalfNormal(prior))


@contextmanager
def own_part(panel: Panel, real: Bool[Array, "any"]) -> Iterator[None]:
    """Sites of products or series, in model and guide: fillers left out, a mini-batch's counted for its market."""
    only = handlers.mask(mask=real) if panel.filled else nullcontext()
    times = handlers.scale(scale=panel.batches) if panel.batches > 1 else nullcontext()
    with only, times:
        yield
