"""Runs are stopped, paused, interrupted and discarded, and go on bit for bit where they were."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from core.errors import UserError
from core.runs.manager import SWEEP_SECONDS, RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.settings import Settings
from tests.core.runs.conftest import finish, held
from tests.core.runs.engine import PATIENCE, Gate, Walk, undisturbed


def test_stopping_keeps_a_usable_labelled_posterior(manager: RunManager, walk: Walk, request_for: RunRequest):
    with held(manager, walk, request_for, 50) as run_id:
        manager.stop(run_id)
    last = finish(manager, run_id)
    assert (last.state, last.steps_done, last.usable, last.resumable) == (RunState.STOPPED, 50, True, True)
    assert last.outcome == "Stopped by you after 50 steps."
    assert manager.result(run_id).fit.losses.size == 50


def test_a_paused_run_goes_on_bit_for_bit(manager: RunManager, walk: Walk, request_for: RunRequest):
    with held(manager, walk, request_for, 30) as run_id:
        manager.pause(run_id)
    paused = finish(manager, run_id)
    assert (paused.state, paused.steps_done, paused.usable) == (RunState.PAUSED, 30, False)
    with pytest.raises(UserError, match="no result"):
        manager.result(run_id)
    manager.resume(run_id)
    assert finish(manager, run_id).state is RunState.FINISHED
    result = manager.result(run_id)
    assert result.fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()
    assert result.fit.timing.compile_seconds >= 0.5, "the seconds of both stretches count"


def test_a_paused_run_survives_a_restart(manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings):
    with held(manager, walk, request_for, 30) as run_id:
        manager.pause(run_id)
    finish(manager, run_id)
    manager.close()
    with closing(RunManager(settings, pulse_seconds=0.0)) as again:
        assert again.snapshot(run_id).state is RunState.PAUSED
        again.resume(run_id)
        finish(again, run_id)
        assert again.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_a_paused_run_that_is_stopped_gets_a_result(manager: RunManager, walk: Walk, request_for: RunRequest):
    with held(manager, walk, request_for, 30) as run_id:
        manager.pause(run_id)
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
    assert after.fit.losses.tobytes() == undisturbed(request_for.plan, 140).tobytes()
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
    with closing(RunManager(settings, pulse_seconds=0.0)) as again:
        found = again.snapshot(run_id)
        assert (found.state, found.resumable) == (RunState.INTERRUPTED, True)
        assert found.outcome.startswith("Interrupted because the program was closed")
        again.resume(run_id)
        finish(again, run_id)
        assert again.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_opening_a_run_never_fits_again(manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    manager.close()
    with closing(RunManager(settings)) as again:
        assert again.result(run_id).posterior.n_draws == 100
        assert again.result(run_id).posterior is again.result(run_id).posterior, "the second look comes from memory"
        assert again.snapshot(run_id).progress.whole.step.size == 100
        assert len(walk.fits) == 1


def test_discarding_deletes_everything_of_a_run(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    with held(manager, walk, request_for, 50) as run_id:
        manager.discard(run_id)
    with pytest.raises(UserError, match="There is no run"):
        manager.wait(run_id, PATIENCE)
    done = manager.submit(request_for)
    finish(manager, done)
    manager.result(done)
    manager.discard(done)
    assert manager.runs() == ()
    for gone in (run_id, done):
        assert not (settings.data_dir / "runs" / gone).exists()
        assert left_in_store(settings, gone) == []
        for ask in (manager.snapshot, manager.result, manager.resume):
            with pytest.raises(UserError, match="There is no run"):
                ask(gone)
    assert not manager._shelf.results and not manager._board.live


def left_in_store(settings: Settings, run_id: str) -> list[str]:
    """Tables of the store with a row that names the run."""
    with closing(sqlite3.connect(settings.data_dir / "store.sqlite")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    return [table for table, found in rows.items() if any(run_id in map(str, row) for row in found)]


def test_what_a_process_left_of_a_discarded_run_goes_with_the_next(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    half = manager.submit(request_for)
    finish(manager, half)
    manager.store.update(half, state=RunState.DISCARDED)
    asked = manager.submit(request_for)
    finish(manager, asked)
    manager.store.update(asked, state=RunState.RUNNING, wish="discard")
    with pytest.raises(UserError, match="There is no run"):
        manager.snapshot(half)
    manager.close()
    with closing(RunManager(settings)) as again:
        assert again.store.rows() == ()
    assert list((settings.data_dir / "runs").iterdir()) == []


def test_a_run_whose_files_cannot_be_removed_yet_is_gone_from_sight_and_erased_later(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    with monkeypatch.context() as stubborn:
        stubborn.setattr("core.runs.desk.shutil.rmtree", lambda folder, ignore_errors: None)
        manager.discard(run_id)
    assert manager.runs() == ()
    assert [row.id for row in manager.store.rows()] == [run_id]
    manager._swept = -SWEEP_SECONDS
    manager.runs()
    assert manager.store.rows() == ()
    assert not (settings.data_dir / "runs" / run_id).exists()


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
