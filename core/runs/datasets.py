"""Keep every data set once, as Parquet named by the sha256 of the file it came from."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from core.errors import Problem, UserError
from core.runs.files import DATA_FOLDER, disk_errors, folder_bytes, write_whole
from core.runs.snapshots import RunState
from core.runs.store import RunStore
from core.runs.values import from_text, to_text
from core.settings import Settings
from core.words import shown_name

if TYPE_CHECKING:
    from core.data.source import Source


@dataclass(frozen=True)
class DatasetInfo:
    """A data set as the list shows it. `bytes` is the size of the file it came from."""

    id: str
    """sha256 of the file's bytes, 64 hexadecimal digits."""
    name: str
    rows: int
    columns: int
    bytes: int
    created: float
    owner: str


class DatasetStore:
    """The data sets of an installation. Methods may raise UserError: unknown data set, quota, disk, store busy."""

    def __init__(self, settings: Settings, store: RunStore):
        self._settings = settings
        self._folder = settings.data_dir / "datasets"
        self._store = store

    def add(self, source: Source, owner: str = "", truth: pd.DataFrame | None = None) -> str:
        """Keep a source and say its id; the same file again costs nothing. `truth` is kept beside a simulated one."""
        dataset = str(source.sha256)
        if not self._path(dataset).exists():
            content = _parquet(source.frame)
            self.check_quota(len(content))
            write_whole(self._path(dataset), content)
        if truth is not None:
            write_whole(self._path(dataset, "truth"), _parquet(truth))
        told = {f.name: getattr(source, f.name) for f in fields(source) if f.name != "frame"}
        told["name"] = shown_name(source.name)
        with self._store.connection() as db:
            db.execute(
                "INSERT OR IGNORE INTO datasets (id, name, rows, columns, bytes, created, owner, source)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (dataset, told["name"], *source.frame.shape, int(source.size), time.time(), owner, to_text(told)),
            )
            db.execute("INSERT OR IGNORE INTO dataset_owners (dataset, owner) VALUES (?, ?)", (dataset, owner))
        return dataset

    def source(self, dataset: str) -> Source:
        """The source as it was read, notes included."""
        from core.data.source import Source

        with self._store.connection() as db:
            found = db.execute("SELECT source FROM datasets WHERE id = ?", (dataset,)).fetchone()
        if found is None:
            raise _unknown(dataset)
        return Source(frame=self._frame(self._path(dataset)), **from_text(found["source"]))

    def truth(self, dataset: str) -> pd.DataFrame | None:
        """True elasticities of a simulated market; None for real data."""
        path = self._path(dataset, "truth")
        return self._frame(path) if path.exists() else None

    def info(self, dataset: str, viewer: str | None = None) -> DatasetInfo:
        """What the list shows of one. Raises UserError when there is none of that id that `viewer` may see."""
        for found in self._select(viewer, "AND id = :id", id=dataset):
            return found
        raise _unknown(dataset)

    def list(self, viewer: str | None = None) -> tuple[DatasetInfo, ...]:
        """Every data set that `viewer` may see, latest first: their own, those of nobody, those of runs they see."""
        return tuple(self._select(viewer))

    def delete(self, dataset: str) -> None:
        """Remove a data set that no run needs. Raises UserError naming how many do."""
        with self._store.connection() as db:
            runs = db.execute(
                "SELECT COUNT(*) AS n FROM runs WHERE dataset_id = ? AND state != ?", (dataset, RunState.DISCARDED)
            ).fetchone()["n"]
            if runs:
                raise UserError(
                    Problem("dataset-in-use", f"{runs} runs use this data set", "Delete them first.", where="data")
                )
            db.execute("DELETE FROM dataset_owners WHERE dataset = ?", (dataset,))
            db.execute("DELETE FROM datasets WHERE id = ?", (dataset,))
        for path in (self._path(dataset), self._path(dataset, "truth")):
            path.unlink(missing_ok=True)

    def check_quota(self, more: int = 0) -> None:
        """Raise UserError where the data folder would take more than the settings allow; `more` in bytes."""
        taken = folder_bytes(self._settings.data_dir) + more
        if taken > self._settings.quota_gb * 1e9:
            raise UserError(
                Problem(
                    "quota",
                    f"Data sets and runs would take {taken / 1e9:.2f} GB; {self._settings.quota_gb:g} GB are allowed",
                    "Delete runs and data sets you no longer need, or raise ISOELASTIC_QUOTA_GB.",
                    where=DATA_FOLDER,
                )
            )

    def _select(self, viewer: str | None, clause: str = "", **given: str) -> Iterator[DatasetInfo]:
        seen = "1" if viewer is None else SEEN
        query = f"SELECT {COLUMNS} FROM datasets WHERE {seen} {clause} ORDER BY rowid DESC"
        with self._store.connection() as db:
            found = db.execute(query, {"viewer": viewer, **given}).fetchall()
        return (DatasetInfo(*row) for row in found)

    def _path(self, dataset: str, kind: str = "data") -> Path:
        # An id may come out of an address: only what cannot leave the folder becomes a name.
        if len(dataset) != DIGITS or not set(dataset) <= set("0123456789abcdef"):
            raise _unknown(dataset)
        return self._folder / f"{dataset}.{kind}.parquet"

    def _frame(self, path: Path) -> pd.DataFrame:
        with disk_errors(self._folder), _damage(path):
            return pd.read_parquet(path)


DIGITS = 64
COLUMNS = "id, name, rows, columns, bytes, created, owner"
SEEN = """(
    EXISTS (SELECT 1 FROM dataset_owners AS o WHERE o.dataset = datasets.id AND o.owner IN ('', :viewer))
    OR EXISTS (SELECT 1 FROM runs AS r WHERE r.dataset_id = datasets.id AND r.state != 'discarded'
               AND (r.shared OR r.owner IN ('', :viewer)))
)"""


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, json.JSONDecodeError, FileNotFoundError) as bad:
        raise UserError(
            Problem("dataset-damaged", "The kept copy of this data set is missing or damaged", "Upload the file again.")
        ) from bad


def _unknown(dataset: Any) -> UserError:
    return UserError(
        Problem(
            "dataset-unknown", f"There is no data set '{str(dataset)[:12]}'", "Upload the file again.", where="data"
        )
    )
