"""Find out how a text file is encoded, and give it out as UTF-8, in one pass of bounded memory each."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.data.lines import Lines
from core.errors import Problem, UserError

SAMPLE_BYTES = 1 << 18
PIECE_BYTES = 1 << 20
"""A stretch of this length without a line end is not a table."""
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class Facts:
    """What one look at all bytes tells."""

    encoding: str
    quoted: bool
    lines: int
    """Line ends up to the last line that holds anything, and that line."""


def survey(path: Path) -> Facts:
    """Encoding (proved by decoding), quotes and line lengths, in one pass of bounded memory."""
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        encoding = next((name for bom, name in BOMS if head.startswith(bom)), None) or _utf16_without_bom(head)
        if encoding is None and b"\0" in head:
            raise UserError(not_text("It holds zero bytes, which no text file has"))
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
            raise UserError(not_text("It says that it is UTF-8 and is not"))
        encoding = "cp1252"
    encoding = encoding or "utf-8"
    return Facts(encoding, quoted, lines.count)


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
def as_utf8(path: Path, encoding: str) -> Iterator[Path]:
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
            raise UserError(not_text(f"It is neither UTF-8 nor {encoding.split('-l')[0].split('-b')[0]}")) from None
        yield copy


def encoding_note(encoding: str) -> Problem:
    return Problem(
        "encoding",
        f"The file is not UTF-8; it was read as {encoding}",
        "Nothing, if names with accents look right.",
        where="file",
        severity="note",
        treatment="Converted while reading.",
    )


def not_text(what: str) -> Problem:
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
