"""A run stands against another of the same data, and the check with NUTS starts both runs and leads to them."""

from __future__ import annotations

import pytest

from core.inference.engines import ENGINES
from pages.components.against import TITLE
from tests.core.runs.engine import Walk
from tests.pages.conftest import said
from tests.pages.test_model import submit


@pytest.fixture
def nuts(monkeypatch):
    monkeypatch.setitem(ENGINES, "nuts", Walk().engine())


def done(installation, **values):
    run_id = submit(installation, **values)
    installation.wait(run_id, timeout=60)
    return run_id


def against(tab):
    tab.segmented_control(key="picture").set_value(TITLE).run()
    assert not tab.exception
    return tab


def pair(tab):
    return next(frame.value for frame in tab.dataframe if "sd_ratio" in frame.value and "spread" not in frame.value)


def test_a_run_alone_has_nothing_to_stand_against(open_page, installation):
    tab = against(open_page("elasticities", run=done(installation)))
    assert "no other finished run of these data" in said(tab)


def test_two_runs_stand_side_by_side_with_what_to_read_from_them(open_page, installation):
    done(installation, seed=1)
    tab = against(open_page("elasticities", run=done(installation)))
    rows = pair(tab)
    assert len(rows) == 60 + 3 + 1
    assert rows["spread_in_sd"].is_monotonic_decreasing
    assert "a run (this run): interval" in rows
    assert "60 products in both" in said(tab)
    assert "times as wide as" in said(tab)


def test_the_check_begins_with_twenty_products_and_says_its_cost(open_page, installation):
    tab = open_page("elasticities", run=(run_id := done(installation)))
    assert len(tab.multiselect(key=f"to-check-{run_id}").value) == 20
    assert "20 products with" in said(tab)
    assert "can take minutes" in said(tab)


@pytest.mark.usefixtures("nuts")
def test_the_check_runs_both_engines_and_shows_them_side_by_side(open_page, installation):
    tab = open_page("elasticities", run=(run_id := done(installation)))
    chosen = tab.multiselect(key=f"to-check-{run_id}").value[:5]
    tab.multiselect(key=f"to-check-{run_id}").set_value(chosen).run()
    tab.button(key="start-check").click().run()
    assert not tab.exception
    exact, own = installation.runs()[:2]
    assert (own.name, exact.name) == ("a run · 5 products", "a run · NUTS · 5 products")
    for run in (own, exact):
        assert installation.wait(run.run_id, timeout=60).usable
    tab.run()
    tab.button(key="show-check").click().run()
    assert not tab.exception
    assert tab.query_params["run"] in (own.run_id, [own.run_id])
    assert set(pair(tab).query("level == 'product'")["product"]) == set(chosen)
    assert {"SVI: mean", "NUTS: mean"} <= set(pair(tab).columns)
