"""The manager queues, runs, ends and shows runs; nothing it has said is lost."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from core.data.source import Source
from core.errors import UserError
from core.inference.fit import Ending
from core.inference.plan import plan_with
from core.runs import manager as manager_module
from core.runs.checkpoints import Checkpoints
from core.runs.manager import RunManager, get_manager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunSnapshot, RunState
from core.runs.work import last_loss
from core.settings import Settings
from tests.core.runs.conftest import PLAN, small_source
from tests.core.runs.engine import Walk

PATIENCE = 60.0
"""Seconds after which a test gives up on a run that should end in one."""


class Gate:
    """Holds the engine after a given step until the test lets it go."""

    def __init__(self, walk: Walk, step: int):
        self.reached, self._go, self._step = threading.Event(), threading.Event(), step
        walk.after_chunk = self._hold

    def _hold(self, step: int) -> None:
        if step == self._step:
            self.reached.set()
            assert self._go.wait(PATIENCE)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE)

    def open(self) -> None:
        self._go.set()


def undisturbed(request: RunRequest, steps: int) -> np.ndarray:
    walk = Walk()
    state = {"x": np.full(3, 100.0 + request.plan.seed), "step": np.array(0)}
    return walk._advance(state, steps)


def finish(manager: RunManager, run_id: str) -> RunSnapshot:
    snapshot = manager.wait(run_id, PATIENCE)
    assert not snapshot.state.active, snapshot
    return snapshot


def test_a_run_goes_from_request_to_kept_result(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(request_for)
    seen: list[RunSnapshot] = []
    last = manager.wait(run_id, PATIENCE, seen.append)
    assert last.state is RunState.FINISHED
    assert last.outcome == "All 100 steps done."
    assert (last.steps_done, last.steps_total, last.usable, last.resumable) == (100, 100, True, False)
    result = manager.result(run_id)
    assert np.array_equal(result.fit.losses, undisturbed(request_for, 100))
    assert result.account.read == result.account.used
    assert len(result.labels.products) == 6
    assert result.posterior.levels["product"].mean.shape == (6,)


def test_snapshots_show_losses_estimates_and_pinned_products(
    manager: RunManager, request_for: RunRequest, source: Source
):
    watched = str(source.frame["product"].iloc[-1])
    run_id = manager.submit(replace(request_for, pinned=(watched, "no such product")))
    progress = finish(manager, run_id).progress
    assert progress.pinned == (watched,)
    assert progress.remarks == ("'no such product' is not among the products and cannot be watched.",)
    assert set(progress.categories) == set(source.frame["category"].astype(str))
    assert progress.estimates is not None and progress.estimates.pinned_mean.shape == (1,)
    assert progress.global_history.step.tolist() == list(range(10, 101, 10))
    losses = undisturbed(request_for, 100) / (6 * 20)
    assert np.allclose(progress.whole.loss, losses)
    assert np.allclose(progress.tail.loss, losses[90:])
    assert progress.notes == {"x": 1.0}


def test_list_and_run_tell_the_same_last_loss(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(request_for)
    told = finish(manager, run_id).loss
    assert told == manager.runs()[0].loss
    assert np.isclose(told, undisturbed(request_for, 100).mean() / (6 * 20))


@pytest.mark.parametrize(("averaged", "loss"), [(1, 0.7), (100, 4.1)])
def test_the_last_loss_is_that_of_the_last_step_unless_the_engine_is_noisy(averaged: int, loss: float):
    assert last_loss(np.array([90.0, 26.0, 7.0, np.nan]), 10, averaged) == pytest.approx(loss)


def test_opening_a_run_never_fits_again(manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    manager.close()
    again = RunManager(settings)
    try:
        assert again.result(run_id).posterior.n_draws == 100
        assert again.result(run_id).posterior is again.result(run_id).posterior, "the second look comes from memory"
        assert again.snapshot(run_id).progress.whole.step.size == 100
        assert len(walk.fits) == 1
    finally:
        again.close()


def test_stopping_keeps_a_usable_labelled_posterior(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 50)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.stop(run_id)
    gate.open()
    last = finish(manager, run_id)
    assert (last.state, last.steps_done, last.usable, last.resumable) == (RunState.STOPPED, 50, True, True)
    assert last.outcome == "Stopped by you after 50 steps."
    assert manager.result(run_id).fit.losses.size == 50


def test_a_paused_run_goes_on_bit_for_bit(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 30)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.pause(run_id)
    gate.open()
    paused = finish(manager, run_id)
    assert (paused.state, paused.steps_done, paused.usable) == (RunState.PAUSED, 30, False)
    with pytest.raises(UserError, match="no result"):
        manager.result(run_id)
    manager.resume(run_id)
    assert finish(manager, run_id).state is RunState.FINISHED
    result = manager.result(run_id)
    assert result.fit.losses.tobytes() == undisturbed(request_for, 100).tobytes()
    assert result.fit.timing.compile_seconds >= 0.5, "the seconds of both stretches count"


def test_a_paused_run_survives_a_restart(manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings):
    gate = Gate(walk, 30)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.pause(run_id)
    gate.open()
    finish(manager, run_id)
    manager.close()
    again = RunManager(settings, pulse_seconds=0.0)
    try:
        assert again.snapshot(run_id).state is RunState.PAUSED
        again.resume(run_id)
        finish(again, run_id)
        assert again.result(run_id).fit.losses.tobytes() == undisturbed(request_for, 100).tobytes()
    finally:
        again.close()


def test_a_paused_run_that_is_stopped_gets_a_result(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 30)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.pause(run_id)
    gate.open()
    finish(manager, run_id)
    manager.stop(run_id)
    last = finish(manager, run_id)
    assert (last.state, last.steps_done, last.usable) == (RunState.STOPPED, 30, True)


def test_more_steps_go_on_from_the_last(manager: RunManager, walk: Walk, request_for: RunRequest):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    before = manager.result(run_id)
    manager.more_steps(run_id, 40)
    last = finish(manager, run_id)
    assert (last.steps_done, last.steps_total) == (140, 140)
    after = manager.result(run_id)
    assert after.fit.losses.tobytes() == undisturbed(request_for, 140).tobytes()
    assert after.posterior is not before.posterior
    assert after.fit.plan.svi.steps == 140
    with pytest.raises(UserError, match="at least 1"):
        manager.more_steps(run_id, 0)


def test_closing_interrupts_and_resuming_goes_on(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    gate = Gate(walk, 70)
    run_id = manager.submit(request_for)
    gate.wait()
    closer = threading.Thread(target=manager.close)
    closer.start()
    assert manager._closing.wait(PATIENCE)
    gate.open()
    closer.join(PATIENCE)
    again = RunManager(settings, pulse_seconds=0.0)
    try:
        found = again.snapshot(run_id)
        assert (found.state, found.resumable) == (RunState.INTERRUPTED, True)
        assert found.outcome.startswith("Interrupted because the program was closed")
        again.resume(run_id)
        finish(again, run_id)
        assert again.result(run_id).fit.losses.tobytes() == undisturbed(request_for, 100).tobytes()
    finally:
        again.close()


def test_runs_queue_in_order_and_waiting_ones_can_be_changed(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 10)
    first = manager.submit(request_for)
    gate.wait()
    others = [manager.submit(replace(request_for, name=f"n{n}")) for n in range(3)]
    assert [manager.snapshot(run_id).queue_position for run_id in others] == [1, 2, 3]
    manager.stop(others[0])
    manager.pause(others[1])
    assert manager.snapshot(others[0]).state is RunState.STOPPED
    assert manager.snapshot(others[1]).state is RunState.PAUSED
    assert manager.snapshot(others[2]).queue_position == 1
    gate.open()
    assert finish(manager, others[2]).state is RunState.FINISHED
    assert finish(manager, first).state is RunState.FINISHED
    assert len(walk.fits) == 2
    assert [run.run_id for run in manager.runs()] == [*reversed(others), first]


def test_people_take_turns(manager: RunManager, walk: Walk, request_for: RunRequest):
    gate = Gate(walk, 10)
    manager.submit(replace(request_for, owner="ann"))
    gate.wait()
    ann = [manager.submit(replace(request_for, owner="ann", plan=plan_with(PLAN, seed=n))) for n in (1, 2)]
    bob = manager.submit(replace(request_for, owner="bob", plan=plan_with(PLAN, seed=3)))
    assert manager.snapshot(bob).queue_position == 1
    gate.open()
    for run_id in (*ann, bob):
        finish(manager, run_id)
    assert [plan.seed for plan in walk.fits] == [0, 3, 1, 2]


def test_discarding_deletes_everything_of_a_run(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    gate = Gate(walk, 50)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.discard(run_id)
    gate.open()
    finish(manager, run_id)
    assert manager.snapshot(run_id).state is RunState.DISCARDED
    assert manager.runs() == ()
    assert not (settings.data_dir / "runs" / run_id).exists()
    done = manager.submit(request_for)
    finish(manager, done)
    manager.discard(done)
    assert manager.runs() == ()
    assert not (settings.data_dir / "runs" / done).exists()
    with pytest.raises(UserError, match="no result"):
        manager.result(done)
    with pytest.raises(UserError, match="cannot be resumed"):
        manager.resume(done)


def test_a_worker_that_raises_is_an_outcome_and_a_log_line(manager: RunManager, walk: Walk, request_for: RunRequest):
    def burst(step: int) -> None:
        raise KeyError("secret product name")

    walk.after_chunk = burst
    run_id = manager.submit(request_for)
    last = finish(manager, run_id)
    assert last.state is RunState.FAILED
    assert last.outcome.startswith("The fit failed: an error this program does not know, KeyError.")
    lines = manager.log.tail(50)
    assert any(f"run={run_id} event=raised kind=KeyError at=" in line and ":burst" in line for line in lines)
    assert not any("secret" in line for line in lines)
    walk.after_chunk = lambda step: None
    manager.resume(run_id)
    assert finish(manager, run_id).state is RunState.FINISHED, "the worker lives on, the run too"
    assert manager.result(run_id).fit.losses.tobytes() == undisturbed(request_for, 100).tobytes()


def test_a_diverged_fit_fails_with_its_sentence(manager: RunManager, walk: Walk, request_for: RunRequest):
    walk.ending = Ending.DIVERGED
    last = finish(manager, manager.submit(request_for))
    assert (last.state, last.usable, last.outcome) == (RunState.FAILED, False, "All 100 steps done.")


def test_a_plan_that_fails_validation_says_why(manager: RunManager, request_for: RunRequest):
    bad = replace(request_for, roles=replace(request_for.roles, price="no such column"))
    last = finish(manager, manager.submit(bad))
    assert last.state is RunState.FAILED
    assert "no such column" in last.outcome


def test_an_unknown_data_set_or_run_is_told(manager: RunManager, request_for: RunRequest):
    with pytest.raises(UserError, match="no data set"):
        manager.submit(replace(request_for, dataset_id="../../etc/passwd"))
    for ask in (manager.snapshot, manager.result, manager.stop, manager.resume, manager.market):
        with pytest.raises(UserError, match="There is no run"):
            ask("nothing")


def test_limits_are_refused_with_figures(settings: Settings, walk: Walk, manager: RunManager, request_for: RunRequest):
    tight = RunManager(replace(settings, max_queued=1, max_draws=200))
    try:
        gate = Gate(walk, 10)
        tight.submit(request_for)
        gate.wait()
        with pytest.raises(UserError, match=r"1 runs wait or run already.*\n.*300 draws are more than the 200"):
            tight.submit(replace(request_for, plan=plan_with(PLAN, draws=300)))
        with pytest.raises(UserError, match="At most 10"):
            tight.submit(replace(request_for, pinned=tuple("abcdefghijk")))
    finally:
        gate.open()
        tight.close()
    with pytest.raises(UserError, match="0 GB are allowed"):
        replaced = RunManager(replace(settings, quota_gb=0.0))
        try:
            replaced.submit(request_for)
        finally:
            replaced.close()


def test_names_and_notes_change_and_are_cleaned(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(replace(request_for, name="a\n\x00b"))
    finish(manager, run_id)
    assert manager.snapshot(run_id).name == "a b"
    manager.rename(run_id, "best")
    manager.set_note(run_id, "look at tea")
    assert (manager.runs()[0].name, manager.runs()[0].note) == ("best", "look at tea")
    assert manager.result(run_id).name == "best"


def test_what_is_said_of_a_run_at_work_stands(manager: RunManager, walk: Walk, request_for: RunRequest):
    shown = []

    def say(step: int) -> None:
        at_work = manager.runs()[0].run_id
        if not shown:
            manager.rename(at_work, "best")
            manager.share(at_work, False)
        shown.append(manager.snapshot(at_work))

    walk.after_chunk = say
    finish(manager, manager.submit(request_for))
    assert len(shown) > 1
    assert {(snapshot.name, snapshot.shared) for snapshot in shown} == {("best", False)}


def test_an_error_before_the_work_ends_the_run(
    manager: RunManager, request_for: RunRequest, monkeypatch: pytest.MonkeyPatch
):
    def broken(self: Checkpoints) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(Checkpoints, "latest", broken)
    run_id = manager.submit(request_for)
    ended = manager.wait(run_id, 20)
    assert ended.state is RunState.FAILED and "RuntimeError" in ended.outcome


def test_a_discarded_run_shows_its_data_to_nobody(manager: RunManager, request_for: RunRequest):
    private = manager.datasets.add(small_source(seed=1), owner="ann")
    run_id = manager.submit(replace(request_for, dataset_id=private, owner="ann"))
    finish(manager, run_id)
    manager.discard(run_id)
    with pytest.raises(UserError, match="no data set"):
        manager.datasets.info(private, "bob")


def test_a_run_without_a_name_gets_one(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(replace(request_for, name=""))
    assert manager.snapshot(run_id).name.startswith("small market: SVI, AutoNormal")
    finish(manager, run_id)


def test_hidden_runs_do_not_exist_for_others(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(replace(request_for, owner="ann", shared=False))
    finish(manager, run_id)
    assert [run.run_id for run in manager.runs("ann")] == [run_id]
    assert manager.runs("bob") == ()
    asks: list[Callable[..., object]] = [
        manager.snapshot,
        manager.result,
        manager.market,
        manager.stop,
        manager.discard,
    ]
    for ask in asks:
        with pytest.raises(UserError, match="There is no run"):
            ask(run_id, viewer="bob")
    manager.share(run_id, True, viewer="ann")
    assert manager.snapshot(run_id, viewer="bob").usable
    with pytest.raises(UserError, match="belongs to someone else"):
        manager.discard(run_id, viewer="bob")


def test_the_market_of_a_run_is_encoded_once(manager: RunManager, request_for: RunRequest):
    run_id, other = manager.submit(request_for), manager.submit(request_for)
    assert manager.market(run_id) is manager.market(other)
    assert manager.market(run_id).n_obs == 120
    finish(manager, other)


def test_one_data_set_is_kept_once_and_guards_its_runs(manager: RunManager, request_for: RunRequest):
    assert manager.datasets.add(small_source()) == request_for.dataset_id
    other = manager.datasets.add(small_source(seed=1))
    assert [info.id for info in manager.datasets.list()] == [other, request_for.dataset_id]
    finish(manager, manager.submit(request_for))
    with pytest.raises(UserError, match="1 runs use this data set"):
        manager.datasets.delete(request_for.dataset_id)
    manager.datasets.delete(other)
    assert len(manager.datasets.list()) == 1


def test_data_sets_are_seen_by_owners_and_by_those_who_see_their_runs(
    manager: RunManager, request_for: RunRequest, source: Source
):
    other = small_source(seed=1)
    private = manager.datasets.add(other, owner="ann")
    assert [info.id for info in manager.datasets.list("ann")] == [private, source.sha256]
    assert [info.id for info in manager.datasets.list("bob")] == [source.sha256]
    with pytest.raises(UserError, match="no data set"):
        manager.datasets.info(private, "bob")
    run_id = manager.submit(replace(request_for, dataset_id=private, owner="ann"))
    assert manager.datasets.info(private, "bob").name == "small market"
    manager.share(run_id, False)
    assert [info.id for info in manager.datasets.list("bob")] == [source.sha256]
    manager.datasets.add(other, owner="bob")
    assert manager.datasets.info(private, "bob").id == private, "both uploaded the same file"
    finish(manager, run_id)


def test_what_an_engine_catches_is_logged_too(manager: RunManager, walk: Walk, request_for: RunRequest):
    def burst(step: int) -> None:
        try:
            raise ValueError("secret")
        except ValueError:
            logging.getLogger("core.inference.test").exception("an engine failed")

    walk.after_chunk = burst
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    assert any(f"run={run_id} event=raised kind=ValueError" in line for line in manager.log.tail(100))


def test_there_is_one_manager_for_a_folder(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(manager_module, "_MANAGERS", {})
    found: list[RunManager] = []
    threads = [threading.Thread(target=lambda: found.append(get_manager(settings))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 8 and len(set(map(id, found))) == 1
    found[0].close()
