"""The NumPyro model: its sites, its prior, the article's preset in the article's own words, and its gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import log_density

from core.model import sites
from core.model.demand import demand, site_names
from core.model.plan import ARTICLE_MODEL, ModelPlan
from core.panel import Panel
from tests.core.panels import market_panel, replicate_panel

PLANS = {
    "default": ModelPlan(),
    "poisson": ModelPlan(likelihood="poisson", scales="fixed"),
    "shared time": ModelPlan(time_effects="shared"),
    "no time": ModelPlan(likelihood="poisson", time_effects="none"),
    "article": ARTICLE_MODEL,
}
DENSITY_RTOL = 1e-5
"""Two float32 sums of the same few hundred terms in different order."""


def traced(panel: Panel, plan: ModelPlan, seed: int = 0) -> dict:
    return handlers.trace(handlers.seed(demand, seed)).get_trace(panel, plan)


def unknowns(panel: Panel, plan: ModelPlan) -> dict[str, jax.Array]:
    return {
        name: site["value"]
        for name, site in traced(panel, plan).items()
        if site["type"] == "sample" and not site["is_observed"]
    }


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("make", [lambda: market_panel(covariate=True, stores=2), replicate_panel])
def test_site_names_lists_exactly_what_the_model_samples(make, plan):
    panel = make()
    assert set(unknowns(panel, plan)) == set(site_names(panel, plan))


def test_sites_have_the_axes_they_declare():
    panel = market_panel(covariate=True, stores=2)
    sizes = {
        "category": panel.n_categories, "product": panel.n_products, "series": panel.n_series,
        "period": panel.n_periods, "covariate": panel.n_covariates,
    }  # fmt: skip
    for name, value in unknowns(panel, ModelPlan()).items():
        if name in sites.SITES:
            assert value.shape == tuple(sizes[axis] for axis in sites.SITES[name].axes)


def article_model(panel: Panel) -> None:
    """The published model in its own layout: one row per observation, every effect gathered."""
    row, period = np.nonzero(np.asarray(panel.weight))
    product = panel.product_of_series[panel.series_of_row[row]]
    category = panel.category_of_product[product]
    log_price = panel.log_price[row, period] + panel.reference[panel.series_of_row[row]]
    market = numpyro.sample(sites.GLOBAL, dist.Normal(-2.0, 1.0))
    with numpyro.plate("categories", panel.n_categories):
        by_category = numpyro.sample(sites.CATEGORY, dist.Normal(market, 1.0))
    with numpyro.plate("products", panel.n_products):
        elasticity = numpyro.sample(sites.PRODUCT, dist.Normal(by_category[panel.category_of_product], 2.0))
        level = numpyro.sample(sites.LEVEL_SERIES, dist.Normal(0.0, 3.0))
    time = numpyro.sample(sites.TIME, dist.Normal(0.0, 3.0).expand((panel.n_categories, panel.n_periods)).to_event(2))
    log_mean = jnp.clip(level[product] + elasticity[product] * log_price + time[category, period], -4.0, 20.0)
    numpyro.sample("units", dist.Poisson(jnp.exp(log_mean)), obs=panel.units[row, period])


def test_article_preset_equals_the_published_model():
    panel = market_panel()
    for seed in range(3):
        values = {name: site["value"] for name, site in traced(panel, ARTICLE_MODEL, seed).items() if name != "units"}
        values = {name: values[name] for name in site_names(panel, ARTICLE_MODEL)}
        ours, _ = log_density(demand, (panel, ARTICLE_MODEL), {}, values)
        theirs, _ = log_density(article_model, (panel,), {}, values)
        np.testing.assert_allclose(ours, theirs, rtol=DENSITY_RTOL)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_log_density_has_finite_gradients_everywhere(plan):
    panel = market_panel(covariate=True)
    values = unknowns(panel, plan)
    gradients = jax.grad(lambda v: log_density(demand, (panel, plan), {}, v)[0])(values)
    assert all(np.isfinite(leaf).all() and np.any(leaf != 0) for leaf in jax.tree.leaves(gradients))


def test_reparam_wrapped_around_the_model_changes_its_sites():
    model = handlers.reparam(demand, config={sites.PRODUCT: LocScaleReparam(0)})
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(market_panel(), ModelPlan())
    assert trace[sites.PRODUCT]["type"] == "deterministic"
    assert trace[f"{sites.PRODUCT}_decentered"]["type"] == "sample"
