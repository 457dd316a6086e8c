"""Open the SQLite file of the run store, and say in words what may befall it.

A connection is one caller's at a time and holds no lock between calls; a few wait for the next caller, whatever its
thread: opening one costs more than most questions. A process that dies leaves no lock behind.
"""

from __future__ import annotations

import logging
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import Problem, UserError
from core.runs import schema
from core.runs.files import disk_errors

LOG = logging.getLogger(__name__)
BUSY_SECONDS = 5.0
"""How long a call waits for others that write."""
MOST_IDLE = 4
"""Connections that wait for the next caller; more are open only while more callers ask at once."""
Opened = tuple[sqlite3.Connection, tuple[int, int]]
"""A connection and which file it is to."""


class Database:
    """A file with the tables of `schema`, made where there is none. Raises UserError: busy, disk full, damaged."""

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS):
        self._path = path
        self._busy_seconds = busy_seconds
        # Appending to a list and taking from it are one step each for every thread.
        self._idle: list[Opened] = []
        self._most_idle = MOST_IDLE
        weakref.finalize(self, _close_all, self._idle)
        with disk_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self.connection() as db:
            db.execute("PRAGMA journal_mode = WAL")
            schema.migrate(db)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit mode, not to be used after the end; SQLite's errors become UserError."""
        try:
            db, opened = self._take() or self._open()
            sound = False
            try:
                yield db
                sound = not db.in_transaction
            finally:
                if sound and len(self._idle) < self._most_idle:
                    self._idle.append((db, opened))
                    if not self._most_idle:
                        # Closed meanwhile: nobody else would let go of this one.
                        _close_all(self._idle)
                else:
                    db.close()
        except sqlite3.DatabaseError as bad:
            problem = _told(bad)
            if problem is None:
                raise
            if problem.code != BUSY[0]:
                LOG.warning("the run store %s: %s", self._path, bad)
            raise UserError(problem) from bad

    def close(self) -> None:
        """Let go of the file. Calls that come later open it for themselves alone."""
        self._most_idle = 0
        _close_all(self._idle)

    def _take(self) -> Opened | None:
        """An idle connection to the file that is there now: a backup may have been put in its place."""
        while self._idle:
            try:
                db, opened = self._idle.pop()
            except IndexError:
                return None
            if opened == _identity(self._path):
                return db, opened
            db.close()
        return None

    def _open(self) -> Opened:
        db = sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            # With WAL this survives a killed process; only a power cut may cost the last second.
            db.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            db.close()
            raise
        return db, _identity(self._path)


def _identity(path: Path) -> tuple[int, int]:
    """Which file lies there; (0, 0) for none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _close_all(idle: list[Opened]) -> None:
    while idle:
        try:
            idle.pop()[0].close()
        except IndexError:
            return


def _told(bad: sqlite3.DatabaseError) -> Problem | None:
    """What happened to the store, for a person; None for a mistake of ours, which must not pass for theirs."""
    told = MISHAPS.get(getattr(bad, "sqlite_errorcode", 0) & PRIMARY)
    return None if told is None else Problem(*told, where="run store")


PRIMARY = 0xFF
"""Bits of SQLite's extended error codes that hold the primary one."""
NOT_WRITABLE = ("disk-error", "The run store cannot be opened or written", "Allow writing to the data folder.")
BUSY = ("store-busy", "The run store is busy", "Try again in a moment.")
DAMAGED = (
    "store-damaged",
    "The run store is damaged",
    "Restore it from a backup, or set ISOELASTIC_DATA_DIR to a new folder.",
)
MISHAPS = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_FULL: (
        "disk-full",
        "The disk of the data folder is full",
        "Free space or delete runs you no longer need, then resume the run: its last checkpoint is kept.",
    ),
    sqlite3.SQLITE_IOERR: ("disk-error", "The disk of the run store reports an error", "Check disk and free space."),
    sqlite3.SQLITE_READONLY: NOT_WRITABLE,
    sqlite3.SQLITE_PERM: NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: NOT_WRITABLE,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
"""What SQLite says, by its primary error code: our code, what happened, what to do."""
