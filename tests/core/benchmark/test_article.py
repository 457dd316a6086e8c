"""The article's model on its observation layout against our article preset on the panel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from core.benchmark import article
from core.data.markets import panel_of_market
from core.model.demand import demand
from core.model.plan import ARTICLE_MODEL
from core.model.tracing import TRACING_LOCK
from core.simulation import MarketPlan, simulate

FLOAT32_SUM = 2e-5
"""Relative distance of two float32 sums of a few hundred terms added in different orders."""


@pytest.fixture(scope="module", params=[1.0, 0.6], ids=["full", "gaps"])
def panel(request):
    plan = MarketPlan(products=30, periods=12, categories=3, likelihood="poisson", filled=request.param, seed=3)
    return panel_of_market(simulate(plan), layout="dense")[0]


def _values(panel, spread):
    rng = np.random.default_rng(11)
    shapes = {
        "elasticity_global": (),
        "elasticity_category": (panel.n_categories,),
        "elasticity_product": (panel.n_products,),
        "level_series": (panel.n_products,),
        "time_effect": (panel.n_categories, panel.n_periods),
    }
    return {name: jnp.asarray(spread * rng.standard_normal(shape), jnp.float32) for name, shape in shapes.items()}


def _ours(values, panel):
    with TRACING_LOCK:
        return log_density(demand, (panel, ARTICLE_MODEL), {}, values)[0]


def _articles(values, observations):
    flat = {**values, "time_effect": values["time_effect"].reshape(-1)}
    with TRACING_LOCK:
        return log_density(article.article_model, (observations,), {}, flat)[0]


@pytest.mark.parametrize("spread", [0.5, 6.0], ids=["near the prior", "where demand is clipped"])
def test_log_density_equals_our_article_preset(panel, spread):
    values = _values(panel, spread)
    theirs = _articles(values, article.observations_of(panel))
    np.testing.assert_allclose(_ours(values, panel), theirs, rtol=FLOAT32_SUM)


def test_gradients_equal_our_article_preset(panel):
    values = _values(panel, 0.5)
    ours = jax.grad(_ours)(values, panel)
    theirs = jax.grad(_articles)(values, article.observations_of(panel))
    for name, gradient in ours.items():
        scale = float(jnp.abs(theirs[name]).max())
        np.testing.assert_allclose(gradient, theirs[name], rtol=1e-3, atol=FLOAT32_SUM * scale, err_msg=name)


def test_fillers_add_nothing_to_the_log_density(panel):
    observations = article.observations_of(panel)
    padded = article.pad(observations, observations.n_obs + 3)
    assert padded.n_obs == observations.n_obs + 3
    values = _values(panel, 0.5)
    np.testing.assert_allclose(_articles(values, padded), _articles(values, observations), rtol=FLOAT32_SUM)


def test_observations_list_every_cell_once_with_its_own_price():
    market = simulate(MarketPlan(products=20, periods=9, categories=2, likelihood="poisson", filled=0.5, seed=1))
    observations = article.observations_of(panel_of_market(market, layout="packed")[0])
    np.testing.assert_array_equal(observations.product, market.product)
    np.testing.assert_array_equal(observations.units, market.units)
    np.testing.assert_allclose(observations.log_price, np.log(market.price), atol=1e-5)


def test_a_market_with_stores_is_refused():
    market = simulate(MarketPlan(products=5, periods=6, categories=1, stores=2, likelihood="poisson"))
    with pytest.raises(ValueError, match="one series a product"):
        article.observations_of(panel_of_market(market)[0])


@pytest.mark.parametrize("compiled", [article.stepwise, article.fused])
def test_both_ways_of_stepping_lower_the_loss_alike(panel, compiled):
    observations = article.observations_of(panel)
    svi = article.article_svi("Trace_ELBO", 1)
    state = article.first_state(svi, observations)
    before = float(svi.evaluate(state, observations))
    advance = compiled(svi, state, observations)
    _, after = advance(state, 300)
    assert float(after) < before


def test_stepping_one_by_one_and_in_a_loop_reach_the_same_loss(panel):
    observations = article.observations_of(panel)
    reached = []
    for compiled in (article.stepwise, article.fused):
        svi = article.article_svi()
        state = article.first_state(svi, observations, seed=5)
        reached.append(float(compiled(svi, state, observations)(state, 25)[1]))
    assert reached[0] == pytest.approx(reached[1], rel=1e-3)
