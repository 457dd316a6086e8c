"""The elasticity table: its fixed columns, its names, its filters and pages."""

import numpy as np
import pytest

from core.posterior.posterior import posterior_from_draws
from core.report.tables import CONTRACT_COLUMNS, elasticity_table, matching, page_of
from tests.core.posterior.handmade import market


@pytest.fixture(scope="module")
def posterior():
    panel, labels, draws = market()
    return posterior_from_draws(draws, panel, labels, diagnostics={"k_hat": np.linspace(0.1, 0.9, 12)})


@pytest.fixture(scope="module")
def table(posterior):
    return elasticity_table(posterior)


@pytest.fixture(scope="module")
def products(table):
    return table[table["level"] == "product"].reset_index(drop=True)


def test_the_promised_columns_come_first(table):
    assert tuple(table.columns[: len(CONTRACT_COLUMNS)]) == CONTRACT_COLUMNS
    assert {"price_sd", "own_estimate", "own_se", "shrinkage", "k_hat", "verdict"} <= set(table.columns)


def test_one_row_for_the_market_one_per_category_one_per_product(table):
    assert table["level"].tolist() == ["global"] + ["category"] * 3 + ["product"] * 12
    assert table["product"].tolist()[4:] == [f"{code:05d}" for code in range(12)]
    assert table["category"].tolist()[:5] == ["", "category 0", "category 1", "category 2", "category 0"]


def test_rows_add_up_over_levels(table):
    by_level = table.groupby("level")["n_obs"].sum()
    assert by_level["global"] == by_level["category"] == by_level["product"]


def test_price_variation_of_a_category_is_that_of_its_products_cells(posterior, table):
    labels, member = posterior.labels, posterior.category_of_product == 1
    wanted = np.sqrt((labels.n_obs * labels.price_sd**2)[member].sum() / labels.n_obs[member].sum())
    assert table.loc[2, "price_sd"] == pytest.approx(wanted)


def test_own_estimates_and_diagnostics_belong_to_products(table):
    above = table[table["level"] != "product"]
    assert above[["own_estimate", "own_se", "shrinkage", "k_hat"]].isna().all(axis=None)
    assert table["k_hat"].iloc[-1] == pytest.approx(0.9)


def test_search_is_literal_and_ignores_case(products):
    assert matching(products, search="CATEGORY 2")["category"].unique().tolist() == ["category 2"]
    assert matching(products, search="0001")["product"].tolist() == ["00001", "00010", "00011"]
    assert matching(products, search=".*").empty


def test_filters_combine(products):
    found = matching(products, category="category 2", verdict="no variation")
    assert found["product"].tolist() == ["00011"]


def test_pages_cut_the_sorted_table_and_missing_values_come_last(products):
    first = page_of(products, sort="own_estimate", ascending=False, page=1, size=5)
    last = page_of(products, sort="own_estimate", ascending=False, page=99, size=5)
    assert (first.matched, first.pages, last.page, len(last.rows)) == (12, 3, 3, 2)
    assert first.rows["own_estimate"].is_monotonic_decreasing
    assert np.isnan(last.rows["own_estimate"].iloc[-1])


def test_nothing_found_is_one_empty_page(products):
    found = page_of(products, search="no such product")
    assert (found.matched, found.page, found.pages, len(found.rows)) == (0, 1, 1, 0)


def test_what_an_engine_reports_never_replaces_a_summary_of_the_draws():
    panel, labels, draws = market()
    odd = posterior_from_draws(draws, panel, labels, diagnostics={"mean": np.full(12, 7.0), "verdict": np.ones(12)})
    table = elasticity_table(odd)
    assert table.loc[0, "mean"] == odd.levels["global"].mean[0]
    assert table["mean"].tolist()[4:] == odd.levels["product"].mean.tolist()
    assert set(table["verdict"]) <= {"elastic", "inelastic", "rises", "uncertain", "no variation"}
