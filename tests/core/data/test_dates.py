"""One format for a whole column of dates; day or month first by what the column shows."""

from __future__ import annotations

import numpy as np
import pytest

from core.data.dates import read_dates


def days(*texts: str, order: str = "auto") -> list[str]:
    values = read_dates(list(texts), order).values  # type: ignore[arg-type]
    assert values is not None
    return [str(value)[:10] for value in values]


@pytest.mark.parametrize("wrong", ["2024-01-03 10:75", "2024-01-03 25:00", "2024-01-03 10:00:61"])
def test_an_hour_that_no_clock_shows_is_unreadable(wrong: str):
    found = read_dates(["2024-01-01 10:00", "2024-01-02 10:00", wrong])
    assert found.unreadable.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("2024-01-31", "2024-02-01"), ["2024-01-31", "2024-02-01"]),
        (("2024/1/31", "2024/2/1"), ["2024-01-31", "2024-02-01"]),
        (("20240131", "20240201"), ["2024-01-31", "2024-02-01"]),
        (("31.01.2024", "01.02.2024"), ["2024-01-31", "2024-02-01"]),
        (("1/31/24", "2/1/24"), ["2024-01-31", "2024-02-01"]),
        (("31-Jan-2024", "1-Feb-2024"), ["2024-01-31", "2024-02-01"]),
        (("January 31, 2024", "Feb 1, 2024"), ["2024-01-31", "2024-02-01"]),
        (("May-17", "Jun-17"), ["2017-05-01", "2017-06-01"]),
        (("2024-01", "2024-02"), ["2024-01-01", "2024-02-01"]),
        (("202401", "202402"), ["2024-01-01", "2024-02-01"]),
        (("2024-W01", "2024-W52"), ["2024-01-01", "2024-12-23"]),
        (("202401", "202452"), ["2024-01-01", "2024-12-23"]),
        (("2024Q1", "2024-Q4"), ["2024-01-01", "2024-10-01"]),
        (("2024-01-31T10:00:00Z", "2024-02-01 23:59"), ["2024-01-31", "2024-02-01"]),
    ],
)
def test_usual_formats_are_read(texts: tuple[str, ...], expected: list[str]) -> None:
    assert days(*texts) == expected


def test_a_part_above_twelve_is_the_day_for_the_whole_column() -> None:
    assert days("01/02/2024", "13/02/2024") == ["2024-02-01", "2024-02-13"]
    assert days("01/02/2024", "02/13/2024") == ["2024-01-02", "2024-02-13"]


def test_a_part_that_is_always_one_is_the_day_of_a_monthly_file() -> None:
    texts = [f"01-{month:02d}-2017" for month in range(1, 13)]
    assert days(*texts) == [f"2017-{month:02d}-01" for month in range(1, 13)]
    assert not read_dates(texts).ambiguous


def test_an_even_calendar_decides_between_day_and_month() -> None:
    assert days("05/01/2024", "12/01/2024", "02/02/2024", "09/02/2024")[:2] == ["2024-01-05", "2024-01-12"]


def test_dates_that_could_be_either_are_called_so_and_follow_the_choice() -> None:
    texts = ("03/04/2024", "05/06/2024")
    assert read_dates(texts).ambiguous
    assert days(*texts, order="day-first") == ["2024-04-03", "2024-06-05"]
    assert days(*texts, order="month-first") == ["2024-03-04", "2024-05-06"]


def test_the_odd_ones_are_unreadable_and_the_empty_ones_missing() -> None:
    read = read_dates(["2024-01-01", "2024-01-08", "2024-02-30", "soon", "", "NA", "2024-01-15"])
    assert read.unreadable.tolist() == [False, False, True, True, False, False, False]
    assert read.missing.tolist() == [False, False, False, False, True, True, False]
    assert read_dates(["1.1.2024", "2.1.2024", "3.1.0024"]).unreadable.tolist() == [False, False, True]


def test_week_numbers_and_names_are_periods_in_natural_order() -> None:
    assert read_dates(["1", "2", "10"]).reading == "whole numbers"
    read = read_dates(["week 1", "week 10"])
    assert read.ordinal and read.values is None and not read.unreadable.any()


def test_times_of_day_are_kept() -> None:
    values = read_dates(["1/31/2024 3:15 PM", "2/13/2024 12:00 am"]).values
    assert np.array_equal(values, np.array(["2024-01-31T15:15:00", "2024-02-13T00:00:00"], "datetime64[s]"))
