"""Mini-batches streamed from host memory: bit for bit the run whose data lie on the device, two blocks there at most.

On one simulated device here; `devices.py` streams to several.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from core.data.sales import RowAccount
from core.errors import UserError
from core.inference import chunks, memory, refusal
from core.inference.engines import draw, fit
from core.inference.fit import Ending, Watcher
from core.inference.plan import ARTICLE_PLAN, FitPlan, SviPlan, plan_with
from core.inference.supply import Streamed
from core.report.results import manifest
from tests.core.inference.test_minibatch import MARKETS
from tests.core.panels import market_panel

STEPS, EPOCH = 150, 4
"""Not a whole number of epochs; long enough for a last digit that differs to spread."""
RESIDENT = FitPlan(engine="svi", svi=SviPlan(steps=STEPS, batch_products=6, data_home="device"))
STREAMED = plan_with(RESIDENT, data_home="host")


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory):
    """Runs that differ in what they are told, not in their programs, share these."""
    kept = jax.config.jax_compilation_cache_dir
    reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    yield
    reset_cache()
    jax.config.update("jax_compilation_cache_dir", kept)


@pytest.fixture(scope="module")
def panel():
    """20 products make no whole number of batches of 6: the tail counts."""
    return market_panel(products=20, periods=26, categories=3, covariate=True)


@pytest.fixture(scope="module")
def resident(panel):
    return fit(RESIDENT, panel)


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.losses, wanted.losses)
    assert found.state.keys() == wanted.state.keys()
    for name, value in wanted.state.items():
        np.testing.assert_array_equal(found.state[name], value)


def test_a_streamed_run_is_the_resident_one_bit_for_bit(panel, resident):
    streamed = fit(STREAMED, panel)
    assert streamed.outcome.ending is Ending.FINISHED
    assert (streamed.diagnostics["data_home"], resident.diagnostics["data_home"]) == ("host", "device")
    assert_same(streamed, resident)
    np.testing.assert_array_equal(
        draw(streamed, panel, 100).elasticity_product, draw(resident, panel, 100).elasticity_product
    )


@pytest.mark.parametrize("market", ["poisson, stores, covariate", "non-centred", "packed", "replicates"])
def test_it_is_so_for_every_layout_of_the_data(market):
    panel, choices = MARKETS[market][0](), MARKETS[market][1]
    assert_same(fit(plan_with(STREAMED, **choices), panel), fit(plan_with(RESIDENT, **choices), panel))


def test_it_is_so_for_the_article_with_one_particle(panel):
    plan = plan_with(ARTICLE_PLAN, batch_products=6, particles=1, steps=STEPS)
    assert_same(fit(plan_with(plan, data_home="host"), panel), fit(plan, panel))


def test_losses_are_bit_identical_for_any_chunk_length(panel, resident, monkeypatch):
    monkeypatch.setattr(chunks.Pace, "after", lambda self, *_: None)
    monkeypatch.setattr(chunks.Pace, "__init__", lambda self: setattr(self, "steps", 7))
    seen: list = []
    streamed = fit(STREAMED, panel, Watcher(on_chunk=lambda chunk: seen.append(len(chunk.losses))))
    assert set(seen[:-1]) == {7}
    assert_same(streamed, resident)


@pytest.mark.parametrize("after, wherever", [(STREAMED, "host"), (RESIDENT, "device")])
def test_a_run_stopped_in_the_middle_of_an_epoch_goes_on_bit_for_bit_wherever_its_data_are(
    panel, resident, monkeypatch, after, wherever
):
    monkeypatch.setattr(chunks.Pace, "after", lambda self, *_: None)
    monkeypatch.setattr(chunks.Pace, "__init__", lambda self: setattr(self, "steps", 7))
    saved: list = []
    watcher = Watcher(
        on_chunk=lambda chunk: saved.append(chunk.checkpoint()), should_stop=lambda: len(saved) == 3
    )  # fmt: skip
    stopped = fit(STREAMED, panel, watcher)
    assert stopped.outcome.ending is Ending.STOPPED and len(stopped.losses) == 21 and 21 % EPOCH
    for state in (stopped.state, saved[1]):
        resumed = fit(after, panel, Watcher(), state)
        assert resumed.diagnostics["data_home"] == wherever
        assert_same(resumed, resident)


def test_at_most_two_blocks_lie_on_the_device(panel, monkeypatch):
    """No array holds the market's cells, and of blocks there are the one in use and the one that comes next."""
    held: list = []
    put = Streamed._put

    def counting(self, step):
        block = put(self, step)
        rows, slots = block.parts.log_price.shape[-2:]
        wide = [leaf.shape for leaf in jax.live_arrays() if leaf.ndim >= 2 and leaf.shape[-1] == slots and leaf.size]
        of_block = [leaf for leaf in jax.tree.leaves(block) if leaf.ndim >= 2 and leaf.shape[-2:] == (rows, slots)]
        blocks = sum(shape[-2:] == (rows, slots) for shape in wide) / len(of_block)
        held.append((blocks, max(np.prod(shape) for shape in wide) / (rows * slots)))
        return block

    monkeypatch.setattr(Streamed, "_put", counting)
    fit(STREAMED, panel)
    assert [blocks for blocks, _ in held] == [1] + [2] * (STEPS - 1)
    assert max(largest for _, largest in held) < EPOCH


def test_a_block_is_put_while_a_step_runs_and_only_once_the_step_before_that_is_done(panel, monkeypatch):
    events: list = []
    put, run = Streamed._put, chunks.Advance.__call__

    def seen_put(self, step):
        sent = [done for kind, done in events if kind == "run"]
        events.append(("put", all(done.is_ready() for done in sent[:-1])))
        return put(self, step)

    def seen_run(self, state, supply, first, steps):
        def one(*args):
            state, losses, done = self.run(*args)
            events.append(("run", done))
            return state, losses, done

        return run(chunks.Advance(one, self.begun, self.look), state, supply, first, steps)

    monkeypatch.setattr(Streamed, "_put", seen_put)
    monkeypatch.setattr(chunks.Advance, "__call__", seen_run)
    fit(plan_with(STREAMED, steps=20), panel)
    assert [kind for kind, _ in events] == ["put", *["run", "put"] * 19, "run"]
    assert all(before_last_done for kind, before_last_done in events if kind == "put")


def test_mini_batches_stream_by_themselves_where_they_do_not_fit_the_device(panel, resident, monkeypatch):
    plan, free = plan_with(RESIDENT, data_home="auto"), memory.FreeMemory(10**9, device=10**9)
    assert fit(plan_with(plan, steps=5), panel).diagnostics["data_home"] == "device"
    here, there = (memory.estimate_memory(one, panel).on_device(free).total for one in (RESIDENT, STREAMED))
    monkeypatch.setattr(refusal, "free_memory", lambda placement: replace(free, device=(here + there) // 2))
    streamed = fit(plan, panel)
    assert manifest(streamed, RowAccount(1, 1), "", "")["diagnostics"]["data_home"] == "host"
    assert_same(streamed, resident)


def test_a_start_that_takes_all_data_on_the_device_is_refused_where_they_stream(panel):
    refused = fit(plan_with(STREAMED, start="structured"), panel).outcome
    assert refused.ending is Ending.FAILED and "Set start=prior" in refused.sentence


def test_streaming_needs_mini_batches():
    with pytest.raises(UserError, match="set batch_products"):
        plan_with(FitPlan(engine="svi"), data_home="host")
