"""Open a sales file of any kind: bytes in, a table of columns as the file spells them out; or the reason why not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core.data.arrow import frame_of
from core.data.delimited import read_delimited
from core.data.header import (
    FEWEST_COLUMNS,
    header_notes,
    no_rows,
    too_few_columns,
    too_many_columns,
    unique_names,
)
from core.data.workbook import read_workbook
from core.environment import free_memory_bytes
from core.errors import Problem, UserError
from core.settings import Settings, load_settings
from core.words import shown_name

PARQUET, ZIP, OLD_EXCEL = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zX": "xz", b"(\xb5/\xfd": "zstd", b"7z\xbc\xaf": "7-Zip"}
RAGGED = "with more or fewer cells than the header"
MEMORY_PER_BYTE = 4
"""A text table may take this many times its size while it is read."""


@dataclass(frozen=True)
class Source:
    """A file as read: columns of text (or of the types that Parquet and Excel carry), nothing interpreted yet.

    Empty cells of text columns are empty texts. `left_out` counts rows that never reached `frame`, by reason.
    """

    frame: pd.DataFrame
    name: str
    size: int
    """Bytes of the file."""
    sha256: str
    notes: tuple[Problem, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    decimal_hint: str = ""
    """'comma' where the file's delimiter suggests decimal commas."""
    shifted: bool = False
    """Lines of the file are not rows of the table one by one: some are blank, ragged or inside of a quoted cell."""

    @property
    def rows_read(self) -> int:
        """Rows of the file, those left out while reading included; the header is none."""
        return len(self.frame) + sum(self.left_out.values())

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.frame.columns)


def read_source(path: str | Path, name: str | None = None, settings: Settings | None = None) -> Source:
    """Read CSV or TSV (any delimiter and usual encoding), Parquet or Excel, told apart by content, not by name.

    `name` is what to call the file on screen. Raises UserError when it is no readable table within the limits.
    """
    settings, path = settings or load_settings(), Path(path)
    shown = display_name(name or path.name)
    if path.is_dir():
        raise UserError(Problem("file-is-folder", f"{shown} is a folder", "Name a file in it.", where="file"))
    if not path.is_file():
        raise UserError(Problem("file-missing", f"There is no file {shown}", "Check the path.", where="file"))
    size = path.stat().st_size
    if size == 0:
        raise UserError(
            Problem("file-empty", "The file is empty", "Export the data again and choose that file.", where="file")
        )
    with path.open("rb") as file:
        start = file.read(8)
    _refuse_packed(start)
    if start.startswith(PARQUET):
        frame, notes, left_out, hint, shifted = _from_parquet(path, settings)
    elif start.startswith((ZIP, OLD_EXCEL)):
        frame, notes, left_out, hint, shifted = _from_workbook(path, settings)
    else:
        frame, notes, left_out, hint, shifted = _from_text(path, size, settings)
    _refuse_unusable(frame, left_out, settings)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Source(frame, shown, size, sha256, notes, left_out, hint, shifted)


def display_name(name: str) -> str:
    """A file's own name without folders, control characters or endless length."""
    return shown_name(re.split(r"[\\/]", name)[-1])


_Parts = tuple[pd.DataFrame, tuple[Problem, ...], dict[str, int], str, bool]


def _from_text(path: Path, size: int, settings: Settings) -> _Parts:
    if size * MEMORY_PER_BYTE > free_memory_bytes():
        raise UserError(_too_big(size * MEMORY_PER_BYTE))
    text = read_delimited(path, settings.max_columns)
    notes, left_out = list(text.notes), {}
    if text.ragged:
        left_out[RAGGED] = text.ragged
        notes.append(
            Problem(
                "ragged-rows",
                f"{text.ragged:,} rows have more or fewer cells than the header",
                "Mend them in the file: an unquoted delimiter inside a cell is the usual reason.",
                where="file",
                severity="warning",
                rows=text.ragged,
                examples=text.ragged_examples,
                treatment="These rows are left out.",
                consequence="Their sales do not count.",
            )
        )
    frame, hint, shifted = frame_of(text.table), "comma" if text.delimiter == ";" else "", text.shifted
    del text
    pa.default_memory_pool().release_unused()
    return frame, tuple(notes), left_out, hint, shifted


def _from_parquet(path: Path, settings: Settings) -> _Parts:
    try:
        with pq.ParquetFile(path) as file:
            rows, columns = file.metadata.num_rows, file.metadata.num_columns
            if columns > settings.max_columns:
                raise UserError(too_many_columns(columns, settings.max_columns))
            if rows > settings.max_rows:
                raise UserError(_too_many_rows(rows, settings.max_rows))
            if 8 * rows * columns > free_memory_bytes():
                raise UserError(_too_big(8 * rows * columns))
            flat = [f.name for f in file.schema_arrow if not pa.types.is_nested(f.type)]
            texts = [
                f.name for f in file.schema_arrow if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
            ]
            nested = [name for name in file.schema_arrow.names if name not in flat]
            header = list(flat)
        table = pq.read_table(path, columns=flat, read_dictionary=texts, partitioning=None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(_broken_parquet(str(error).splitlines()[0] if str(error) else "")) from None
    notes = [*header_notes(header), *([_nested_note(nested)] if nested else [])]
    return frame_of(table.rename_columns(unique_names(header))), tuple(notes), {}, "", False


def _from_workbook(path: Path, settings: Settings) -> _Parts:
    table = read_workbook(path, settings.max_columns)
    facts = table.schema.metadata or {}
    header = facts.get(b"header", b"").decode().split("\x1f")
    if len(header) > settings.max_columns:
        raise UserError(too_many_columns(len(header), settings.max_columns))
    if not table.num_columns:
        raise UserError(Problem("file-empty", "The workbook has no filled sheet", "Check the file.", where="file"))
    return (
        frame_of(table.rename_columns(unique_names(header))),
        tuple(header_notes(header)),
        {},
        "",
        bool(facts.get(b"shifted")),
    )


def _refuse_packed(start: bytes) -> None:
    for magic, kind in PACKED.items():
        if start.startswith(magic):
            raise UserError(
                Problem("packed", f"The file is packed with {kind}", "Unpack it and choose the table.", where="file")
            )


def _refuse_unusable(frame: pd.DataFrame, left_out: Mapping[str, int], settings: Settings) -> None:
    lost = sum(left_out.values())
    if not len(frame) and not lost:
        raise UserError(no_rows())
    if lost > len(frame):
        raise UserError(
            Problem(
                "ragged-file",
                f"{lost:,} of {lost + len(frame):,} rows have more or fewer cells than the header",
                "Check the delimiter, and that the header is the first line.",
                where="file",
                rows=lost,
            )
        )
    if frame.shape[1] > settings.max_columns:
        raise UserError(too_many_columns(frame.shape[1], settings.max_columns))
    if frame.shape[1] < FEWEST_COLUMNS:
        raise UserError(too_few_columns([str(name) for name in frame.columns]))
    if len(frame) > settings.max_rows:
        raise UserError(_too_many_rows(len(frame), settings.max_rows))


def _too_many_rows(rows: int, limit: int) -> Problem:
    return Problem(
        "too-many-rows",
        f"The file has {rows:,} rows; at most {limit:,} are read",
        "Add up days to weeks, or choose fewer products.",
        where="file",
    )


def _too_big(needed: int) -> Problem:
    return Problem(
        "too-big",
        f"Reading the file takes about {needed / 1e9:.1f} GB and {free_memory_bytes() / 1e9:.1f} GB are free",
        "Close other programs, or keep only the columns and periods you need.",
        where="file",
    )


def _broken_parquet(why: str) -> Problem:
    return Problem(
        "parquet-unreadable", f"The Parquet file could not be read ({why[:200]})", "Write it again.", where="file"
    )


def _nested_note(names: list[str]) -> Problem:
    return Problem(
        "nested-columns",
        f"{len(names)} columns hold lists or records",
        "Flatten them if the model should use them.",
        where=", ".join(names[:5]),
        severity="note",
        treatment="They are not offered.",
    )
