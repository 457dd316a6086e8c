"""Mini-batches of products: the mean of an epoch is the market, and a run on them is a run like any other."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from core.errors import UserError
from core.inference import chunks
from core.inference.batches import cut, take
from core.inference.dividing import cut_fillers, divide, pad_fillers
from core.inference.engines import draw, fit
from core.inference.fit import Ending, Watcher
from core.inference.minibatch import build_batch_program
from core.inference.plan import ARTICLE_PLAN, FitPlan, SviPlan, plan_with
from core.inference.program import build_program, is_own
from core.inference.starts import DECENTRED, first_start
from core.inference.supply import Resident, visited
from core.model import sites
from tests.core.panels import market_panel, replicate_panel

RTOL = 2e-5
"""Of the largest slope: float32 sums of the same terms, batch by batch or all at once."""
MEAN_TOLERANCE, SD_TOLERANCE = 0.1, 0.05
"""In sd, and as a share: what two optimisers with different random numbers may differ by at their end."""
SHORT = FitPlan(engine="svi", svi=SviPlan(steps=61, batch_products=6))
"""Not a whole number of epochs, and 20 products are no whole number of batches: the tail counts."""
MARKETS = {
    "poisson, stores, covariate": (lambda: market_panel(stores=2, covariate=True), {"likelihood": "poisson"}),
    "negative binomial": (market_panel, {"likelihood": "negbin"}),
    "non-centred": (market_panel, {"parameterisation": "noncentred"}),
    "packed": (lambda: market_panel(layout="packed", filled=0.3), {"likelihood": "negbin"}),
    "replicates": (lambda: replicate_panel(products=9), {}),
    "shared periods, fixed scales": (market_panel, {"time_effects": "shared", "scales": "fixed"}),
}


def negative_elbo(svi, panel, loc, width, noise):
    """Minus log p(z, units) + log q(z) at z = loc + width x noise, positive unknowns by their logarithm."""
    z = {name: loc[name] + width[name] * noise[name] for name in loc}
    z = {name: jnp.exp(value) if name in sites.SCALES else value for name, value in z.items()}
    params = {f"{name}_auto_loc": loc[name] for name in loc} | {f"{name}_auto_scale": width[name] for name in loc}
    return log_density(svi.guide, (panel,), {}, {**params, **z})[0] - log_density(svi.model, (panel,), {}, z)[0]


def real_of(name: str, divided) -> np.ndarray:
    return np.asarray(divided.real_product if name.removesuffix(DECENTRED) == sites.PRODUCT else divided.real_series)


@pytest.mark.parametrize("market", MARKETS)
def test_the_mean_over_an_epoch_is_the_loss_of_the_market_and_its_slopes(market):
    panel, choices = MARKETS[market][0](), MARKETS[market][1]
    plan, count = plan_with(SHORT, **choices), 4
    whole = build_program(plan, panel, first_start(plan, panel, panel))
    divided = divide(panel, count)
    batches = cut(divided, 1)
    program = build_batch_program(plan, divided, batches, first_start(plan, panel, divided))
    random = np.random.default_rng(0)
    shapes = {name: np.shape(value) for name, value in whole.guide._init_locs.items()}
    loc = {name: np.asarray(value + 0.1 * random.normal(size=shapes[name]), np.float32)
           for name, value in whole.guide._init_locs.items()}  # fmt: skip
    width = {name: random.uniform(0.05, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    noise = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    slopes_of = jax.value_and_grad(negative_elbo, argnums=(2, 3))
    value, slopes = jax.jit(lambda p: slopes_of(whole.svi, p, loc, width, noise))(panel)

    def part(tree, number):
        return {
            name: pad_fillers(leaf, real_of(name, divided), 0.5).reshape(count, -1)[number] if is_own(name) else leaf
            for name, leaf in tree.items()
        }

    run = jax.jit(lambda p, *trees: slopes_of(program.one.svi, p, *trees))
    found = [run(take(batches, b), part(loc, b), part(width, b), part(noise, b)) for b in range(count)]
    assert np.mean([float(one) for one, _ in found]) == pytest.approx(float(value), rel=RTOL)
    for of, wanted in enumerate(slopes):
        for name, slope in wanted.items():
            parts = np.stack([np.asarray(one[of][name]) for _, one in found])
            if is_own(name):
                assert (parts.ravel()[~real_of(name, divided)] == 0).all()
                mean = cut_fillers(parts.ravel(), real_of(name, divided)) / count
            else:
                mean = parts.mean(axis=0)
            np.testing.assert_allclose(mean, slope, atol=RTOL * max(np.abs(slope).max(), np.abs(parts).max()))


def test_an_epoch_visits_every_batch_once_and_leaves_the_other_products_alone():
    panel, count = market_panel(products=20), 4
    divided = divide(panel, count)
    batches = cut(divided, 1)
    program = build_batch_program(SHORT, divided, batches, first_start(SHORT, panel, divided))
    step, state, visits = jax.jit(program.step), program.first, []
    for at in range(5 * count):
        before, (state, _) = state, step(state, Resident(batches, seed=0).piece(at), 0)
        changed = [np.any(np.asarray(a != b), axis=-1)[0] for a, b in zip(
            jax.tree.leaves(before.own[0]), jax.tree.leaves(state.own[0]), strict=True)]  # fmt: skip
        assert all((one == changed[0]).all() and one.sum() == 1 for one in changed)
        visits.append(int(np.flatnonzero(changed[0])[0]))
    epochs = np.reshape(visits, (5, count))
    assert (np.sort(epochs, axis=1) == np.arange(count)).all()
    assert len(np.unique(epochs, axis=0)) > 1


@pytest.mark.parametrize("count", [2, 7, 5_000])
def test_the_order_of_visits_does_not_depend_on_how_it_is_asked_for(count):
    whole = visited(3, count, 0, 12_000)
    parts = [visited(3, count, first, 3_000) for first in range(0, 12_000, 3_000)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    epochs = whole[: count * (12_000 // count)].reshape(-1, count)
    assert (np.sort(epochs, axis=1) == np.arange(count)).all()
    assert not np.array_equal(whole, visited(4, count, 0, 12_000))


@pytest.fixture(scope="module")
def panel():
    return market_panel(products=20, periods=26, categories=3, covariate=True)


@pytest.fixture(scope="module")
def whole(panel):
    """A run never disturbed, and a checkpoint from the middle of an epoch."""
    saved: list = []
    seen: list = []

    def keep(chunk):
        seen.append(len(chunk.losses))
        saved.append((sum(seen), chunk.checkpoint()))

    result = fit(SHORT, panel, Watcher(on_chunk=keep, pinned=(0, 19)))
    return result, seen, saved[0]


def test_losses_are_bit_identical_for_any_chunk_length(panel, whole, monkeypatch):
    monkeypatch.setattr(chunks.Pace, "after", lambda self, *_: None)
    monkeypatch.setattr(chunks.Pace, "__init__", lambda self: setattr(self, "steps", 7))
    seen: list = []
    losses = fit(SHORT, panel, Watcher(on_chunk=lambda chunk: seen.append(len(chunk.losses)))).losses
    assert seen != whole[1]
    np.testing.assert_array_equal(losses, whole[0].losses)


def test_resume_continues_bit_for_bit(panel, whole):
    result, _, (steps, saved) = whole
    resumed = fit(SHORT, panel, Watcher(), saved)
    assert 0 < resumed.timing.steps == SHORT.svi.steps - steps
    np.testing.assert_array_equal(resumed.losses, result.losses)
    for name, value in result.state.items():
        np.testing.assert_array_equal(resumed.state[name], value)


def test_draws_have_every_product_and_series_once(panel, whole):
    draws = draw(whole[0], panel, 100)
    assert draws.elasticity_product.shape == (100, 20) and np.isfinite(draws.level_series).all()


def test_a_batch_of_all_products_is_the_plain_run(panel):
    plain = fit(plan_with(SHORT, batch_products=0), panel)
    np.testing.assert_array_equal(fit(plan_with(SHORT, batch_products=500), panel).losses, plain.losses)


def test_a_loss_that_is_not_a_number_leaves_the_state_as_it_was(panel):
    broken = replace(panel, log_price=np.where(panel.weight > 0, np.nan, 0).astype(np.float32))
    result = fit(SHORT, broken)
    assert result.outcome.ending is Ending.DIVERGED and not result.outcome.usable


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["Trace_ELBO", "TraceMeanField_ELBO"])
def test_the_posterior_is_that_of_the_full_batch(loss):
    panel = market_panel(products=13, periods=40, categories=3, mean_units=100.0, filled=1.0)
    plan = FitPlan(engine="svi", svi=SviPlan(learning_rate=0.03, particles=4, loss=loss))
    found, losses = [], []
    for batch, steps in ((0, 4_000), (5, 12_000)):
        result = fit(plan_with(plan, batch_products=batch, steps=steps), panel)
        draws = draw(result, panel, 10_000, 1).elasticity_product
        found.append((draws.mean(axis=0), draws.std(axis=0)))
        losses.append(result.losses[-1_000:].mean())
    (mean, sd), (other, other_sd) = found
    assert (np.abs(other - mean) < MEAN_TOLERANCE * sd).all()
    assert (np.abs(other_sd / sd - 1) < SD_TOLERANCE).all()
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_one_particle_makes_the_renyi_bound_a_sum_over_products(panel):
    result = fit(plan_with(SHORT, loss="RenyiELBO", particles=1), panel)
    assert result.outcome.ending is Ending.FINISHED


@pytest.mark.parametrize("choices, word", [
    ({"loss": "RenyiELBO", "particles": 4}, "no sum over products"),
    ({"guide": "AutoMultivariateNormal"}, "use AutoNormal, AutoDelta"),
])  # fmt: skip
def test_plans_that_do_not_split_over_products_are_refused_with_what_would_do(choices, word):
    with pytest.raises(UserError, match=word):
        plan_with(SHORT, **choices)


def test_the_article_can_take_a_few_products_at_a_time_with_one_particle(panel):
    plan = plan_with(ARTICLE_PLAN, batch_products=6, particles=1, steps=40)
    assert fit(plan, panel).outcome.ending is Ending.FINISHED
