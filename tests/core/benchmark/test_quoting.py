"""The sentences that other pages quote: of the newest run that has them, and the same to the letter everywhere."""

import pytest

from core.benchmark.markdown import as_page
from core.benchmark.quoting import in_short
from core.benchmark.runner import ROOT, shipped_reports
from tests.core.benchmark.records import record, report

FIT = {"rmse_to_truth": 0.2, "coverage90": 0.895, "peak_bytes": 2.5e9}


def _steps(started, panel=2.0, **changes):
    renyi = {"loss": "RenyiELBO", "particles": 4}
    fit = record(30.0, variant="structured", loss="", particles=0, n_obs=1_880_000, compile_seconds=10.0, accuracy=FIT)
    sides = (record(34.0, variant="article"), record(panel))
    return report(*sides, record(100.0, variant="article", **renyi), record(4.0, **renyi), fit, started=started)


def _scale(started, *sizes):
    fits = (
        record(12.0, case="scale", variant="structured", n_products=p, n_obs=n, compile_seconds=0.5, accuracy=FIT)
        for p, n in sizes
    )
    return report(*fits, started=started)


def test_the_newest_run_that_has_both_sides_is_quoted():
    old, new = _steps("2026-01-01T00:00:00Z"), _steps("2026-01-02T00:00:00Z", panel=3.4)
    (sentence,) = in_short([old, new, report(record(), started="2026-01-03T00:00:00Z")])
    assert "1.88 million rows (run of 2026-01-02) one SVI step is 10 times (ELBO) and 25 times" in sentence
    assert "as long as 40 of the recipe's steps" in sentence
    assert "89.5 % of its 90 % intervals" in sentence


def test_the_fit_of_most_rows_is_quoted():
    (sentence,) = in_short([_scale("2026-01-01T00:00:00Z", (64, 10_000), (100_000, 15_600_000))])
    told = "took 12.5 s for 15.6 million rows (100,000 products; 2.5 GB at the peak of the process)."
    assert sentence.endswith(told)


def test_beside_it_the_fit_of_most_products_is_quoted():
    (sentence,) = in_short([_scale("2026-01-01T00:00:00Z", (1_000_000, 26_000_000), (262_144, 40_900_000))])
    rows, products = sentence.split(", and ")
    assert "40.9 million rows (262,144 products" in rows
    assert "26 million rows (1,000,000 products" in products


def test_nothing_is_quoted_that_was_not_measured():
    assert in_short([report(record()), _scale("2026-01-01T00:00:00Z")]) == ()
    assert "## In short" not in as_page([report(record())])


@pytest.mark.parametrize(("number", "page"), [(0, "README.md"), (1, "README.md"), (1, "docs/method.md")])
def test_pages_quote_what_is_recorded(number, page):
    sentence = in_short(shipped_reports())[number]
    words = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence in words, f"{page} must quote, as docs/benchmarks.md does under 'In short': {sentence}"
