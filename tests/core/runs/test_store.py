"""The store keeps rows, migrates, refuses what it cannot read, and says what SQLite suffers."""

import sqlite3
from pathlib import Path

import pytest

from core.errors import UserError
from core.runs import schema
from core.runs.snapshots import AT_WORK, Progress, RunState
from core.runs.store import RunRow, RunStore

WORKING = frozenset(AT_WORK)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store.sqlite", busy_seconds=0.05)


def add(store: RunStore, run_id: str, **values: object) -> RunRow:
    given = {
        "name": run_id, "owner": "", "dataset_id": "d", "request": "null", "state": RunState.QUEUED,
        "process": "p", "lane": "cpu", "created": 0.0, "steps_total": 10,
    }  # fmt: skip
    return store.add(id=run_id, **{**given, **values})


def test_rows_come_back_newest_first_whatever_the_clock_says(store: RunStore):
    add(store, "first", created=2_000_000_000.0)
    add(store, "second", created=1.0)
    assert [row.id for row in store.rows()] == ["second", "first"]
    assert [row.place for row in store.rows()] == [2, 1]


def test_a_run_is_claimed_once(store: RunStore):
    add(store, "r")
    assert store.claim("r", "mine")
    assert not store.claim("r", "other")
    assert (store.row("r").state, store.row("r").process, store.row("r").turn) == (RunState.COMPILING, "mine", 1)


def test_a_state_changes_only_from_the_states_allowed(store: RunStore):
    add(store, "r")
    assert not store.change_state("r", WORKING, state=RunState.INTERRUPTED)
    store.claim("r", "mine")
    assert not store.change_state("r", WORKING, "other", state=RunState.INTERRUPTED)
    assert store.change_state("r", WORKING, "mine", state=RunState.INTERRUPTED)


def test_a_run_queued_again_goes_to_the_end(store: RunStore):
    add(store, "a")
    add(store, "b")
    store.update("a", state=RunState.PAUSED)
    assert store.queue_again("a", frozenset({RunState.PAUSED}))
    assert store.row("a").place > store.row("b").place


def test_progress_that_has_not_changed_is_read_once(store: RunStore):
    add(store, "r")
    store.set_progress("r", Progress(verdict="falling"), steps_done=1)
    first = store.progress("r")
    assert store.progress("r") is first
    store.set_progress("r", Progress(verdict="flat"), steps_done=2)
    assert store.progress("r").verdict == "flat" and first.verdict == "falling"


def test_progress_comes_back_and_goes_with_its_run(store: RunStore):
    add(store, "r")
    store.set_progress("r", Progress(verdict="flat"), steps_done=5)
    assert store.progress("r").verdict == "flat"
    assert store.row("r").steps_done == 5
    store.delete("r")
    assert store.progress("r").verdict == ""
    store.set_progress("r", Progress(verdict="late"), steps_done=6)
    assert store.progress("r").verdict == ""


def test_a_turn_counts_after_its_run_is_deleted(store: RunStore):
    for run_id, owner in (("a", "ann"), ("b", "bob")):
        add(store, run_id, owner=owner)
        store.claim(run_id, "mine")
        store.delete(run_id)
    assert store.last_turns("cpu") == {"ann": 1, "bob": 2}
    assert store.last_turns("gpu") == {}


def test_an_unknown_run_is_told(store: RunStore):
    with pytest.raises(UserError, match="There is no run 'x'"):
        store.row("x")
    assert store.wish("x") == "discard"


def test_a_store_of_an_older_version_is_migrated_with_its_runs(tmp_path: Path):
    path = tmp_path / "store.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    assert schema.migrate(db, schema.MIGRATIONS[:1]) == 0
    db.execute(
        "INSERT INTO runs (id, name, owner, dataset_id, request, state, lane, place, created, steps_total)"
        " VALUES ('old', 'kept', '', 'd', 'null', 'finished', 'cpu', 1, 0, 10)"
    )
    db.close()
    row = RunStore(path).row("old")
    assert (row.name, row.note, row.shared) == ("kept", "", True)


def test_migration_happens_once(tmp_path: Path):
    RunStore(tmp_path / "store.sqlite")
    db = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    assert schema.migrate(db) == schema.VERSION


def test_a_failing_step_of_a_migration_changes_nothing(tmp_path: Path):
    db = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(db, ("CREATE TABLE a (x); CREATE TABLE a (x);",))
    assert db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
    assert db.execute("PRAGMA user_version").fetchone()[0] == 0


def test_a_store_of_a_later_program_is_refused(tmp_path: Path):
    db = sqlite3.connect(tmp_path / "store.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(UserError, match=r"has version 99.*Update Isoelastic"):
        RunStore(tmp_path / "store.sqlite")


def test_a_locked_store_is_busy_not_broken(store: RunStore, tmp_path: Path):
    add(store, "r")
    db = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match=r"run store is busy. Try again"):
        store.update("r", name="new")
    assert store.row("r").name == "r", "readers are never in the way of a writer"
    db.execute("ROLLBACK")
    db.close()
    store.update("r", name="new")
    assert store.row("r").name == "new"


def test_a_full_disk_is_told(store: RunStore):
    add(store, "r")
    with pytest.raises(UserError, match="disk of the data folder is full"), store.connection() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        db.execute("UPDATE runs SET note = ?", ("x" * 1_000_000,))
    assert store.row("r").note == ""


def test_a_file_that_is_no_store_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "store.sqlite").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(UserError, match="run store is damaged") as told:
        RunStore(tmp_path / "store.sqlite")
    assert str(tmp_path) not in str(told.value), "visitors see what is wrong"
    assert str(tmp_path) in caplog.text, "who runs the server sees where"
