"""Numbers in words."""

import math

import pytest

from core.report import wording


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (wording.elasticity(-1.9249), "-1.92"),
        (wording.elasticity(-1.92, -2.081, -1.769), "-1.92 [-2.08, -1.77]"),
        (wording.elasticity(-0.001), "0.00"),
        (wording.elasticity(math.nan, -1, 1), "–"),
        (wording.count(11_987), "11,987"),
        (wording.units(1234.4), "1,234"),
        (wording.units(12.34), "12.3"),
        (wording.units(12.0), "12"),
        (wording.price(1234.5), "1,234.50"),
        (wording.price(0.0123), "0.0123"),
        (wording.share(0.904), "90 %"),
        (wording.share(0.9996), "over 99 %"),
        (wording.share(0.0001), "under 1 %"),
        (wording.share(1.0), "100 %"),
        (wording.seconds(0.034), "34 ms"),
        (wording.seconds(0.34), "0.3 s"),
        (wording.seconds(42.4), "42 s"),
        (wording.seconds(59.7), "1 min"),
        (wording.seconds(125), "2 min 5 s"),
        (wording.seconds(12_000), "3 h 20 min"),
        (wording.seconds(187_200), "2 d 4 h"),
        (wording.loss(2.93456), "2.935"),
        (wording.loss(12.3), "12.300"),
        (wording.loss(math.nan), "not a number"),
        (wording.size(912_000_000), "912 MB"),
        (wording.size(999_700), "1.0 MB"),
        (wording.size(1_440_000_000), "1.4 GB"),
        (wording.plural(1, "product"), "1 product"),
        (wording.plural(12_000, "category", "categories"), "12,000 categories"),
    ],
)
def test_numbers_read_as_people_write_them(got, wanted):
    assert got == wanted
