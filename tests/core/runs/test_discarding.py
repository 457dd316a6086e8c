"""A run that someone has discarded is gone, whatever its worker has to say at that moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import UserError
from core.runs.files import write_whole
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.settings import Settings
from tests.core.runs.conftest import finish, held
from tests.core.runs.engine import PATIENCE, Walk


def swept(manager: RunManager, settings: Settings) -> bool:
    """Sweep now, without waiting for the next time; whether nothing is left of any run."""
    manager._swept = float("-inf")
    manager.runs()
    return not manager.store.rows() and not list((settings.data_dir / "runs").iterdir())


def test_between_the_workers_last_look_and_its_last_word(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def write(path: Path, content: bytes) -> None:
        asked.append(path.parent.name)
        manager.discard(path.parent.name)
        write_whole(path, content)

    monkeypatch.setattr("core.runs.work.write_whole", write)
    run_id = manager.submit(request_for)
    with pytest.raises(UserError, match="There is no run"):
        manager.wait(run_id, PATIENCE)
    assert asked == [run_id]
    assert manager.runs() == ()
    until(lambda: not manager._board.live)
    assert swept(manager, settings)


def test_while_it_ends(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    # As the store answers about a run at work, which then ends before its wish is on record.
    monkeypatch.setattr("core.runs.store.RunStore.change_state", lambda *_, **values: False)
    manager.discard(run_id)
    monkeypatch.undo()
    with pytest.raises(UserError, match="There is no run"):
        manager.snapshot(run_id)
    assert swept(manager, settings)


@pytest.mark.parametrize("later", ["stop", "pause"])
def test_a_later_wish_does_not_take_it_back(manager: RunManager, walk: Walk, request_for: RunRequest, later: str):
    with held(manager, walk, request_for, 30) as run_id:
        manager.discard(run_id)
        getattr(manager, later)(run_id)
        assert manager.store.wish(run_id) == "discard"
    with pytest.raises(UserError, match="There is no run"):
        manager.wait(run_id, PATIENCE)


def test_it_cannot_be_queued_again(manager: RunManager, walk: Walk, request_for: RunRequest):
    run_id = manager.submit(request_for)
    finish(manager, run_id)
    manager._swept = float("inf")
    manager.store.update(run_id, wish="discard")
    with pytest.raises(UserError, match="There is no run"):
        manager.more_steps(run_id, 10)
    assert manager.store.queue_again(run_id, frozenset({RunState.FINISHED}))
    assert manager.store.wish(run_id) == "discard"


def until(so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
