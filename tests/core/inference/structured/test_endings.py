"""How a structured fit ends: chunks, stopping, resuming bit for bit, and what is kept of one that breaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.inference.engines import ENGINES
from core.inference.fit import Chunk, Ending, Fit, Watcher
from core.inference.plan import StructuredPlan
from core.inference.structured.solver import Solver
from core.panel import Panel
from tests.core.inference.structured.fits import LEARNED, fitted


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
