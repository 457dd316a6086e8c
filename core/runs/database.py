"""Open the SQLite file of the run store, and say in words what may befall it.

Each call opens its own connection: nothing is shared between threads, and a process that dies leaves no lock behind.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import Problem, UserError
from core.runs import schema
from core.runs.files import disk_errors

LOG = logging.getLogger(__name__)
BUSY_SECONDS = 5.0
"""How long a call waits for others that write."""


class Database:
    """A file with the tables of `schema`, made where there is none. Raises UserError: busy, disk full, damaged."""

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS):
        self._path = path
        self._busy_seconds = busy_seconds
        with disk_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self.connection() as db:
            db.execute("PRAGMA journal_mode = WAL")
            schema.migrate(db)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit mode, closed at the end; SQLite's errors become UserError."""
        try:
            db = sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)
            try:
                db.row_factory = sqlite3.Row
                db.execute("PRAGMA foreign_keys = ON")
                # With WAL this survives a killed process; only a power cut may cost the last second.
                db.execute("PRAGMA synchronous = NORMAL")
                yield db
            finally:
                db.close()
        except sqlite3.DatabaseError as bad:
            problem = _told(bad)
            if problem is None:
                raise
            if problem.code != BUSY[0]:
                LOG.warning("the run store %s: %s", self._path, bad)
            raise UserError(problem) from bad


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
