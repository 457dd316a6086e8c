"""What a fit with the structured engine promises: draws, invariances, endings, resuming, bound and checks."""

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
from core.inference.fit import Chunk, Ending, Fit, Watcher
from core.inference.plan import FitPlan, StructuredPlan
from core.inference.structured.blocks import cut
from core.inference.structured.solver import Solver
from core.model.plan import ModelPlan
from core.panel import Panel
from core.simulation import MarketPlan, simulate
from tests.core.inference.structured.dense import dense_fit
from tests.core.panels import market_panel, replicate_panel

SAME = 1e-5
"""Asked for by the project of orders, names, layouts and padding."""
FIXED = FitPlan(
    model=ModelPlan(likelihood="poisson", scales="fixed"), structured=StructuredPlan(tolerance=1e-6, max_iterations=40)
)
LEARNED = FitPlan(model=ModelPlan(likelihood="negbin"))
MARKET = MarketPlan(products=40, periods=20, categories=4, mean_units=6.0, seed=7, filled=0.9)


def fitted(plan: FitPlan, panel: Panel, **watcher) -> Fit:
    return ENGINES["structured"].fit(plan, panel, Watcher(**watcher), None)


@pytest.fixture(scope="module")
def market() -> Panel:
    return panel_of_market(simulate(MARKET), "dense")[0]


@pytest.fixture(scope="module")
def learned(market: Panel) -> Fit:
    return fitted(LEARNED, market)


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


def test_losses_fall_and_every_iteration_is_a_chunk(market: Panel):
    chunks: list[Chunk] = []
    fit = fitted(LEARNED, market, on_chunk=chunks.append, pinned=(3, 0))
    assert [chunk.first_step for chunk in chunks] == list(range(fit.timing.steps))
    np.testing.assert_array_equal(np.concatenate([chunk.losses for chunk in chunks]), fit.losses)
    assert fit.losses[-1] < fit.losses[0]
    last = chunks[-1].estimates
    assert last is not None and last.pinned_mean.shape == (2,)
    assert "largest_change" in chunks[-1].notes and "time_scale" in chunks[-1].notes


def test_stop_keeps_a_usable_result_within_one_iteration(market: Panel):
    chunks: list[Chunk] = []
    fit = fitted(LEARNED, market, on_chunk=chunks.append, should_stop=lambda: len(chunks) >= 1)
    assert len(chunks) == 1
    assert fit.outcome.ending is Ending.STOPPED and fit.outcome.usable
    draws = ENGINES["structured"].draw(fit, market, 100, 0)
    assert np.isfinite(draws.elasticity_product).all()


def test_a_converged_fit_that_is_resumed_to_be_drawn_again_stays_as_it_is(market: Panel, learned: Fit):
    resumed = ENGINES["structured"].fit(LEARNED, market, Watcher(), learned.state)
    assert resumed.outcome == learned.outcome
    np.testing.assert_array_equal(resumed.losses, learned.losses)
    np.testing.assert_array_equal(resumed.diagnostics["mean"], learned.diagnostics["mean"])


def test_resumed_fit_ends_bit_for_bit_where_the_whole_one_does(market: Panel, learned: Fit):
    chunks: list[Chunk] = []
    fitted(LEARNED, market, on_chunk=chunks.append, should_stop=lambda: len(chunks) >= 3)
    assert chunks[-1].checkpoint is not None
    resumed = ENGINES["structured"].fit(LEARNED, market, Watcher(), chunks[-1].checkpoint())
    np.testing.assert_array_equal(resumed.losses, learned.losses)
    np.testing.assert_array_equal(resumed.diagnostics["mean"], learned.diagnostics["mean"])


def test_a_stopped_fit_goes_on_bit_for_bit_from_what_it_kept(market: Panel, learned: Fit):
    chunks: list[Chunk] = []
    stopped = fitted(LEARNED, market, on_chunk=chunks.append, should_stop=lambda: len(chunks) >= 3)
    resumed = ENGINES["structured"].fit(LEARNED, market, Watcher(), stopped.state)
    np.testing.assert_array_equal(resumed.losses, learned.losses)
    np.testing.assert_array_equal(resumed.diagnostics["mean"], learned.diagnostics["mean"])


def test_too_few_iterations_is_an_outcome_that_says_so(market: Panel):
    plan = replace(LEARNED, structured=StructuredPlan(max_iterations=2))
    fit = fitted(plan, market)
    assert fit.outcome.ending is Ending.NOT_CONVERGED and fit.outcome.usable
    assert "2 steps" in fit.outcome.sentence


def test_a_fit_that_breaks_ends_in_a_sentence_and_keeps_its_last_state(market: Panel):
    chunks: list[Chunk] = []

    def break_at_the_third(chunk: Chunk) -> None:
        chunks.append(chunk)
        if len(chunks) == 3:
            raise OSError("the disk is gone")

    fit = fitted(LEARNED, market, on_chunk=break_at_the_third)
    assert fit.outcome.ending is Ending.FAILED and fit.outcome.usable
    assert "the disk is gone" in fit.outcome.sentence
    assert np.isfinite(ENGINES["structured"].draw(fit, market, 50, 0).elasticity_product).all()


def test_a_fit_that_breaks_before_it_begins_is_unusable(market: Panel, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("core.inference.structured.engine._solver", broken)
    fit = fitted(LEARNED, market)
    assert fit.outcome.ending is Ending.FAILED and not fit.outcome.usable and not fit.state
    assert "no room" in fit.outcome.sentence


def test_a_converged_fit_outlives_every_point_around_it(market: Panel, learned: Fit, monkeypatch: pytest.MonkeyPatch):
    iterate = Solver.iterate

    def without_points(solver: Solver, state, learn: bool = True):
        if not learn:
            raise np.linalg.LinAlgError
        return iterate(solver, state)

    monkeypatch.setattr(Solver, "iterate", without_points)
    fit = fitted(LEARNED, market)
    assert fit.outcome.ending is Ending.CONVERGED and fit.diagnostics["points"] == 1
    sd = learned.diagnostics["sd"]
    assert np.abs((fit.diagnostics["mean"] - learned.diagnostics["mean"]) / sd).max() < 0.5


def test_one_point_whose_numbers_leave_their_range_is_dropped(
    market: Panel, learned: Fit, monkeypatch: pytest.MonkeyPatch
):
    reached = []

    def correction(solver: Solver, state) -> float:
        reached.append(state)
        return np.nan if len(reached) == 2 else 0.0

    monkeypatch.setattr("core.inference.structured.integrate.evidence_correction", correction)
    fit = fitted(LEARNED, market)
    assert fit.outcome.ending is Ending.CONVERGED
    assert fit.diagnostics["points"] == learned.diagnostics["points"] - 1
    assert np.isfinite(fit.diagnostics["bound"])


def test_few_categories_are_warned_of(market: Panel, learned: Fit):
    assert any("4 categories" in sentence for sentence in learned.diagnostics["warnings"])


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
