"""Text files as people have them are read as spelt; files that are no table end in a stated problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.data.source import RAGGED, display_name, read_source
from core.errors import UserError
from core.settings import Settings
from tests.core.data.tables import GOOD, HEADER, problem_of, read, read_rows, texts, write

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TABLE = [HEADER.split(","), *(row.split(",") for row in GOOD)]


@pytest.mark.parametrize("sign", ["¦", "§"])
def test_a_sign_beyond_ascii_is_no_delimiter_and_no_crash(tmp_path: Path, sign: str) -> None:
    assert problem_of(tmp_path, "\n".join(sign.join(row) for row in TABLE)) == "too-few-columns"
    assert problem_of(tmp_path, f"sep={sign}\n" + "\n".join(sign.join(row) for row in TABLE)) == "too-few-columns"


def test_an_accent_of_cp1252_as_the_last_byte_is_read(tmp_path: Path) -> None:
    source = read(tmp_path, b"units,price,product\n1,1.5,tea\n2,2.5,caf\xe9")
    assert texts(source)[-1][-1] == "café"


def test_a_file_that_says_utf8_and_is_not_is_told(tmp_path: Path) -> None:
    assert problem_of(tmp_path, b"\xef\xbb\xbfproduct,price,units\ncaf\xe9,1.5,2\n") == "not-a-table"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "~", "^"])
def test_any_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    source = read(tmp_path, "\n".join(delimiter.join(row) for row in TABLE))
    assert source.columns == tuple(TABLE[0])
    assert texts(source) == TABLE[1:]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_names_with_accents_survive_every_encoding(tmp_path: Path, encoding: str) -> None:
    text = "Produkt;Preis;Menge\nCrème brûlée;1,50;3\nMüsli;2,25;4\n" * 1
    source = read(tmp_path, text.encode(encoding))
    assert texts(source) == [["Crème brûlée", "1,50", "3"], ["Müsli", "2,25", "4"]]
    assert source.columns == ("Produkt", "Preis", "Menge")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_are_line_ends(tmp_path: Path, end: str) -> None:
    assert texts(read(tmp_path, end.join(",".join(row) for row in TABLE))) == TABLE[1:]


def test_codes_are_text_as_spelt(tmp_path: Path) -> None:
    names = ["007", "1e5", "NA", "None", "true", "nan", "1.0", " x ", "-", "=A1"]
    source = read_rows(tmp_path, [f"{name},2024-01-01,1,1" for name in names])
    assert [row[0] for row in texts(source)] == names


def test_quoted_cells_may_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    source = read(tmp_path, 'product,price,units\n"a, ""b""\nc",1,2\nd,3,4\n')
    assert texts(source) == [['a, "b"\nc', "1", "2"], ["d", "3", "4"]]


def test_a_quote_that_is_never_closed_is_a_letter(tmp_path: Path) -> None:
    source = read(tmp_path, 'product,price,units\n5" pan,1,2\n"open,3,4\n')
    assert source.rows_read == 2


def test_ragged_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    source = read_rows(tmp_path, [*GOOD, "C,2024-01-01,1", "D,2024-01-01,1,2,3"])
    assert source.rows_read == 6
    assert source.left_out == {RAGGED: 2}
    assert [note.code for note in source.notes] == ["ragged-rows"]
    assert source.notes[0].rows == 2 and source.notes[0].examples


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    source = read(tmp_path, "product,price,price,,units\nA,1,2,3,4\n")
    assert source.columns == ("product", "price", "price (2)", "column 4", "units")
    assert {note.code for note in source.notes} == {"duplicate-columns", "unnamed-columns"}


def test_a_separator_line_of_excel_is_obeyed(tmp_path: Path) -> None:
    assert read(tmp_path, "sep=;\nproduct;price;units\nA;1,5;2\n").columns == ("product", "price", "units")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "file-empty"),
        (b"\n\n  \n", "file-empty"),
        (b"\xef\xbb\xbf", "file-empty"),
        (b"product,price,units\n", "no-rows"),
        (b"product,price\nA,1\n", "too-few-columns"),
        (b"words", "too-few-columns"),
        (b"1,2.5,3\n4,5,6\n", "no-header"),
        (b"product,price,units\nA,1\nB,2\nC,3,4\n", "ragged-file"),
        (b"\x00\x01\x02" * 100, "not-a-table"),
        (b"%PDF-1.4\n\x01\x02\x03\x04\x05\x06\x0e\x0f\x10\x11", "not-a-table"),
        (b"\x1f\x8b\x08\x00rest", "packed"),
        (b"PAR1 and nothing else", "parquet-unreadable"),
        (b"PK\x03\x04 and nothing else", "workbook-unreadable"),
        (b"\xd0\xcf\x11\xe0 and nothing else", "workbook-unreadable"),
    ],
)
def test_what_is_no_table_is_a_stated_problem(tmp_path: Path, content: bytes, code: str) -> None:
    assert problem_of(tmp_path, content) == code


LONGER_THAN_A_SAMPLE = 300_000


def test_a_row_longer_than_the_sample_is_a_row(tmp_path: Path) -> None:
    remark = "long " * (LONGER_THAN_A_SAMPLE // 5)
    source = read(tmp_path, f"product,price,units,remark\ntea,1.5,2,{remark}\ncoffee,2.5,3,short\n")
    assert texts(source) == [["tea", "1.5", "2", remark], ["coffee", "2.5", "3", "short"]]


def test_a_long_row_with_line_ends_inside_quotes_is_a_row(tmp_path: Path) -> None:
    remark = "line\n" * (LONGER_THAN_A_SAMPLE // 5)
    source = read(tmp_path, f'product,price,units,remark\ntea,1.5,2,"{remark}"\ncoffee,2.5,3,short\n')
    assert texts(source) == [["tea", "1.5", "2", remark], ["coffee", "2.5", "3", "short"]]


def test_a_long_line_of_too_many_cells_is_left_out_for_that_reason(tmp_path: Path) -> None:
    source = read(tmp_path, HEADER + "\n" + GOOD[0] + "," * LONGER_THAN_A_SAMPLE + "\n" + "\n".join(GOOD) + "\n")
    assert source.left_out == {RAGGED: 1} and source.rows_read == len(GOOD) + 1


def test_a_name_longer_than_a_cell_may_be_is_refused_for_that(tmp_path: Path) -> None:
    name = "n" * LONGER_THAN_A_SAMPLE
    assert problem_of(tmp_path, f"product,price,units,{name}\ntea,1.5,2,3\n") == "long-name"


def test_ten_thousand_columns_are_refused(tmp_path: Path) -> None:
    names = ",".join(f"w{i}" for i in range(10_000))
    assert problem_of(tmp_path, f"{names}\n{names}\n") == "too-many-columns"


def test_a_line_of_a_hundred_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.write(b"product,price,units\n")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    with pytest.raises(UserError) as caught:
        read_source(path)
    assert caught.value.problems[0].code == "endless-line"


def test_limits_of_the_installation_hold(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join([HEADER, *GOOD]))
    for limits, code in ((Settings(max_rows=3), "too-many-rows"), (Settings(max_columns=3), "too-many-columns")):
        with pytest.raises(UserError) as caught:
            read_source(path, settings=limits)
        assert caught.value.problems[0].code == code


def test_a_missing_file_is_a_stated_problem(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_source(tmp_path / "none.csv")
    assert caught.value.problems[0].code == "file-missing"


def test_names_of_files_are_shown_without_folders_and_control_characters() -> None:
    assert display_name("../../etc/pass\x00wd\n") == "pass wd"
    assert display_name("C:\\data\\sales.csv") == "sales.csv"
    assert display_name("\n") == "unnamed"
    assert len(display_name("x" * 500)) == 120


def test_the_name_of_the_content_is_its_sha256(tmp_path: Path) -> None:
    first = read(tmp_path, "\n".join([HEADER, *GOOD]), "a.csv")
    second = read(tmp_path, "\n".join([HEADER, *GOOD]), "b.csv")
    assert first.sha256 == second.sha256
    assert first.size == len("\n".join([HEADER, *GOOD]))


@FUZZ
@given(st.binary(max_size=400))
def test_any_bytes_are_a_table_or_a_stated_problem(tmp_path: Path, content: bytes) -> None:
    try:
        source = read(tmp_path, content)
    except UserError as error:
        assert all(problem.what and problem.remedy for problem in error.problems)
    else:
        assert source.rows_read >= len(source.frame) > 0


@FUZZ
@given(st.text(alphabet='ab1,;\t|"\n\r .-é\u2028', max_size=300))
def test_any_text_is_a_table_or_a_stated_problem(tmp_path: Path, content: str) -> None:
    try:
        source = read(tmp_path, content)
    except UserError as error:
        assert all(problem.what and problem.remedy for problem in error.problems)
    else:
        assert len(source.frame.columns) >= 3


PLAIN_CELLS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='",;|\t'), min_size=1, max_size=8
)


@FUZZ
@given(st.lists(st.tuples(PLAIN_CELLS, PLAIN_CELLS, PLAIN_CELLS), min_size=1, max_size=20))
def test_cells_come_back_as_they_were_written(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    source = read(tmp_path, "\n".join(["product,price,units", *(",".join(row) for row in rows)]) + "\n")
    assert texts(source) == [list(row) for row in rows]
