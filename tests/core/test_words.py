"""Counts and names in words."""

import pytest

from core.words import plural, shown_name


@pytest.mark.parametrize(("number", "said"), [(0, "0 rows"), (1, "1 row"), (2_610, "2,610 rows")])
def test_one_is_singular_and_thousands_are_set_apart(number: int, said: str):
    assert plural(number, "row") == said


def test_an_irregular_plural_is_given():
    assert plural(2, "category", "categories") == "2 categories"


def test_shown_names_are_one_clean_line():
    assert shown_name("  weekly\r\nsales\x1b[31m \u202eevil ") == "weekly sales [31m evil"
    assert shown_name("\x00\x01") == "unnamed"
    assert shown_name("Käse 2,5 %") == "Käse 2,5 %"
    assert len(shown_name("x" * 500)) == 120
