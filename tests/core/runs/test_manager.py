"""A run goes from request to kept result, or ends in an outcome; nothing the manager has said is lost."""

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest

from core.data.source import Source
from core.errors import UserError
from core.inference.fit import Ending
from core.inference.plan import plan_with
from core.runs import manager as manager_module
from core.runs.checkpoints import Checkpoints
from core.runs.feed import last_loss
from core.runs.manager import RunManager, get_manager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunSnapshot, RunState
from core.settings import Settings
from tests.core.runs.conftest import PLAN, finish
from tests.core.runs.engine import PATIENCE, Gate, Walk, undisturbed


def test_a_run_goes_from_request_to_kept_result(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(request_for)
    seen: list[RunSnapshot] = []
    last = manager.wait(run_id, PATIENCE, seen.append)
    assert last.state is RunState.FINISHED
    assert last.outcome == "All 100 steps done."
    assert (last.steps_done, last.steps_total, last.usable, last.resumable) == (100, 100, True, False)
    result = manager.result(run_id)
    assert np.array_equal(result.fit.losses, undisturbed(request_for.plan, 100))
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
    losses = undisturbed(request_for.plan, 100) / (6 * 20)
    assert np.allclose(progress.whole.loss, losses)
    assert np.allclose(progress.tail.loss, losses[90:])
    assert progress.notes == {"x": 1.0}


def test_list_and_run_tell_the_same_last_loss(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(request_for)
    told = finish(manager, run_id).loss
    assert told == manager.runs()[0].loss
    assert np.isclose(told, undisturbed(request_for.plan, 100).mean() / (6 * 20))


@pytest.mark.parametrize(("averaged", "loss"), [(1, 0.7), (100, 4.1)])
def test_the_last_loss_is_that_of_the_last_step_unless_the_engine_is_noisy(averaged: int, loss: float):
    assert last_loss(np.array([90.0, 26.0, 7.0, np.nan]), 10, averaged) == pytest.approx(loss)


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
    assert manager.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


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


def test_a_run_without_a_name_gets_one(manager: RunManager, request_for: RunRequest):
    run_id = manager.submit(replace(request_for, name=""))
    assert manager.snapshot(run_id).name.startswith("small market: SVI, AutoNormal")
    finish(manager, run_id)


def test_the_market_of_a_run_is_encoded_once(manager: RunManager, request_for: RunRequest):
    run_id, other = manager.submit(request_for), manager.submit(request_for)
    assert manager.market(run_id) is manager.market(other)
    assert manager.market(run_id).n_obs == 120
    finish(manager, other)


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
