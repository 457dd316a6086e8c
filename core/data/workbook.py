"""Read the first filled sheet of an Excel workbook, in a process of its own with bounds on time and memory.

A workbook is a zip: a small file can unfold into any amount of memory. So its parts are unfolded once with a limit on
their true length and their cells counted, before anything reads them.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Problem, UserError

MAX_UNFOLDED_BYTES = 600 << 20
MAX_CELLS = 25_000_000
MAX_SECONDS = 180
PIECE_BYTES = 1 << 20
_CELL = re.compile(rb"<(?:\w+:)?c(?=[ />])")
_REFERENCE = re.compile(rb'\br="([A-Z]{1,4})?([0-9]{1,8})"')
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, OSError, ValueError, NotImplementedError, EOFError)


def read_workbook(path: Path, max_columns: int) -> pa.Table:
    """The cells of the first sheet that has any, one column per header; typed where a column holds one type.

    Raises UserError for workbooks that are broken, locked, or would unfold beyond the limits.
    """
    if zipfile.is_zipfile(path):
        _check_unfolded(path)
    with tempfile.TemporaryDirectory(prefix="isoelastic-") as folder:
        target = Path(folder) / "sheet.parquet"
        command = [sys.executable, "-m", "core.data.workbook_worker", str(path), str(target), str(max_columns)]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=MAX_SECONDS, cwd=Path(__file__).parents[2], check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(_broken(f"Reading it took longer than {MAX_SECONDS} s")) from None
        if done.returncode != 0 or not target.exists():
            raise UserError(_broken(_last_line(done.stderr)))
        return pq.read_table(target, memory_map=False)


def _check_unfolded(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if not any(name.endswith(("workbook.xml", "workbook.bin")) for name in names):
                raise UserError(_not_a_workbook())
            unfolded = 0
            for part in archive.infolist():
                counter = _CellCounter() if "worksheets/" in part.filename else None
                for piece in _unfold(path, part, MAX_UNFOLDED_BYTES - unfolded):
                    unfolded += len(piece)
                    if counter is not None:
                        counter.see(piece)
    except _ZIP_ERRORS as error:
        raise UserError(_broken(str(error) or type(error).__name__)) from None


def _unfold(path: Path, part: zipfile.ZipInfo, limit: int) -> Iterator[bytes]:
    """Pieces of one part by its true length, whatever the archive says about it. Raises UserError over `limit`."""
    with path.open("rb") as file:
        file.seek(part.header_offset)
        header = file.read(30)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        file.seek(part.header_offset + 30 + name_length + extra_length)
        inflate = zlib.decompressobj(-15) if part.compress_type == zipfile.ZIP_DEFLATED else None
        left = part.compress_size
        while left > 0 and (packed := file.read(min(PIECE_BYTES, left))):
            left -= len(packed)
            while packed:
                piece = inflate.decompress(packed, PIECE_BYTES) if inflate else packed
                packed = inflate.unconsumed_tail if inflate else b""
                limit -= len(piece)
                if limit < 0:
                    raise UserError(_bomb())
                yield piece


class _CellCounter:
    """Counts cells, and the rectangle they span, which is what a reader of the sheet allocates."""

    def __init__(self) -> None:
        self.cells = self.rows = self.columns = 0
        self.rest = b""

    def see(self, piece: bytes) -> None:
        text = self.rest + piece
        cut = text.rfind(b"<")
        text, self.rest = (text[:cut], text[cut:][:PIECE_BYTES]) if cut > 0 else (text, b"")
        self.cells += len(_CELL.findall(text))
        for column, row in _REFERENCE.findall(text):
            self.rows = max(self.rows, int(row))
            self.columns = max(self.columns, _column_number(column))
        if self.cells > MAX_CELLS or self.rows * self.columns > MAX_CELLS:
            raise UserError(_bomb())


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _bomb() -> Problem:
    return Problem(
        "workbook-too-big",
        f"The workbook unfolds to more than {MAX_UNFOLDED_BYTES >> 20} MB or {MAX_CELLS:,} cells",
        "Save the sheet as CSV or Parquet; cells far away from the data may be the reason: delete them.",
        where="file",
    )


def _broken(why: str) -> Problem:
    return Problem(
        "workbook-unreadable",
        f"The workbook could not be read ({why[:200]})",
        "Open it in Excel, save it without a password as .xlsx, or save the sheet as CSV.",
        where="file",
    )


def _not_a_workbook() -> Problem:
    return Problem(
        "not-a-workbook",
        "The file is a zip archive, not an Excel workbook",
        "Unpack it and choose the table inside.",
        where="file",
    )


def _last_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "the reader gave up"
