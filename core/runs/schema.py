"""The tables of the run store, as the steps that lead from an empty file to the present version."""

from __future__ import annotations

import sqlite3

from core.errors import Problem, UserError

MIGRATIONS = (
    """
    CREATE TABLE datasets (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, rows INTEGER NOT NULL, columns INTEGER NOT NULL,
        bytes INTEGER NOT NULL, created REAL NOT NULL, owner TEXT NOT NULL, source TEXT NOT NULL
    );
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, owner TEXT NOT NULL, dataset_id TEXT NOT NULL,
        request TEXT NOT NULL, state TEXT NOT NULL, phase TEXT NOT NULL DEFAULT '',
        wish TEXT NOT NULL DEFAULT '', process TEXT NOT NULL DEFAULT '', lane TEXT NOT NULL,
        place INTEGER NOT NULL, turn INTEGER NOT NULL DEFAULT 0, created REAL NOT NULL,
        steps_done INTEGER NOT NULL DEFAULT 0, steps_total INTEGER NOT NULL, n_obs INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0, memory INTEGER NOT NULL DEFAULT 0,
        loss REAL, outcome TEXT NOT NULL DEFAULT '', usable INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE progress (id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, value BLOB NOT NULL);
    CREATE INDEX runs_by_state ON runs (state, lane);
    """,
    """
    ALTER TABLE runs ADD COLUMN shared INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE dataset_owners (dataset TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (dataset, owner));
    INSERT INTO dataset_owners (dataset, owner) SELECT id, owner FROM datasets;
    """,
    """
    CREATE TABLE turns (lane TEXT NOT NULL, owner TEXT NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (lane, owner));
    INSERT INTO turns (lane, owner, turn) SELECT lane, owner, MAX(turn) FROM runs WHERE turn > 0 GROUP BY lane, owner;
    """,
)
"""Step i leads from version i to version i + 1. Steps are only ever added."""

VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, steps: tuple[str, ...] = MIGRATIONS) -> int:
    """Bring the store up to date and say which version it had. Raises UserError for a store of a later program.

    The connection must be in autocommit mode. Each step happens wholly or not at all, also where two processes try.
    """
    found = _version(connection)
    if found > len(steps):
        raise UserError(
            Problem(
                "store-newer",
                f"The run store has version {found}, this program knows versions up to {len(steps)}",
                "Update Isoelastic, or set ISOELASTIC_DATA_DIR to another folder.",
            )
        )
    while _version(connection) < len(steps):
        _take_step(connection, steps)
    return found


def _take_step(connection: sqlite3.Connection, steps: tuple[str, ...]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again inside the write lock: another process may have taken the step meanwhile.
        version = _version(connection)
        if version < len(steps):
            for statement in steps[version].split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
