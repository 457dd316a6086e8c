"""What a fit with the structured engine promises: draws, invariances, bound and checks."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from core.data.coded import Cells
from core.data.markets import panel_of_market
from core.data.paneling import panel_of_cells
from core.inference.engines import ENGINES
from core.inference.fit import Ending, Fit
from core.inference.structured.blocks import cut
from core.inference.structured.solver import Solver
from core.model.plan import ModelPlan
from core.panel import Panel
from core.simulation import simulate
from tests.core.inference.structured.dense import dense_fit
from tests.core.inference.structured.fits import FIXED, LEARNED, MARKET, fitted
from tests.core.panels import market_panel, replicate_panel

SAME = 1e-5
"""Asked for by the project of orders, names, layouts and padding."""


def test_draws_have_the_mean_and_covariance_of_the_dense_posterior():
    panel, n = market_panel(), 4_000
    expected = dense_fit(panel, FIXED.model)
    draws = ENGINES["structured"].draw(fitted(FIXED, panel), panel, n, 0)
    drawn = np.column_stack(
        [
            draws.elasticity_global,
            draws.elasticity_category,
            draws.elasticity_product,
            draws.level_series,
            draws.others["time_effect"].reshape(n, -1),
        ]
    )
    at = np.concatenate([expected.at[name] for name in ("global", "category", "product", "level", "time")])
    covariance = expected.covariance[np.ix_(at, at)]
    sd = np.sqrt(np.diagonal(covariance))
    z = (drawn.mean(axis=0) - expected.mean[at]) / (sd / np.sqrt(n))
    assert np.abs(z).max() < 4.5, "largest of 54 standard normals"
    correlation = covariance / np.outer(sd, sd)
    np.testing.assert_allclose(np.corrcoef(drawn.T), correlation, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(drawn.std(axis=0) / sd, 1.0, atol=5 / np.sqrt(2 * n))


def renumbered(order: np.ndarray, seed: int) -> Panel:
    """The market with its products renumbered and its cells shuffled; categories in reverse."""
    market = simulate(MARKET)
    new = np.argsort(order)
    cells = np.random.default_rng(seed).permutation(market.n_cells)
    return panel_of_cells(
        Cells(
            product=new[market.product[cells]],
            store=market.store[cells],
            period=market.period[cells],
            log_price=np.log(market.price[cells]),
            units=market.units[cells].astype(float),
            covariates=np.zeros((0, cells.size)),
            category_of_product=MARKET.categories - 1 - market.category_of_product[order],
            n_categories=MARKET.categories,
            n_periods=MARKET.periods,
        ),
        "dense",
    )[0]


def test_order_of_products_categories_and_rows_does_not_matter(market: Panel):
    category = simulate(MARKET).category_of_product
    order = np.lexsort((np.random.default_rng(0).random(MARKET.products), -category))
    plain, shuffled = (fitted(FIXED, panel).diagnostics for panel in (market, renumbered(order, 5)))
    np.testing.assert_allclose(shuffled["mean"], plain["mean"][order], atol=SAME)
    np.testing.assert_allclose(shuffled["sd"], plain["sd"][order], atol=SAME)


def test_dense_and_packed_layouts_agree(market: Panel):
    packed = panel_of_market(simulate(MARKET), "packed")[0]
    assert packed.period is not None
    one, other = fitted(FIXED, market).diagnostics, fitted(FIXED, packed).diagnostics
    np.testing.assert_allclose(one["mean"], other["mean"], atol=SAME)
    np.testing.assert_allclose(one["sd"], other["sd"], atol=SAME)


@pytest.mark.parametrize("panel", [market_panel(stores=3, covariate=True), replicate_panel()], ids=["stores", "strips"])
def test_blocks_hold_every_cell_once_and_whole_products(panel: Panel):
    blocks, places = cut(panel, multiple=4)
    assert blocks.category.size % 4 == 0
    assert blocks.units.sum() == np.asarray(panel.units).sum()
    assert blocks.weight.sum() == np.asarray(panel.weight).sum()
    assert blocks.real_product.sum() == panel.n_products
    product_of_row = np.asarray(panel.product_of_series)[np.asarray(panel.series_of_row)]
    for product in range(panel.n_products):
        rows = places.row[(product_of_row == product) & np.asarray(panel.weight).any(axis=1)]
        assert np.all(rows // places.shape[1] == places.product[product] // places.shape[1])


def test_bound_is_just_below_the_log_evidence():
    """One product without periods: parents integrate out by hand, the rest on a grid."""
    panel = replicate_panel(products=1, rows=6)
    panel = replace(panel, covariates=np.zeros((0, *panel.log_price.shape), np.float32))
    priors, observed = FIXED.model.priors, np.asarray(panel.weight) > 0
    x, y = np.asarray(panel.log_price)[observed], np.asarray(panel.units)[observed]
    slope_sd = np.sqrt(priors.elasticity_sd**2 + 2)
    level_sd = np.sqrt(priors.level_sd**2 + priors.level_category_scale**2 + priors.level_series_scale**2)
    slope = np.linspace(-2 - 7 * slope_sd, -2 + 7 * slope_sd, 801)[:, None]
    centre = np.log(y.mean())
    level = np.linspace(centre - 4, centre + 4, 1_601)[None, :]
    value = -0.5 * ((slope + 2) / slope_sd) ** 2 - 0.5 * ((level - centre) / level_sd) ** 2
    value -= np.log(2 * np.pi * slope_sd * level_sd)
    for price, units in zip(x, y, strict=True):
        eta = level + slope * price
        value = value + units * eta - np.exp(eta) - gammaln(units + 1)
    evidence = logsumexp(value) + np.log((slope[1, 0] - slope[0, 0]) * (level[0, 1] - level[0, 0]))
    bound = fitted(FIXED, panel).diagnostics["bound"]
    assert evidence - 0.05 < bound < evidence


def test_learned_scales_are_integrated_over(market: Panel, learned: Fit):
    assert learned.outcome.ending is Ending.CONVERGED
    assert learned.diagnostics["points"] > 1
    draws = ENGINES["structured"].draw(learned, market, 1_000, 0)
    for name in ("elasticity_category_scale", "level_category_scale", "elasticity_product_scale"):
        assert draws.others[name].std() > 0.01
    assert np.isfinite(draws.others["concentration_category"]).all()


def test_draws_spread_as_the_analytic_mixture_says(market: Panel, learned: Fit):
    draws = ENGINES["structured"].draw(learned, market, 4_000, 1)
    mean, sd = learned.diagnostics["mean"], learned.diagnostics["sd"]
    assert np.abs((draws.elasticity_product.mean(axis=0) - mean) / sd).max() < 0.1
    np.testing.assert_allclose(draws.elasticity_product.std(axis=0) / sd, 1.0, atol=0.1)


def test_check_finds_a_plain_market_in_order(learned: Fit):
    found = learned.diagnostics
    assert np.mean(found["k_hat"] > 0.7) < 0.1
    good = found["k_hat"] < 0.7
    assert np.abs((found["corrected_mean"] - found["mean"]) / found["sd"])[good].max() < 0.2
    assert np.abs(found["corrected_sd"] / found["sd"] - 1)[good].max() < 0.2


def test_few_categories_are_warned_of(market: Panel, learned: Fit):
    assert any("4 categories" in sentence for sentence in learned.diagnostics["warnings"])


def test_a_market_too_large_for_its_points_says_so(market: Panel, learned: Fit, monkeypatch):
    monkeypatch.setattr("core.inference.structured.integrate.MOST_CELLS", 1)
    held = fitted(LEARNED, market).diagnostics["warnings"]
    assert any("too large to integrate" in sentence and "product" in sentence for sentence in held)
    assert not any("too large to integrate" in sentence for sentence in learned.diagnostics["warnings"])


@pytest.mark.parametrize("categories, periods", [(1, 8), (12, 5), (3, 1)])
def test_odd_shapes_converge(categories: int, periods: int):
    panel = market_panel(categories=categories, periods=periods, mean_units=1.0)
    fit = fitted(replace(LEARNED, model=ModelPlan()), panel)
    assert fit.outcome.ending is Ending.CONVERGED, fit.outcome.sentence
    assert np.isfinite(fit.diagnostics["sd"]).all()


def test_constant_products_take_their_categorys_elasticity():
    panel = market_panel(constant_share=1.0)
    with jax.enable_x64(True):
        solver = Solver(FIXED.model, panel, jax.devices()[:1])
        state = solver.start()
        for _ in range(15):
            state = solver.iterate(state, learn=False)
        elasticity = solver.places.gather(state.position.elasticity, "product")
        category = state.means.shared[:, solver.columns.elasticity]
    np.testing.assert_allclose(elasticity, category[np.asarray(panel.category_of_product)], atol=SAME)
