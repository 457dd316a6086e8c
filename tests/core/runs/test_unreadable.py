"""A run that cannot be read, or whose end cannot be kept yet, holds up neither device nor others nor a discard."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from core.errors import Problem, UserError
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.settings import Settings
from tests.core.runs.conftest import finish, held
from tests.core.runs.engine import PATIENCE, Walk

DAMAGE = {
    "request": 'UPDATE runs SET request = \'{"class": "core.gone:X"}\' WHERE id = ?',
    "another value as request": "UPDATE runs SET request = '3' WHERE id = ?",
    "progress": "INSERT INTO progress (id, value) VALUES (?, x'504B0304')",
}


def damage(settings: Settings, run_id: str, what: str) -> None:
    with closing(sqlite3.connect(settings.data_dir / "store.sqlite", isolation_level=None)) as db:
        db.execute(DAMAGE[what], (run_id,))


@pytest.mark.parametrize("what", DAMAGE)
def test_a_run_that_cannot_be_read_fails_with_a_sentence(
    manager: RunManager, walk: Walk, request_for: RunRequest, settings: Settings, what: str
):
    with held(manager, walk, request_for, 50):
        run_id, after = manager.submit(request_for), manager.submit(request_for)
        damage(settings, run_id, what)
    assert finish(manager, after).state is RunState.FINISHED
    row = manager.store.row(run_id)
    assert (row.state, row.phase, row.wish, row.usable) == (RunState.FAILED, "", "", False)
    assert "cannot be read" in row.outcome
    assert run_id in {run.run_id for run in manager.runs()}
    manager.discard(run_id)
    assert run_id not in {run.run_id for run in manager.runs()}


@pytest.mark.parametrize("what", DAMAGE)
def test_the_end_of_a_run_that_cannot_be_read_is_kept_later(
    manager: RunManager, request_for: RunRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch, what: str
):
    def no_word(*_: object) -> None:
        raise UserError(Problem("disk-full", "The disk is full", "Free space."))

    monkeypatch.setattr("core.runs.manager.work", no_word)
    monkeypatch.setattr("core.runs.board.Board.settle", lambda *_: None)
    with monkeypatch.context() as busy:
        busy.setattr("core.runs.manager.RunManager._next", lambda *_: None)
        run_id = manager.submit(request_for)
        damage(settings, run_id, what)
    with manager._news:
        assert manager._news.wait_for(lambda: run_id in manager._board.unsaved, PATIENCE)
    assert manager.store.row(run_id).state is RunState.COMPILING
    monkeypatch.undo()
    with manager._news:
        assert manager._news.wait_for(lambda: run_id not in manager._board.unsaved, PATIENCE)
    row = manager.store.row(run_id)
    assert (row.state, "disk is full" in row.outcome) == (RunState.FAILED, True)


def test_a_run_discarded_before_its_end_is_kept_is_erased(
    manager: RunManager, request_for: RunRequest, monkeypatch: pytest.MonkeyPatch
):
    def no_word(*_: object) -> None:
        raise UserError(Problem("disk-full", "The disk is full", "Free space."))

    monkeypatch.setattr("core.runs.manager.work", no_word)
    monkeypatch.setattr("core.runs.board.Board.settle", lambda *_: None)
    run_id = manager.submit(request_for)
    with manager._news:
        assert manager._news.wait_for(lambda: run_id in manager._board.unsaved, PATIENCE)
    manager.discard(run_id)
    assert manager.store.wish(run_id) == "discard"
    monkeypatch.undo()
    with manager._news:
        assert manager._news.wait_for(lambda: run_id not in manager._board.unsaved, PATIENCE)
    assert run_id not in {run.run_id for run in manager.runs()}
