"""The posterior of a fit: levels, another mass, verdicts, diagnostics."""

import numpy as np
import pytest

from core.inference.engines import ENGINES, Engine
from core.inference.plan import FitPlan
from core.posterior.posterior import at_mass, posterior_from_draws, posterior_of
from core.posterior.verdicts import VERDICTS, verdict_names
from tests.core.posterior.handmade import fit_of, market


def test_posterior_of_a_fit_draws_as_often_as_planned(monkeypatch):
    panel, labels, draws = market()
    asked = {}

    def draw(fit, panel, n_draws, seed):
        asked.update(n_draws=n_draws, seed=seed)
        return draws

    monkeypatch.setitem(ENGINES, "structured", Engine(fit=lambda *_: None, draw=draw))
    fit = fit_of(FitPlan(draws=400, mass=0.8), {"k_hat": np.linspace(0, 1, 12), "elbo": -500.0, "note": "fine"})
    found = posterior_of(fit, panel, labels, seed=7)
    assert asked == {"n_draws": 400, "seed": 7}
    assert found.mass == 0.8
    assert list(found.diagnostics) == ["k_hat"]


def test_no_posterior_is_drawn_from_an_unusable_fit():
    panel, labels, _ = market()
    with pytest.raises(ValueError, match="no posterior"):
        posterior_of(fit_of(usable=False), panel, labels)


def test_levels_hold_one_summary_per_member():
    panel, labels, draws = market()
    levels = posterior_from_draws(draws, panel, labels).levels
    assert {name: level.size for name, level in levels.items()} == {"global": 1, "category": 3, "product": 12}
    np.testing.assert_allclose(levels["product"].mean, draws.elasticity_product.mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("mass", [0.5, 0.9, 0.99])
def test_another_mass_moves_the_interval_alone(mass):
    panel, labels, draws = market()
    first = posterior_from_draws(draws, panel, labels, mass=0.7)
    other = at_mass(first, mass)
    wanted = np.quantile(draws.elasticity_product, (1 - mass) / 2, axis=0)
    np.testing.assert_allclose(other.levels["product"].lower, wanted, rtol=1e-5)
    np.testing.assert_array_equal(other.levels["product"].mean, first.levels["product"].mean)
    assert other.own is first.own and other.draws is first.draws


def test_the_product_without_price_variation_cannot_be_told():
    panel, labels, draws = market()
    found = posterior_from_draws(draws, panel, labels)
    assert found.verdicts("product")[-1] == "no variation"
    assert "no variation" not in found.verdicts("category")
    assert found.shrinkage[-1] == 1.0


def test_verdicts_follow_the_probability_of_being_elastic():
    probability = np.array([1.0, 0.9, 0.89, 0.11, 0.1, 0.0, 1.0])
    varies = np.array([True] * 6 + [False])
    wanted = ["elastic", "elastic", "uncertain", "uncertain", "inelastic", "inelastic", "no variation"]
    assert verdict_names(probability, varies).tolist() == wanted
    positive = np.array([0.0, 0.0, 0.0, 0.5, 0.89, 0.9, 0.0])
    wanted[5] = "rises"
    assert verdict_names(probability, varies, prob_positive=positive).tolist() == wanted
    assert set(wanted) == set(VERDICTS)


def test_a_product_that_sells_more_at_higher_prices_is_not_called_inelastic():
    panel, labels, draws = market()
    draws.elasticity_product[:, 0] = np.abs(draws.elasticity_product[:, 0])
    found = posterior_from_draws(draws, panel, labels)
    assert found.verdicts("product")[0] == "rises"
    assert "check for other causes" in VERDICTS["rises"].sentence
