"""NUTS on the demand model: agrees with the structured engine where that is near exact, stops, resumes, compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.inference.compare import compare_with_nuts
from core.inference.engines import ENGINES
from core.inference.fit import Chunk, Ending, Watcher
from core.inference.nuts import ARRAY
from core.inference.plan import FitPlan, NutsPlan
from core.inference.subset import subset
from core.model import sites
from core.model.plan import ModelPlan
from core.panel import Panel
from tests.core.panels import market_panel, replicate_panel

SHORT = FitPlan(
    model=ModelPlan(likelihood="poisson", scales="fixed"), engine="nuts", nuts=NutsPlan(warmup=20, samples=30, chains=2)
)
SHIFT = 0.05 + 0.07
"""Means agree within 0.05 sd; three standard errors of NUTS' own mean come on top."""
RATIO = 0.05 + 0.06
"""Ratios of sd likewise."""


@pytest.fixture(scope="module")
def panel() -> Panel:
    return market_panel(products=6, periods=5, categories=2)


def sampled(panel: Panel, plan: FitPlan = SHORT, resume=None, **watcher):
    return ENGINES["nuts"].fit(plan, panel, Watcher(**watcher), resume)


def test_chains_run_in_chunks_and_come_back_as_draws(panel: Panel):
    chunks: list[Chunk] = []
    fit = sampled(panel, on_chunk=chunks.append, pinned=(1,))
    assert fit.outcome.usable
    assert fit.timing.steps == 2 * (20 + 30) == sum(len(chunk.losses) for chunk in chunks)
    assert [c.first_step for c in chunks] == np.cumsum([0, *(len(c.losses) for c in chunks[:-1])]).tolist()
    assert chunks[-1].estimates is not None and chunks[-1].estimates.pinned_mean.shape == (1,)
    assert fit.diagnostics["r_hat"].shape == (panel.n_products,)
    draws = ENGINES["nuts"].draw(fit, panel, 60, 0)
    assert draws.elasticity_product.shape == (60, panel.n_products)
    np.testing.assert_array_equal(np.sort(draws.elasticity_global), np.sort(fit.state[ARRAY + sites.GLOBAL]))
    assert len(np.unique(draws.elasticity_global)) > 1


def test_stop_in_warm_up_says_that_nothing_is_usable(panel: Panel):
    chunks: list[Chunk] = []
    fit = sampled(panel, on_chunk=chunks.append, should_stop=lambda: len(chunks) >= 1)
    assert fit.outcome.ending is Ending.STOPPED and not fit.outcome.usable


def test_resumed_chains_are_the_whole_ones(panel: Panel):
    whole: list[Chunk] = []
    fit = sampled(panel, on_chunk=whole.append)
    some: list[Chunk] = []
    stopped = sampled(panel, on_chunk=some.append, should_stop=lambda: len(some) >= 4)
    assert some[-1].checkpoint is not None
    for kept in (some[-1].checkpoint(), stopped.state):
        resumed = sampled(panel, resume=kept)
        for name, values in fit.state.items():
            np.testing.assert_array_equal(resumed.state[name], values, err_msg=name)


def test_a_run_that_breaks_ends_in_a_sentence_and_keeps_its_draws(panel: Panel):
    chunks: list[Chunk] = []

    def break_after_warm_up(chunk: Chunk) -> None:
        chunks.append(chunk)
        if sum(len(chunk.losses) for chunk in chunks) >= 50:
            raise OSError("the disk is gone")

    fit = sampled(panel, on_chunk=break_after_warm_up)
    assert fit.outcome.ending is Ending.FAILED and fit.outcome.usable
    assert "the disk is gone" in fit.outcome.sentence
    assert len(fit.state["draws_elasticity_global"]) == 30


def test_a_run_without_a_start_ends_in_the_start_s_own_sentence(panel: Panel, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("core.inference.structured.engine._solver", broken)
    fit = sampled(panel)
    assert fit.outcome.ending is Ending.FAILED and not fit.outcome.usable
    assert "gave no start" in fit.outcome.sentence and "no room" in fit.outcome.sentence


def test_live_estimates_are_the_moments_of_the_draws_so_far(panel: Panel):
    chunks: list[Chunk] = []
    fit = sampled(panel, on_chunk=chunks.append, pinned=(4, 1))
    found, draws = chunks[-1].estimates, fit.state["draws_elasticity_product"].astype(np.float64)
    assert found is not None
    np.testing.assert_allclose(found.pinned_mean, draws[:, [4, 1]].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.pinned_sd, draws[:, [4, 1]].std(axis=0), atol=1e-9)


@pytest.mark.parametrize("likelihood", ["negbin"])
def test_negative_binomial_without_periods_and_learned_scales_samples(likelihood: str):
    plan = replace(SHORT, model=ModelPlan(likelihood=likelihood), nuts=NutsPlan(warmup=20, samples=20, chains=1))
    fit = sampled(replicate_panel(), plan)
    assert fit.outcome.usable
    assert fit.state["draws_concentration_category"].shape == (20, 2)


def test_subset_is_the_market_of_its_products():
    panel = market_panel(stores=2, covariate=True)
    part = subset(panel, [1, 2, 9])
    assert (part.n_products, part.n_categories, part.n_series) == (3, 2, 6)
    series = np.isin(np.asarray(panel.product_of_series), [1, 2, 9])
    np.testing.assert_array_equal(part.sums.series, np.asarray(panel.sums.series)[series])
    np.testing.assert_allclose(part.sums.product_price, np.asarray(panel.sums.product_price)[[1, 2, 9]], rtol=1e-6)
    rows = np.isin(np.asarray(panel.product_of_series)[np.asarray(panel.series_of_row)], [1, 2, 9])
    assert np.asarray(part.units).sum() == np.asarray(panel.units)[rows].sum()


@pytest.mark.slow
def test_structured_agrees_with_nuts_on_thin_poisson_counts():
    panel = market_panel(products=10, periods=12, categories=2, mean_units=1.5, filled=1.0)
    plan = replace(SHORT, engine="structured", nuts=NutsPlan(warmup=200, samples=1_500, chains=1))
    found = compare_with_nuts(ENGINES["structured"].fit(plan, panel, Watcher(), None), panel)
    assert np.abs(found.shift).max() < SHIFT
    np.testing.assert_allclose(found.sd_ratio, 1.0, atol=RATIO)


def test_comparison_of_chosen_products_names_them():
    panel = market_panel(products=8, periods=5, categories=2)
    plan = replace(SHORT, engine="structured")
    found = compare_with_nuts(ENGINES["structured"].fit(plan, panel, Watcher(), None), panel, products=(5, 1))
    assert found.level == ("global", "category", "category", "product", "product")
    assert found.number[-2:] == (1, 5)
    assert found.fitted.mean.shape == found.nuts.sd.shape == (5,)
