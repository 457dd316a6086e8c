"""The Elasticities page shows the numbers of the posterior, and the table finds, filters and sorts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.data.markets import market_source
from core.report.tables import elasticity_table
from core.report.wording import elasticity
from core.runs.desk import result_path
from core.simulation import MarketPlan, simulate
from pages.components import services
from tests.pages.conftest import said
from tests.pages.test_model import submit


@pytest.fixture
def run_id(installation):
    run_id = submit(installation)
    installation.wait(run_id, timeout=60)
    return run_id


def rows(tab):
    return next(table.value for table in tab.dataframe if "prob_elastic" in table.value)


def test_without_a_run_the_page_says_what_to_do(open_page):
    tab = open_page("elasticities")
    assert not tab.exception
    assert "No elasticities yet" in said(tab)


def test_without_a_run_the_newest_of_the_data_in_use_is_shown(open_page, installation, run_id):
    market = simulate(MarketPlan(products=20, periods=30, categories=2, seed=9))
    other = installation.datasets.add(market_source(market, "Other market"))
    newer = submit(installation, dataset=other)
    assert installation.wait(newer, timeout=60).usable
    for dataset, run in ((installation.snapshot(run_id).dataset_id, run_id), (other, newer)):
        tab = open_page("elasticities", data=dataset[:12])
        assert not tab.exception and tab.query_params["run"] == run


def test_the_top_line_is_the_posteriors(open_page, installation, run_id):
    tab = open_page("elasticities", run=run_id)
    assert not tab.exception
    posterior = installation.result(run_id).posterior
    market = posterior.levels["global"]
    shown = {metric.label: metric.value for metric in reversed(tab.metric)}
    assert shown["Market elasticity"] == elasticity(market.mean[0], market.lower[0], market.upper[0])
    assert shown["Products"] == "60"
    verdicts = posterior.verdicts("product")
    assert shown["Elastic"] == str((verdicts == "elastic").sum())


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-90])])
def test_a_lost_result_is_drawn_again_at_a_click(open_page, installation, run_id, spoil):
    posterior = installation.result(run_id).posterior
    spoil(result_path(installation.settings, run_id))
    tab = open_page("elasticities", run=run_id)
    assert not tab.exception
    assert not tab.metric
    tab.button(key="redraw").click().run()
    assert not tab.exception
    assert installation.wait(run_id, timeout=60).usable
    drawn = installation.result(run_id).posterior
    assert np.array_equal(drawn.draws.elasticity_product, posterior.draws.elasticity_product)
    assert open_page("elasticities", run=run_id).metric


def test_a_mean_field_guide_is_warned_of_in_general_and_not_as_a_finding_of_this_run(open_page, run_id):
    words = said(open_page("elasticities", run=run_id))
    assert "In general a mean-field guide" in words
    assert "intervals are too narrow" not in words


@pytest.mark.parametrize("home, told", [("device", False), ("host", True)])
def test_that_a_runs_rows_were_streamed_is_said(open_page, run_id, monkeypatch, home, told):
    found = services.result

    def with_home(run):
        return replace(found(run), fit=replace(found(run).fit, diagnostics={"data_home": home}))

    monkeypatch.setattr(services, "result", with_home)
    tab = open_page("elasticities", run=run_id)
    assert not tab.exception
    assert ("streamed to the device" in said(tab)) == told


def test_the_table_shows_every_product_with_its_numbers(open_page, installation, run_id):
    table = elasticity_table(installation.result(run_id).posterior)
    expected = table[table["level"] == "product"].set_index("product")["mean"]
    shown = rows(open_page("elasticities", run=run_id)).set_index("product")["mean"]
    assert len(shown) == 50
    assert shown.to_dict() == pytest.approx(expected[shown.index].to_dict())


def test_search_and_paging_happen_on_the_server(open_page, run_id):
    tab = open_page("elasticities", run=run_id)
    tab.number_input(key="page-of-table").set_value(2).run()
    assert len(rows(tab)) == 10
    name = rows(tab)["product"].iloc[0]
    tab.text_input(key="find").set_value(name).run()
    assert not tab.exception
    assert rows(tab)["product"].tolist() == [name]


def test_sorting_puts_the_largest_first_over_all_pages(open_page, installation, run_id):
    tab = open_page("elasticities", run=run_id)
    tab.selectbox(key="sorted-by").set_value("mean").run()
    tab.toggle(key="falling").set_value(True).run()
    largest = installation.result(run_id).posterior.levels["product"].mean.max()
    assert rows(tab)["mean"].iloc[0] == pytest.approx(largest)


def test_a_search_without_a_match_says_so(open_page, run_id):
    tab = open_page("elasticities", run=run_id)
    tab.text_input(key="find").set_value("no such product").run()
    assert not tab.exception
    assert "No product matches" in said(tab)


def test_a_simulated_market_stands_beside_its_truth(open_page, run_id):
    tab = open_page("elasticities", run=run_id)
    assert "Truth inside" in {metric.label for metric in tab.metric}


def test_a_truth_that_names_no_product_of_the_run_is_not_drawn(open_page, run_id, monkeypatch):
    monkeypatch.setattr(services, "truth_in_order", lambda table, truth: np.full(len(table), np.nan))
    tab = open_page("elasticities", run=run_id)
    assert not tab.exception
    assert "Truth inside" not in [metric.label for metric in tab.metric]
    assert "Market elasticity" in [metric.label for metric in tab.metric]


def test_what_the_engine_warns_of_stands_on_the_page(open_page, installation, run_id, monkeypatch):
    found = installation.result(run_id)
    warned = replace(found.fit, diagnostics={"warnings": ("Only 2 categories to learn from.",)})
    monkeypatch.setattr(services, "result", lambda run_id: replace(found, fit=warned))
    assert "Only 2 categories to learn from." in said(open_page("elasticities", run=run_id))


def test_a_wider_interval_is_wider(open_page, run_id):
    tab = open_page("elasticities", run=run_id)
    narrow = rows(tab)["interval"].iloc[0]
    tab.segmented_control(key="mass").set_value(0.99).run()
    assert not tab.exception
    low, high = (float(part) for part in rows(tab)["interval"].iloc[0].strip("[]").split(","))
    before = [float(part) for part in narrow.strip("[]").split(",")]
    assert low < before[0] < before[1] < high


def test_the_page_says_what_the_numbers_are_not(open_page, run_id):
    assert "not proof of cause" in said(open_page("elasticities", run=run_id))
