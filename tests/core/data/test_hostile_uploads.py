"""Five hundred malformed uploads, one after another, end in a stated problem or an account that adds up.

Each is a sound file that was damaged, or bytes that pretend to be one. What they are follows from a fixed seed.
"""

from __future__ import annotations

import gc
import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.data.guessing import guess_roles
from core.data.source import read_source
from core.data.validation import Checked, Choices, validate
from core.environment import resident_bytes
from core.errors import UserError
from core.settings import Settings

SEED = 20
WARM = 100
"""Uploads after which allocators and lazily imported readers have taken what they keep."""
GROWTH_BYTES = 150 << 20
"""Far more than freed pages that an allocator keeps; far less than one upload leaked of every kind, 400 times."""
NAMES = (
    "../../../../etc/passwd", "C:\\windows\\system32\\x.csv", "a\x00b\x1b[2J.csv", "=cmd|' /C calc'!A0.csv",
    "<script>alert(1)</script>.csv", "\u202evsc.exe", "😀" * 200, "", ".", "\n",
)  # fmt: skip
Maker = Callable[[np.random.Generator], bytes]


def sound(rng: np.random.Generator) -> pd.DataFrame:
    rows = 60
    return pd.DataFrame(
        {
            "product": [f"ärticle {i % 4}" for i in range(rows)],
            "week": pd.date_range("2024-01-01", periods=rows // 4, freq="7D").repeat(4).astype(str),
            "price": rng.choice([1.0, 1.25, 1.5, 2.0], rows),
            "units": rng.poisson(8, rows),
        }
    )


def csv_bytes(rng: np.random.Generator) -> bytes:
    text = sound(rng).to_csv(index=False, sep=str(rng.choice([",", ";", "\t", "|"])))
    return text.encode(str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])))


def parquet_bytes(rng: np.random.Generator) -> bytes:
    buffer = io.BytesIO()
    sound(rng).to_parquet(buffer, index=False)
    return buffer.getvalue()


def workbook_bytes(rng: np.random.Generator) -> bytes:
    buffer = io.BytesIO()
    sound(rng).head(12).to_excel(buffer, index=False)
    return buffer.getvalue()


SPLINTERS = (
    b"\x00", b'"', b'""', b"\r", b"\n\n", b",,,,", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"1e999", b"-inf", b"9" * 400,
    b"\x1b[2J", b"=HYPERLINK(1)", b"0000-00-00", b"\xf0\x9f\x98\x80", b"a" * 5_000, b"1.000.000,5", b"%", b"--1",
)  # fmt: skip


def damaged(make: Maker, most: int = 8) -> Maker:
    """The file of `make` with splinters put in, bytes turned, stretches doubled, or its end torn off."""

    def broken(rng: np.random.Generator) -> bytes:
        content = bytearray(make(rng))
        for _ in range(rng.integers(1, most + 1)):
            at, length = int(rng.integers(0, len(content) + 1)), int(rng.integers(1, 60))
            kind = rng.integers(0, 5)
            if kind == 0:
                content[at:at] = SPLINTERS[rng.integers(0, len(SPLINTERS))]
            elif kind == 1:
                content[at : at + length] = rng.bytes(length)
            elif kind == 2:
                content[at:at] = content[at : at + length]
            elif kind == 3:
                del content[at : at + length]
            elif rng.random() < 0.2:
                del content[at:]
        return bytes(content)

    return broken


def pretended(rng: np.random.Generator) -> bytes:
    heads = (
        b"PAR1",
        b"PK\x03\x04",
        b"\xd0\xcf\x11\xe0",
        b"\x1f\x8b",
        b"\xff\xfe",
        b"sep=\n",
        b"%PDF-1.7",
        b"<html>",
        b"{",
    )
    return (
        heads[rng.integers(0, len(heads))]
        + rng.bytes(int(rng.integers(0, 3_000)))
        + (b"PAR1" * int(rng.integers(0, 2)))
    )


def ten_thousand_columns(rng: np.random.Generator) -> bytes:
    return b"\n".join(b",".join(b"c%d" % i for i in range(10_000)) for _ in range(3))


def control_names(rng: np.random.Generator) -> bytes:
    return b"pro\x07duct,\x1b[2Jprice,u\x7fnits\n" + b"\x02a,1,1\n" * 30


def workbook_bomb(rng: np.random.Generator) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (40 << 20))
    return buffer.getvalue()


def endless_line(rng: np.random.Generator) -> bytes:
    return b"product,price,units;" * (5 << 20)


def uploads(rng: np.random.Generator) -> Iterator[bytes]:
    kinds = {damaged(csv_bytes): 400, pretended: 40, damaged(parquet_bytes): 40, damaged(workbook_bytes, 2): 16}
    makers = [maker for maker, count in kinds.items() for _ in range(count)]
    makers += [ten_thousand_columns, control_names, workbook_bomb, endless_line]
    for number in rng.permutation(len(makers)):
        yield makers[number](rng)


def taken_in(path: Path, name: str, settings: Settings) -> Checked:
    source = read_source(path, name, settings)
    assert not {"/", "\\", "\x00", "\x1b", "\n"} & {*source.name} and 0 < len(source.name) <= 120
    found = validate(source, guess_roles(source), Choices())
    if found.sales is not None:
        account = found.sales.account
        assert account.read == source.rows_read == account.used + sum(account.left_out.values())
        assert len(found.sales.frame) > 0
        assert found.sales.frame["price"].gt(0).all() and found.sales.frame["units"].ge(0).all()
    return found


def outcome(path: Path, name: str, settings: Settings) -> str:
    try:
        found = taken_in(path, name, settings)
    except UserError as refused:
        problems, kind = refused.problems, "refused"
    else:
        problems, kind = found.problems, "refused" if found.sales is None else "taken"
        assert kind == "taken" or any(problem.severity == "error" for problem in problems)
    assert all(problem.what and problem.remedy for problem in problems)
    return kind


@pytest.mark.slow
def test_five_hundred_malformed_uploads_harm_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.workbook.MAX_UNFOLDED_BYTES", 20 << 20)
    rng, settings, path = np.random.default_rng(SEED), Settings(data_dir=tmp_path / "data"), tmp_path / "upload"
    outcomes, held = [], 0
    for number, content in enumerate(uploads(rng)):
        path.write_bytes(content)
        outcomes.append(outcome(path, NAMES[number % len(NAMES)], settings))
        if number == WARM:
            gc.collect()
            held = resident_bytes()
    gc.collect()
    assert len(outcomes) == 500
    assert outcomes.count("refused") > 100 and outcomes.count("taken") > 100
    assert resident_bytes() - held < GROWTH_BYTES
    assert [entry.name for entry in tmp_path.iterdir()] == ["upload"]

    for make in (csv_bytes, parquet_bytes, workbook_bytes):
        path.write_bytes(make(rng))
        assert outcome(path, "good.csv", settings) == "taken"
