"""Full disks, locked stores, damaged checkpoints and clocks set back end in a sentence; no run is lost."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import UserError
from core.runs import desk, files
from core.runs.locks import Liveness, device_lock
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.runs.values import to_text
from core.settings import Settings
from tests.core.runs.conftest import finish
from tests.core.runs.engine import PATIENCE, Gate, Walk, undisturbed


def fill_disk(monkeypatch: pytest.MonkeyPatch, full: Callable[[], bool]) -> None:
    sync = os.fsync

    def sync_if_room(handle: int) -> None:
        if full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(files.os, "fsync", sync_if_room)


def test_a_disk_full_while_fitting_keeps_the_last_checkpoint(
    manager: RunManager, walk: Walk, request_for: RunRequest, monkeypatch: pytest.MonkeyPatch
):
    steps = [0]
    walk.after_chunk = lambda step: steps.__setitem__(0, step)
    fill_disk(monkeypatch, lambda: steps[0] >= 50)
    run_id = manager.submit(request_for)
    last = finish(manager, run_id)
    assert (last.state, last.resumable) == (RunState.FAILED, True)
    assert "disk of the data folder is full" in last.outcome
    assert "Traceback" not in last.outcome
    steps[0] = 0
    walk.after_chunk = lambda step: None
    manager.resume(run_id)
    assert finish(manager, run_id).state is RunState.FINISHED
    assert manager.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_a_disk_full_while_the_result_is_written_loses_no_step(
    manager: RunManager, walk: Walk, request_for: RunRequest, monkeypatch: pytest.MonkeyPatch
):
    write, full = files.write_whole, [True]

    def write_unless_result(path: Path, content: bytes) -> None:
        if full[0] and path.name == "result.npz":
            raise UserError(files._told(OSError(errno.ENOSPC, "full")))
        write(path, content)

    monkeypatch.setattr("core.runs.work.write_whole", write_unless_result)
    run_id = manager.submit(request_for)
    last = finish(manager, run_id)
    assert (last.state, last.steps_done, last.resumable) == (RunState.FAILED, 100, True)
    full[0] = False
    manager.resume(run_id)
    assert finish(manager, run_id).usable
    assert manager.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_a_store_locked_for_a_while_delays_a_run_and_loses_nothing(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    manager.store.close()  # so that it is opened with this patience
    monkeypatch.setattr(manager.store, "_busy_seconds", 0.02)
    gate = Gate(walk, 50)
    run_id = manager.submit(request_for)
    gate.wait()
    db = sqlite3.connect(settings.data_dir / "store.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="run store is busy"):
        manager.rename(run_id, "later")
    assert manager.snapshot(run_id).state is RunState.RUNNING, "looking on needs no lock"
    gate.open()
    db.execute("ROLLBACK")
    db.close()
    assert finish(manager, run_id).state is RunState.FINISHED
    assert manager.snapshot(run_id).steps_done == 100


def test_an_end_that_the_store_does_not_take_is_shown_and_kept_later(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(desk, "INSISTENCE", 1)
    manager.store.close()  # so that it is opened with this patience
    monkeypatch.setattr(manager.store, "_busy_seconds", 0.02)
    gate = Gate(walk, 100)
    run_id = manager.submit(request_for)
    gate.wait()
    db = sqlite3.connect(settings.data_dir / "store.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    gate.open()
    shown = finish(manager, run_id)
    assert (shown.state, shown.resumable) == (RunState.FAILED, True)
    assert "run store is busy" in shown.outcome
    db.execute("ROLLBACK")
    db.close()
    with manager._news:
        assert manager._news.wait_for(lambda: run_id not in {*manager._board.live, *manager._board.unsaved}, PATIENCE)
    assert manager.store.row(run_id).state is RunState.FAILED
    manager.resume(run_id)
    assert finish(manager, run_id).usable


def test_a_damaged_checkpoint_is_told_and_the_one_before_used(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    gate = Gate(walk, 60)
    run_id = manager.submit(request_for)
    gate.wait()
    manager.pause(run_id)
    gate.open()
    finish(manager, run_id)
    latest = max((settings.data_dir / "runs" / run_id / "checkpoints").glob("*.npz"))
    latest.write_bytes(latest.read_bytes()[:-50])
    manager.resume(run_id)
    last = finish(manager, run_id)
    assert last.state is RunState.FINISHED
    assert last.progress.remarks[0].startswith("The checkpoint of step 60 is damaged.")
    assert manager.result(run_id).fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_a_clock_set_back_changes_neither_order_nor_times(
    manager: RunManager, walk: Walk, request_for: RunRequest, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate(walk, 10)
    first = manager.submit(request_for)
    gate.wait()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    second, third = manager.submit(request_for), manager.submit(request_for)
    assert [manager.snapshot(run_id).queue_position for run_id in (second, third)] == [1, 2]
    gate.open()
    for run_id in (first, second, third):
        assert finish(manager, run_id).elapsed >= 0
    assert [run.run_id for run in manager.runs()] == [third, second, first]


def test_a_device_in_use_elsewhere_is_waited_for(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings
):
    lock = device_lock(settings.data_dir / "locks", "cpu")
    assert lock.acquire()
    run_id = manager.submit(request_for)
    assert manager.wait(run_id, 0.3).state is RunState.QUEUED
    assert walk.fits == []
    lock.release()
    assert finish(manager, run_id).state is RunState.FINISHED


def test_what_a_living_process_has_in_hand_is_left_alone(
    manager: RunManager, request_for: RunRequest, settings: Settings
):
    run_id = "0123456789ab"
    other = Liveness(settings.data_dir / "locks")
    manager.store.add(
        id=run_id, name="theirs", owner="", dataset_id=request_for.dataset_id, request=to_text(request_for),
        state=RunState.RUNNING, process=other.process, lane="cpu", created=0.0, steps_total=100, steps_done=40,
    )  # fmt: skip
    manager._register.sweep()
    assert manager.snapshot(run_id).state is RunState.RUNNING
    manager.stop(run_id)
    assert manager.store.row(run_id).wish == "stop", "a wish reaches a run in another process"
    other.end()
    manager._register.sweep()
    found = manager.snapshot(run_id)
    assert found.state is RunState.INTERRUPTED
    assert found.outcome == "Interrupted after 40 steps because the program ended; resume to go on."


def test_a_run_queued_by_a_dead_process_is_taken_over_only_by_a_server(
    request_for: RunRequest, manager: RunManager, settings: Settings, walk: Walk
):
    manager.close()
    dead = Liveness(settings.data_dir / "locks")
    manager.store.add(
        id="0123456789ab", name="left", owner="", dataset_id=request_for.dataset_id, request=to_text(request_for),
        state=RunState.QUEUED, process=dead.process, lane="cpu", created=0.0, steps_total=100,
    )  # fmt: skip
    dead.end()
    command = RunManager(settings, adopt=False)
    assert command.wait("0123456789ab", 0.2).state is RunState.QUEUED
    command.close()
    server = RunManager(settings)
    assert finish(server, "0123456789ab").state is RunState.FINISHED
    server.close()


def test_a_result_that_cannot_be_read_is_drawn_again(manager: RunManager, request_for: RunRequest, settings: Settings):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    path = settings.data_dir / "runs" / run_id / "result.npz"
    path.write_bytes(path.read_bytes()[:1_000])
    with pytest.raises(UserError, match="cannot be read"):
        manager.result(run_id)
    path.unlink()
    with pytest.raises(UserError, match="missing"):
        manager.result(run_id)
    manager.redraw(run_id, draws=200, mass=0.8)
    finish(manager, run_id)
    result = manager.result(run_id)
    assert (result.posterior.n_draws, result.posterior.mass) == (200, 0.8)
    assert result.fit.losses.tobytes() == undisturbed(request_for.plan, 100).tobytes()


def test_a_run_of_another_version_does_not_spoil_the_list(manager: RunManager, request_for: RunRequest):
    manager.store.add(
        id="0123456789ab", name="old", owner="", dataset_id=request_for.dataset_id, request='{"class": "core.gone:X"}',
        state=RunState.FINISHED, process="", lane="cpu", created=0.0, steps_total=100,
    )  # fmt: skip
    assert manager.runs()[0].plan_line == "plan of another version"
    with pytest.raises(UserError, match="of another version"):
        manager.snapshot("0123456789ab")


def test_a_folder_that_may_not_be_written_is_told(settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="data folder") as told:
        RunManager(replace(settings, data_dir=tmp_path / "file" / "data"))
    assert str(tmp_path) not in str(told.value)
    assert str(tmp_path / "file") in caplog.text


def test_the_share_of_memory_that_a_fit_may_take_is_the_installations(settings: Settings, request_for: RunRequest):
    tight = RunManager(replace(settings, memory_share=0.0))
    try:
        last = finish(tight, tight.submit(request_for))
    finally:
        tight.close()
    assert last.state is RunState.FAILED
    assert "0 MB of" in last.outcome and "free memory may be used" in last.outcome
