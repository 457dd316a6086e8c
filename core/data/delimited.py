"""Read a text file of any delimiter and encoding as columns of text, spelt as the file spells them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.data.header import find_delimiter, header_of, header_problems, no_rows, rows_of, unique_names
from core.data.transcoding import SAMPLE_BYTES, as_utf8, encoding_note, not_text, survey
from core.errors import Problem, UserError

SAMPLE_LINES = 3
"""At least so many lines are looked at, however long they are: `sep=`, the header and a row."""
BLOCK_BYTES = 4 << 20
DISTINCT_SHARE = 0.5
"""Columns whose sample repeats itself more than this are read as codes into their distinct texts."""


@dataclass(frozen=True)
class TextTable:
    """What a text file holds. Every column is text: plain or dictionary-encoded; an empty cell is an empty text."""

    table: pa.Table
    ragged: int
    """Rows left out because they have more or fewer cells than the header."""
    ragged_examples: tuple[str, ...]
    notes: tuple[Problem, ...]
    delimiter: str
    shifted: bool
    """The file has other lines than the header and one for each row."""


def read_delimited(path: Path, max_columns: int) -> TextTable:
    """Read the file at `path`. Raises UserError where it is no table of text: empty, binary, one endless line, ..."""
    facts = survey(path)
    notes = []
    if facts.encoding not in ("utf-8", "utf-8-sig"):
        notes.append(encoding_note(facts.encoding))
    with as_utf8(path, facts.encoding) as readable:
        sample = _sample(readable)
        delimiter, skip = find_delimiter(sample)
        header = header_of(sample, delimiter, skip, max_columns)
        notes += header_problems(header)
        names = unique_names(header)
        types = _column_types(sample, delimiter, skip, names)
        table, ragged, examples = _read(readable, delimiter, skip, names, types, facts.quoted)
    if table.num_rows + ragged == 0:
        raise UserError(no_rows())
    shifted = facts.lines != 1 + table.num_rows
    return TextTable(table, ragged, examples, tuple(notes), delimiter, shifted)


def _sample(path: Path) -> str:
    """The first whole lines of the file, decoded."""
    with path.open("rb") as file:
        raw = piece = file.read(SAMPLE_BYTES)
        while len(raw.splitlines()) <= SAMPLE_LINES and len(piece) == SAMPLE_BYTES:
            raw += (piece := file.read(SAMPLE_BYTES))
        if len(piece) == SAMPLE_BYTES:
            raw = raw[: max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1]
    text = raw.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    controls = sum(character < " " and character not in "\t\r\n" for character in text[:4096])
    if not text.strip():
        raise UserError(
            Problem("file-empty", "The file is empty", "Export the data again and choose that file.", where="file")
        )
    if controls > 8:
        raise UserError(not_text("It holds control characters"))
    return text


def _column_types(sample: str, delimiter: str, skip: int, names: list[str]) -> dict[str, pa.DataType]:
    rows = [row for row in rows_of(sample, delimiter, skip, count=4000)[1:] if len(row) == len(names)]
    coded, plain = pa.dictionary(pa.int32(), pa.string()), pa.string()
    if len(rows) < 100:
        return dict.fromkeys(names, coded)
    return {
        name: coded if len(set(column)) < DISTINCT_SHARE * len(rows) else plain
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


def _read(
    path: Path, delimiter: str, skip: int, names: list[str], types: dict[str, pa.DataType], quoted: bool
) -> tuple[pa.Table, int, tuple[str, ...]]:
    bad = _RaggedRows()
    quotes: tuple[str | bool, ...] = ('"', False) if quoted else (False,)
    problem: Exception | None = None
    for quote in quotes:
        bad.clear()
        try:
            with pa.memory_map(str(path)) as mapped:
                table = arrow_csv.read_csv(
                    mapped,
                    read_options=arrow_csv.ReadOptions(
                        column_names=names, skip_rows=skip, skip_rows_after_names=1, block_size=BLOCK_BYTES
                    ),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=delimiter,
                        quote_char=quote,
                        newlines_in_values=quote is not False,
                        invalid_row_handler=bad,
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=types, strings_can_be_null=False, check_utf8=False
                    ),
                )
        except pa.ArrowInvalid as error:
            problem = error
            continue
        return table, bad.count, tuple(bad.examples)
    raise UserError(
        Problem(
            "unreadable-table",
            f"The file could not be cut into rows and columns ({_first_line(problem)})",
            "Look for a quote that is never closed, or export the file again.",
            where="file",
        )
    )


class _RaggedRows:
    """Counts the rows that the reader leaves out, and keeps a few."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.examples: list[str] = []

    def __call__(self, row: arrow_csv.InvalidRow) -> str:
        self.count += 1
        if len(self.examples) < 3:
            self.examples.append(f"{row.actual_columns} cells: {row.text[:60]}")
        return "skip"


def _first_line(error: Exception | None) -> str:
    return str(error).splitlines()[0][:200] if error else ""
