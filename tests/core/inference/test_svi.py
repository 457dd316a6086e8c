"""The SVI engine: the same losses as NumPyro's own loop, whatever the chunks; stop, resume, divergence, draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpyro.infer import SVI

from core.data.markets import panel_of_market
from core.inference import chunks
from core.inference.engines import draw, fit
from core.inference.fit import Ending, Watcher
from core.inference.guides import GUIDES
from core.inference.plan import ARTICLE_PLAN, FitPlan, SviPlan, plan_with
from core.inference.program import build_program
from core.inference.starts import first_start
from core.model.demand import site_names
from core.model.plan import ModelPlan
from core.simulation import MarketPlan, simulate
from tests.core.panels import market_panel, replicate_panel

LOSS_RTOL = 1e-5
"""Two compilations of the same program may add float32 numbers in different order."""
SHORT = FitPlan(engine="svi", svi=SviPlan(steps=157))
"""Not a multiple of any chunk length in use: the tail counts."""


@pytest.fixture(scope="module")
def panel():
    return market_panel(products=20, periods=26, categories=3, covariate=True)


@pytest.fixture(scope="module")
def whole(panel):
    """A run never disturbed: its fit, its chunks, its phases and a checkpoint from its middle."""
    seen, phases, saved = [], [], []

    def keep(chunk):
        seen.append(chunk)
        if len(seen) == 2:
            saved.append(chunk.checkpoint())

    result = fit(SHORT, panel, Watcher(on_phase=phases.append, on_chunk=keep, pinned=(0, 19)))
    return result, seen, phases, saved[0]


def with_chunks_of(monkeypatch, steps: int) -> None:
    monkeypatch.setattr(chunks.Pace, "after", lambda self, *_: None)
    monkeypatch.setattr(chunks.Pace, "__init__", lambda self: setattr(self, "steps", steps))


@pytest.mark.parametrize("steps", [7, 1000])
def test_losses_are_bit_identical_for_any_chunk_length(panel, whole, monkeypatch, steps):
    with_chunks_of(monkeypatch, steps)
    seen: list = []
    losses = fit(SHORT, panel, Watcher(on_chunk=seen.append)).losses
    assert [len(chunk.losses) for chunk in seen] != [len(chunk.losses) for chunk in whole[1]]
    np.testing.assert_array_equal(losses, whole[0].losses)


@pytest.mark.parametrize("loss", ["Trace_ELBO", "RenyiELBO"])
def test_losses_equal_numpyros_own_loop(panel, loss):
    plan = plan_with(SHORT, loss=loss, particles=2)
    program = build_program(plan, panel, first_start(plan, panel, panel))
    svi: SVI = program.svi
    own = svi.run(program.first.rng_key, plan.svi.steps, panel, progress_bar=False, init_state=program.first)
    np.testing.assert_allclose(fit(plan, panel).losses, own.losses, rtol=LOSS_RTOL)


def test_a_run_compiles_once(panel, monkeypatch):
    traces = []
    advance = chunks._advance
    monkeypatch.setattr(chunks, "_advance", lambda *args: (traces.append(1), advance(*args))[1])
    seen: list = []
    fit(SHORT, panel, Watcher(on_chunk=seen.append))
    assert len(seen) > 2
    assert len(traces) == 1


def test_chunks_account_for_every_step_and_phase(whole):
    result, seen, phases, _ = whole
    assert phases == ["compiling", "running"]
    assert [chunk.first_step for chunk in seen] == list(np.cumsum([0] + [len(c.losses) for c in seen])[:-1])
    np.testing.assert_array_equal(np.concatenate([chunk.losses for chunk in seen]), result.losses)
    last = seen[-1].estimates
    assert last.category_mean.shape == (3,) and last.pinned_sd.shape == (2,)
    assert result.outcome.ending is Ending.FINISHED and result.timing.steps == SHORT.svi.steps
    assert result.timing.compile_seconds > 0 and result.timing.run_seconds > 0


def test_stop_ends_after_the_chunk_and_keeps_a_usable_posterior(panel):
    seen: list = []
    watcher = Watcher(on_chunk=seen.append, should_stop=lambda: len(seen) == 2)
    result = fit(SHORT, panel, watcher)
    assert result.outcome.ending is Ending.STOPPED and result.outcome.usable
    assert len(seen) == 2 and len(result.losses) < SHORT.svi.steps
    assert np.isfinite(draw(result, panel, 100).elasticity_product).all()


def test_resume_continues_bit_for_bit(panel, whole):
    result, _, _, saved = whole
    resumed = fit(SHORT, panel, Watcher(), saved)
    assert 0 < resumed.timing.steps < SHORT.svi.steps
    np.testing.assert_array_equal(resumed.losses, result.losses)
    for name, value in result.state.items():
        np.testing.assert_array_equal(resumed.state[name], value)


def test_more_steps_on_a_finished_fit_keep_its_losses(panel, whole):
    more = fit(plan_with(SHORT, steps=200), panel, Watcher(), whole[0].state)
    assert len(more.losses) == 200 and more.timing.steps == 43
    np.testing.assert_array_equal(more.losses[:157], whole[0].losses)


def test_a_checkpoint_of_another_guide_is_refused_in_a_sentence(panel, whole):
    other = fit(plan_with(SHORT, guide="AutoDelta"), panel, Watcher(), whole[3])
    assert other.outcome.ending is Ending.FAILED and not other.outcome.usable
    assert "belongs to another" in other.outcome.sentence


def test_a_loss_that_is_not_a_number_ends_as_an_outcome_that_names_the_step(panel):
    broken = replace(panel, log_price=np.where(panel.weight > 0, np.nan, 0).astype(np.float32))
    result = fit(SHORT, broken)
    assert result.outcome.ending is Ending.DIVERGED and not result.outcome.usable
    assert "step 1:" in result.outcome.sentence
    assert len(result.losses) < SHORT.svi.steps


def test_a_run_that_diverges_later_keeps_its_last_good_state(panel):
    result = fit(plan_with(SHORT, optimizer="sgd", learning_rate=0.02, schedule="constant"), panel)
    assert result.outcome.ending is Ending.DIVERGED and result.outcome.usable
    assert all(np.isfinite(value).all() for name, value in result.state.items() if name != "losses")


def test_a_plateau_ends_the_run_where_the_plan_asks_for_it(panel):
    plan = plan_with(SHORT, steps=20_000, stop_at_plateau=True, schedule="constant", learning_rate=0.02)
    result = fit(plan, panel)
    assert result.outcome.ending is Ending.CONVERGED
    assert 160 < len(result.losses) < 20_000


@pytest.mark.parametrize("guide", [name for name in GUIDES if name != "AutoBNAFNormal"])
def test_every_guide_fits_and_draws_every_site(guide):
    tiny = market_panel(products=4, periods=4, categories=2, covariate=True)
    result = fit(plan_with(SHORT, guide=guide, learning_rate=0.005, steps=60), tiny)
    assert result.outcome.ending is Ending.FINISHED, result.outcome.sentence
    draws = draw(result, tiny, 100)
    named = {"elasticity_global", "elasticity_category", "elasticity_product", "level_series", *draws.others}
    assert named == set(site_names(tiny, ModelPlan()))
    assert draws.elasticity_product.shape == (100, 4) and np.isfinite(draws.elasticity_product).all()


@pytest.mark.slow
def test_the_block_neural_flow_fits_too():
    tiny = market_panel(products=2, periods=2, categories=1)
    result = fit(plan_with(SHORT, guide="AutoBNAFNormal", learning_rate=0.003, steps=20, time_effects="none"), tiny)
    assert result.outcome.usable, result.outcome.sentence


def test_centred_and_noncentred_fits_agree_where_data_are_plenty():
    rich = market_panel(products=8, periods=60, categories=2, mean_units=200.0, filled=1.0, constant_share=0.0)
    means, sds = [], []
    for parameterisation in ("centred", "noncentred"):
        result = fit(plan_with(SHORT, parameterisation=parameterisation, steps=4000), rich)
        found = draw(result, rich, 1000).elasticity_product
        means.append(found.mean(axis=0))
        sds.append(found.std(axis=0))
    moving = sds[0] < 0.5
    assert moving.sum() >= 3
    assert (np.abs(means[0] - means[1]) < 2 * np.maximum(*sds))[moving].all()


def test_article_draws_give_levels_at_each_series_own_mean_price(panel):
    plan = replace(ARTICLE_PLAN, svi=replace(ARTICLE_PLAN.svi, steps=3000, learning_rate=0.05, loss="Trace_ELBO"))
    draws = draw(fit(plan, panel), panel, 200)
    assert np.corrcoef(draws.level_series.mean(axis=0), panel.sums.log_mean)[0, 1] > 0.9


def test_replicates_without_periods_fit():
    result = fit(SHORT, replicate_panel())
    assert result.outcome.usable and result.losses[-20:].mean() < result.losses[:20].mean()


def test_a_mode_that_this_machine_lacks_ends_in_its_reason(panel):
    result = fit(plan_with(SHORT, placement="cpu:999"), panel)
    assert result.outcome.ending is Ending.FAILED
    assert "JAX_NUM_CPU_DEVICES=999" in result.outcome.sentence


@pytest.mark.slow
def test_the_default_plan_is_within_a_tenth_of_the_best_that_longer_runs_reach():
    market = simulate(MarketPlan(products=500, periods=104, seed=2))
    panel, _ = panel_of_market(market)
    errors = []
    for plan in (FitPlan(engine="svi"), plan_with(FitPlan(engine="svi"), steps=10_000, learning_rate=0.03)):
        found = draw(fit(plan, panel), panel, 400).elasticity_product.mean(axis=0)
        errors.append(np.sqrt(np.mean((found - market.truth.elasticity_product) ** 2)))
    assert errors[0] < 1.1 * errors[1]
