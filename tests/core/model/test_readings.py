"""What the readings of priors say, against the distributions themselves."""

import numpy as np
import pytest

from core.declare import declarations
from core.model.plan import ModelPlan, Priors
from core.model.readings import MOST, REACH, SENTENCES, product_spread, readings


def test_every_prior_has_a_sentence_and_no_sentence_lacks_its_prior():
    assert set(SENTENCES) == {field.name for field, _ in declarations(Priors)}


def test_the_spread_of_products_is_that_of_draws_from_the_prior():
    priors = Priors()
    rng = np.random.default_rng(1)
    draws = 400_000
    market = rng.normal(priors.elasticity_mean, priors.elasticity_sd, draws)
    category = rng.normal(market, abs(rng.normal(0, priors.elasticity_category_scale, draws)))
    product = rng.normal(category, abs(rng.normal(0, priors.elasticity_product_scale, draws)))
    assert product_spread(priors) == pytest.approx(product.std(), rel=0.01)


def test_most_means_the_stated_probability():
    draws = np.random.default_rng(2).standard_normal(200_000)
    assert (np.abs(draws) < REACH).mean() == pytest.approx(MOST, abs=0.005)


def test_a_prior_that_the_model_does_not_use_says_so():
    used = {reading.name: reading.used for reading in readings(ModelPlan(likelihood="poisson", time_effects="none"))}
    assert not used["concentration_mean"]
    assert not used["time_scale"]
    assert used["elasticity_mean"]


def test_the_market_is_read_with_its_own_numbers():
    sentences = {reading.name: reading.sentence for reading in readings(ModelPlan())}
    assert "-3.6 and -0.4" in sentences["elasticity_sd"]
