"""Recovery of known elasticities, and densities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core.data.markets import panel_of_market
from core.inference.engines import fit
from core.inference.plan import FitPlan
from core.posterior.densities import density, product_densities
from core.posterior.posterior import posterior_from_draws, posterior_of
from core.posterior.recovery import Recovery, recovery, width_verdict
from core.simulation import MarketPlan, simulate
from tests.core.posterior.handmade import labels_of, market, panel_of


@pytest.fixture(scope="module")
def calibrated():
    """2,000 products whose truth is one more draw of the distribution their draws come from."""
    random = np.random.default_rng(0)
    products = 2_000
    x = np.array([[-0.1, 0.1]] * products)
    panel = panel_of(x, np.ones_like(x), np.ones_like(x), np.arange(products), np.zeros(products, int),
                     np.zeros(products), 1, 0)  # fmt: skip
    centre = random.normal(-2, 0.5, products)
    truth = centre + 0.2 * random.standard_normal(products)
    _, _, draws = market()
    draws = replace(
        draws,
        elasticity_product=(centre + 0.2 * random.standard_normal((500, products))).astype(np.float32),
        elasticity_category=random.normal(-2, 0.1, (500, 1)).astype(np.float32),
        elasticity_global=random.normal(-2, 0.1, 500).astype(np.float32),
        level_series=np.zeros((500, products), np.float32),
        others={},
    )
    return posterior_from_draws(draws, panel, labels_of(panel)), truth


def test_calibrated_draws_cover_as_often_as_they_promise(calibrated):
    posterior, truth = calibrated
    found = recovery(posterior, "product", truth)
    for mass, share in found.coverage.items():
        assert share == pytest.approx(mass, abs=4 * np.sqrt(mass * (1 - mass) / 2_000) + 0.005)
    assert stats.kstest(found.z, "norm").pvalue > 0.01
    assert found.rmse == pytest.approx(0.2, rel=0.1)


def test_members_without_a_known_truth_are_left_out(calibrated):
    posterior, truth = calibrated
    half = truth.copy()
    half[::2] = np.nan
    found = recovery(posterior, "product", half)
    assert np.isnan(found.z[::2]).all() and np.isfinite(found.z[1::2]).all()
    assert np.isfinite(found.rmse)


def test_a_truth_of_another_market_is_refused(calibrated):
    posterior, truth = calibrated
    with pytest.raises(ValueError, match="1999 true elasticities for 2000"):
        recovery(posterior, "product", truth[1:])


def test_the_global_truth_may_be_a_number(calibrated):
    posterior, _ = calibrated
    assert abs(recovery(posterior, "global", -2.0).z[0]) < 1


@pytest.mark.slow
@pytest.mark.parametrize(("products", "periods"), [(300, 52), (500, 104)])
def test_the_default_market_is_a_usual_one(products, periods):
    """Its seed was chosen for that; a share 3 points off would be unusual in itself for so many products."""
    simulated = simulate(MarketPlan(products=products, periods=periods))
    panel, labels = panel_of_market(simulated)
    posterior = posterior_of(fit(FitPlan(), panel), panel, labels)
    inside = recovery(posterior, "product", simulated.truth.elasticity_product).coverage[0.9]
    assert inside == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(
    ("members", "inside", "verdict"),
    [
        (500, 0.75, "too narrow"),
        (500, 0.81, "about as wide as they should be"),
        (500, 0.97, "about as wide as they should be"),
        (500, 0.99, "too wide"),
        (10, 1.0, "about as wide as they should be"),
        (10, 0.5, "too narrow"),
    ],
)
def test_a_single_market_may_miss_the_promise_by_what_is_usual(members, inside, verdict):
    zeros = np.zeros(members)
    assert width_verdict(Recovery("product", zeros, zeros, 0.0, {0.9: inside})) == verdict


def test_the_density_of_normal_draws_is_the_normal_density():
    grid = np.linspace(-3, 3, 21)
    draws = np.random.default_rng(1).standard_normal(20_000)
    np.testing.assert_allclose(density(draws, grid), stats.norm.pdf(grid), atol=0.02)


def test_draws_that_do_not_vary_are_a_spike_of_area_one():
    assert density(np.full(10, -2.1), np.linspace(-3, 0, 7)).tolist() == [0, 0, 2.0, 0, 0, 0, 0]


@pytest.mark.parametrize("learned", [True, False])
def test_product_densities_integrate_to_one_over_their_grid(learned):
    panel, labels, draws = market()
    if not learned:
        draws.others.pop("elasticity_product_scale")
    found = product_densities(posterior_from_draws(draws, panel, labels), product=4)
    for values in (found.product, found.category):
        assert np.trapezoid(values, found.elasticity) == pytest.approx(1.0, abs=0.03)
    assert found.product.max() > found.category.max()
