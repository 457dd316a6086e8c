"""Read a text file of any delimiter and encoding as columns of text, spelt as the file spells them."""

from __future__ import annotations

import codecs
import csv
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.data.lines import Lines
from core.data.numbers import bare_number
from core.errors import Problem, UserError

SAMPLE_BYTES = 1 << 18
SAMPLE_LINES = 3
"""At least so many lines are looked at, however long they are: `sep=`, the header and a row."""
PIECE_BYTES = 1 << 20
"""A stretch of this length without a line end is not a table."""
BLOCK_BYTES = 4 << 20
USUAL_DELIMITERS = (",", ";", "\t", "|")
FEWEST_COLUMNS = 3
DISTINCT_SHARE = 0.5
"""Columns whose sample repeats itself more than this are read as codes into their distinct texts."""
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


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


@dataclass(frozen=True)
class _Facts:
    encoding: str
    quoted: bool
    lines: int
    """Line ends up to the last line that holds anything, and that line."""


def read_delimited(path: Path, max_columns: int) -> TextTable:
    """Read the file at `path`. Raises UserError where it is no table of text: empty, binary, one endless line, ..."""
    facts = _survey(path)
    notes = []
    if facts.encoding not in ("utf-8", "utf-8-sig"):
        notes.append(_encoding_note(facts.encoding))
    with _as_utf8(path, facts.encoding) as readable:
        sample = _sample(readable)
        delimiter, skip = _delimiter(sample)
        header = _header(sample, delimiter, skip, max_columns)
        notes += _header_problems(header)
        names = unique_names(header)
        types = _column_types(sample, delimiter, skip, names)
        table, ragged, examples = _read(readable, delimiter, skip, names, types, facts.quoted)
    if table.num_rows + ragged == 0:
        raise UserError(no_rows())
    shifted = facts.lines != 1 + table.num_rows
    return TextTable(table, ragged, examples, tuple(notes), delimiter, shifted)


def unique_names(header: list[str]) -> list[str]:
    """Names of columns as given, made unique and not empty: 'price', 'price (2)', 'column 3'."""
    names: list[str] = []
    for position, given in enumerate(header, start=1):
        stem = given.strip() or f"column {position}"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem} ({number})"
        names.append(name)
    return names


def header_notes(header: list[str]) -> list[Problem]:
    """What was done about duplicate and empty column names."""
    counts = Counter(name.strip() for name in header if name.strip())
    twice = sorted(name for name, count in counts.items() if count > 1)
    notes = []
    if twice:
        notes.append(
            Problem(
                "duplicate-columns",
                f"{len(twice)} column names occur more than once",
                "Rename them to tell them apart.",
                where=", ".join(twice[:5]),
                severity="warning",
                examples=tuple(twice[:3]),
                treatment="Later ones are numbered, as in 'price (2)'.",
            )
        )
    unnamed = [str(i) for i, name in enumerate(header, start=1) if not name.strip()]
    if unnamed:
        notes.append(
            Problem(
                "unnamed-columns",
                f"{len(unnamed)} columns have no name",
                "Name them in the file if you need them.",
                where="header",
                severity="note",
                examples=tuple(unnamed[:3]),
                treatment="They are called by their place, as in 'column 3'.",
            )
        )
    return notes


def _survey(path: Path) -> _Facts:
    """Encoding (proved by decoding), quotes and line lengths, in one pass of bounded memory."""
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        encoding = next((name for bom, name in BOMS if head.startswith(bom)), None) or _utf16_without_bom(head)
        if encoding is None and b"\0" in head:
            raise UserError(_not_text("It holds zero bytes, which no text file has"))
        decoder: codecs.IncrementalDecoder | None = None
        if encoding in (None, "utf-8-sig"):
            decoder = codecs.getincrementaldecoder("utf-8")()
        file.seek(0)
        quoted, lines = False, Lines()
        while piece := file.read(PIECE_BYTES):
            quoted = quoted or b'"' in piece
            lines.see(piece)
            if len(piece) == PIECE_BYTES and b"\n" not in piece and b"\r" not in piece:
                raise UserError(_endless_line())
            decoder = _still_utf8(decoder, piece)
    if encoding in (None, "utf-8-sig") and (decoder is None or decoder.getstate()[0]):
        if encoding is not None:
            raise UserError(_not_text("It says that it is UTF-8 and is not"))
        encoding = "cp1252"
    encoding = encoding or "utf-8"
    return _Facts(encoding, quoted, lines.count)


def _still_utf8(decoder: codecs.IncrementalDecoder | None, piece: bytes) -> codecs.IncrementalDecoder | None:
    if decoder is None or (piece.isascii() and decoder.getstate()[0] == b""):
        return decoder
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        return None
    return decoder


def _utf16_without_bom(head: bytes) -> str | None:
    """UTF-16 betrays itself by zeros in every second byte."""
    if len(head) < 4 or (len(head) % 2 and len(head) < SAMPLE_BYTES):
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.1 else None


@contextmanager
def _as_utf8(path: Path, encoding: str) -> Iterator[Path]:
    """The file itself where it is UTF-8, else a temporary copy that is."""
    if encoding in ("utf-8", "utf-8-sig"):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="isoelastic-") as folder:
        copy = Path(folder) / "utf8.csv"
        try:
            with (
                path.open(encoding=encoding, newline="") as source,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                while piece := source.read(PIECE_BYTES):
                    out.write(piece)
        except UnicodeError:
            raise UserError(_not_text(f"It is neither UTF-8 nor {encoding.split('-l')[0].split('-b')[0]}")) from None
        yield copy


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
        raise UserError(_not_text("It holds control characters"))
    return text


def _rows(sample: str, delimiter: str, skip: int, count: int = 200) -> list[list[str]]:
    lines = io.StringIO(sample, newline="")
    rows = []
    try:
        for number, row in enumerate(csv.reader(lines, delimiter=delimiter)):
            if number >= skip and row:
                rows.append(row)
            if len(rows) >= count:
                break
    except csv.Error:
        pass
    return rows


def _delimiter(sample: str) -> tuple[str, int]:
    """The character that cuts the sample most evenly into most columns, and the lines to skip before the header."""
    first = sample.splitlines()[0]
    declared = re.fullmatch(r"sep=([\x01-\x7f])", first.strip(' \r\n"'))
    if declared:
        return declared[1], 1
    unusual = [
        c
        for c in dict.fromkeys(first)
        if c.isascii() and not c.isalnum() and c not in " .\"'_-/()%#&" + "".join(USUAL_DELIMITERS)
    ]
    candidates = [c for c in (*USUAL_DELIMITERS, *unusual[:5], " ") if c in first]
    scores = {candidate: _evenness(_rows(sample, candidate, 0)) for candidate in candidates}
    best = max(scores, key=lambda candidate: scores[candidate], default=",")
    return (best, 0) if scores.get(best, 0.0) > 0 else (",", 0)


def _evenness(rows: list[list[str]]) -> float:
    """Columns of the header x share of rows that have as many, squared so that one odd row does not decide."""
    if not rows or len(rows[0]) < 2:
        return 0.0
    same = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    return same * same * len(rows[0]) ** 0.5


def _header(sample: str, delimiter: str, skip: int, max_columns: int) -> list[str]:
    rows = _rows(sample, delimiter, skip, count=1)
    if not rows and any(len(line) > csv.field_size_limit() for line in sample.splitlines()[: skip + 1]):
        raise UserError(_long_name())
    if not rows:
        raise UserError(Problem("file-empty", "The file has no table", "Export the data again.", where="file"))
    if len(rows[0]) > max_columns:
        raise UserError(too_many_columns(len(rows[0]), max_columns))
    if len(rows[0]) < FEWEST_COLUMNS:
        raise UserError(too_few_columns(rows[0]))
    return rows[0]


def no_rows() -> Problem:
    return Problem("no-rows", "The file has a header and no rows", "Export the data again.", where="file")


def _long_name() -> Problem:
    return Problem(
        "long-name",
        f"The header has a name of more than {csv.field_size_limit():,} characters",
        "Check that the header ends in a line end and that its quotes are closed.",
        where="header",
    )


def too_few_columns(names: Sequence[str]) -> Problem:
    return Problem(
        "too-few-columns",
        f"Only {len(names)} columns were found: {', '.join(names)[:100]}",
        "Product, price and units are needed, cut by comma, semicolon, tab or another single sign.",
        where="file",
    )


def too_many_columns(count: int, limit: int) -> Problem:
    return Problem(
        "too-many-columns",
        f"The file has {count:,} columns; at most {limit:,} are read",
        "Keep product, price, units and the few columns the model may use. A table with one column per week must be "
        "turned into one row per product and week.",
        where="file",
    )


def _header_problems(header: list[str]) -> list[Problem]:
    numbers = sum(bool(re.fullmatch(r"[+-]?\d+([.,]\d+)*", bare_number(name))) for name in header)
    if 2 * numbers >= len(header) and numbers > 0:
        raise UserError(
            Problem(
                "no-header",
                "The first line reads like data, not like names of columns",
                "Put a line with the columns' names on top of the file.",
                where="header",
                examples=tuple(header[:3]),
            )
        )
    return header_notes(header)


def _column_types(sample: str, delimiter: str, skip: int, names: list[str]) -> dict[str, pa.DataType]:
    rows = [row for row in _rows(sample, delimiter, skip, count=4000)[1:] if len(row) == len(names)]
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


def _encoding_note(encoding: str) -> Problem:
    return Problem(
        "encoding",
        f"The file is not UTF-8; it was read as {encoding}",
        "Nothing, if names with accents look right.",
        where="file",
        severity="note",
        treatment="Converted while reading.",
    )


def _not_text(what: str) -> Problem:
    return Problem(
        "not-a-table",
        f"The file is no text table. {what}",
        "Save the data as CSV (UTF-8), Excel workbook (.xlsx) or Parquet.",
        where="file",
    )


def _endless_line() -> Problem:
    return Problem(
        "endless-line",
        "The file has a line longer than a megabyte",
        "Check that the export writes line ends; one row per product and period is expected.",
        where="file",
    )
