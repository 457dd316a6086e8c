"""Connections wait for the next caller: few, holding nothing, to the file that is there, and gone with their store."""

import gc
import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from core.runs.database import MOST_IDLE
from core.runs.snapshots import Progress, RunState
from core.runs.store import RunStore
from tests.core.runs.test_store import add


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store.sqlite", busy_seconds=0.05)


def files_open(folder: Path) -> int:
    """Handles of this process on the store's file itself."""
    return sum(file.path == str(folder / "store.sqlite") for file in psutil.Process().open_files())


def test_a_connection_serves_the_next_caller_in_any_thread(store: RunStore):
    seen = []

    def look() -> None:
        with store.connection() as db:
            seen.append(db)

    for _ in range(3):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen[0] is seen[1] is seen[2]


def test_callers_at_once_have_one_each_and_few_are_kept(store: RunStore, tmp_path: Path):
    most = 3 * MOST_IDLE
    for _ in range(3):
        with ExitStack() as stack:
            assert len({id(stack.enter_context(store.connection())) for _ in range(most)}) == most
        assert len(store._idle) == MOST_IDLE
        # SQLite keeps the handles of closed connections for the next ones while others to the file are open.
        assert files_open(tmp_path) <= most
    store.close()
    assert files_open(tmp_path) == 0


def test_a_store_that_is_closed_or_gone_leaves_no_file_open(tmp_path: Path):
    store = RunStore(tmp_path / "store.sqlite")
    assert files_open(tmp_path) == 1
    store.close()
    assert files_open(tmp_path) == 0
    assert store.rows() == (), "who still asks is answered"
    assert files_open(tmp_path) == 0
    other = RunStore(tmp_path / "store.sqlite")
    assert files_open(tmp_path) == 1
    del other
    gc.collect()
    assert files_open(tmp_path) == 0


def test_between_calls_nothing_is_held(store: RunStore, tmp_path: Path):
    add(store, "r")
    calls = (
        store.rows,
        lambda: store.row("r"),
        lambda: store.wish("r"),
        lambda: store.last_turns("cpu"),
        lambda: store.claim("r", "p"),
        lambda: store.set_progress("r", Progress(), loss=1.0),
        lambda: store.progress("r"),
        lambda: store.change_state("r", frozenset({RunState.COMPILING}), wish="stop"),
        lambda: store.delete("r"),
    )
    with closing(sqlite3.connect(tmp_path / "store.sqlite", timeout=0, isolation_level=None)) as other:
        for call in calls:
            call()
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


def test_what_another_writes_is_seen_at_the_next_call(store: RunStore, tmp_path: Path):
    add(store, "r")
    with closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as other:
        for name in ("first", "second"):
            other.execute("UPDATE runs SET name = ?", (name,))
            assert store.row("r").name == name


def test_a_transaction_that_breaks_is_undone_and_blocks_nobody(store: RunStore, tmp_path: Path):
    add(store, "r")
    with pytest.raises(ZeroDivisionError), store.connection() as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE runs SET name = 'half'")
        raise ZeroDivisionError
    with store.connection() as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE runs SET name = 'forgotten'")
    with closing(sqlite3.connect(tmp_path / "store.sqlite", timeout=0, isolation_level=None)) as other:
        other.execute("UPDATE runs SET note = 'written'")
    assert (store.row("r").name, store.row("r").note) == ("r", "written")


def test_a_backup_put_in_place_is_read(store: RunStore, tmp_path: Path):
    add(store, "new")
    (tmp_path / "other").mkdir()
    backup = RunStore(tmp_path / "other" / "store.sqlite")
    add(backup, "old")
    backup.close()
    for name in ("store.sqlite-wal", "store.sqlite-shm"):
        (tmp_path / name).unlink()
    (tmp_path / "other" / "store.sqlite").replace(tmp_path / "store.sqlite")
    assert [row.id for row in store.rows()] == ["old"]
