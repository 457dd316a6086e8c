"""The page of tables: every record is a row, with its reason where it did not run."""

from core.benchmark.cases import VARIANTS, cells_of
from core.benchmark.markdown import COLUMNS, as_page, as_table, table
from core.benchmark.options import BenchmarkOptions
from core.benchmark.published import PUBLISHED, PUBLISHED_NUTS
from core.benchmark.ratios import TARGETS
from tests.core.benchmark.records import failed, record, report


def _rows(text):
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def test_every_record_is_a_row_as_wide_as_the_heading():
    rows = _rows(as_table([record(), failed(), record(accuracy={"rmse_to_truth": 0.1, "peak_bytes": 1e9})]))
    assert len(rows) == 3
    assert {row.count("|") for row in rows} == {len(COLUMNS) + 1}


def test_a_cell_that_did_not_run_says_why():
    assert "Not run: no GPU." in _rows(as_table([failed()]))[0]


def test_an_extrapolated_time_is_marked():
    assert "extrapolated" in _rows(as_table([record(accuracy={"extrapolated_from_steps": 40.0})]))[0]


def test_the_page_states_command_date_and_machine():
    page = as_page([report(record())])
    assert "2026-01-01T00:00:00Z" in page
    assert "python -m core benchmark" in page
    assert "a processor, 2 cores, 24 GiB" in page


def test_published_figures_are_labelled_as_published():
    page = as_page([report(record())])
    published = page.split("## Published by the article")[1]
    assert "not measured here" in published
    assert len(_rows(published)) == len(PUBLISHED) + 1


def test_published_speedups_are_the_articles_own():
    hours = {(p.n_products, p.devices): p.hours for p in PUBLISHED}
    stated = {(10_000, "1 GPU"): 32, (10_000, "4 GPUs"): 63, (100_000, "1 GPU"): 33, (1_000_000, "4 GPUs"): 102}
    for (products, devices), times in stated.items():
        assert abs(hours[products, "CPU"] / hours[products, devices] - times) < 1, (products, devices)
    assert PUBLISHED_NUTS.steps == 3_000


def _section(page, title):
    return page.split(f"\n{title}\n")[1].split("\n## ")[0]


def test_a_page_of_several_runs_numbers_them_from_the_newest_and_states_each_ones_ratios():
    article = record(34.0, variant="article")
    old = report(article, record(2.0), started="2026-01-01T00:00:00Z")
    new = report(article, record(3.4), started="2026-01-03T00:00:00Z", remark="Beside other work.")
    scale = report(record(case="scale"), started="2026-01-02T00:00:00Z")
    page = as_page([old, scale, new])
    assert page == as_page([new, old, scale])
    assert "- Measured: 2026-01-03" in _section(page, "## Run 1")
    assert "- Remark: Beside other work." in _section(page, "## Run 1")
    assert "| Wanted | Run 1 | Run 3 |" in _section(page, "## What must hold")
    assert "| at least 12 | **10, missed** | 17 |" in _section(page, "## What must hold")
    assert page.count("### Run") == 3
    assert "### Run 2: scale" in _section(page, "## scale")
    assert "## devices" not in page


def test_every_target_has_its_row_measured_or_not():
    rows = _rows(_section(as_page([report(record(34.0, variant="article"), record(2.0))]), "## What must hold"))
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [target.name for target in TARGETS]
    assert any("Mini-batches" in row and "not measured" in row for row in rows)


def test_every_variant_that_can_run_is_explained():
    assert {cell.variant for cell in cells_of(BenchmarkOptions())} <= VARIANTS.keys()


def test_bars_in_text_do_not_break_the_table():
    assert table(("a", "b"), [("x|y", "z")]).splitlines()[-1] == "| x\\|y | z |"
