"""The Data page: what a first visitor finds, what becomes of uploads good and bad, and how roles are chosen."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.runs.snapshots import RunState
from core.simulation import MarketPlan
from pages.components import intake
from pages.components.intake import keep_market
from pages.components.session import KEY
from tests.pages.conftest import said

GOOD = b"""sku;price;units;week
0042;1,50;7;2024-01-01
0042;1,20;11;2024-01-08
0043;2,00;3;2024-01-01
0043;2,20;2;2024-01-08
"""
FRACTIONS = b"""sku,price,units,week
a,1.0,3.4,2024-01-01
a,1.1,7,2024-01-08
b,2.0,12,2024-01-01
b,2.5,9.5,2024-01-08
"""


def figures(tab: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in tab.metric}


def upload(tab: AppTest, name: str, content: bytes) -> AppTest:
    tab.file_uploader[0].upload(name, content)
    return tab.run()


def test_a_first_visitor_finds_the_demo_market_checked_and_ready_to_fit(open_page):
    tab = open_page("data")
    assert not tab.exception
    assert figures(tab)["Products"] == "60"
    assert "rows read =" in said(tab)
    assert not tab.button(key="fit").disabled


def test_the_address_names_the_data_set(open_page):
    tab = open_page("data")
    dataset = tab.session_state[KEY].dataset
    assert dataset.startswith(tab.query_params["data"])


def test_an_upload_is_kept_and_read_with_its_codes_as_text(open_page, installation):
    tab = upload(open_page("data"), "sales.csv", GOOD)
    assert not tab.exception
    assert figures(tab)["Products"] == "2"
    kept = installation.datasets.source(tab.session_state[KEY].dataset)
    assert kept.frame["sku"].tolist() == ["0042", "0042", "0043", "0043"]
    assert "4 rows read = 4 used + 0 left out" in said(tab)


def test_the_buffer_of_an_upload_is_dropped(open_page):
    tab = upload(open_page("data"), "sales.csv", GOOD)
    assert tab.file_uploader[0].value in (None, [])


def test_a_file_that_is_no_table_is_refused_in_words_and_the_data_set_stays(open_page):
    tab = open_page("data")
    before = tab.session_state[KEY].dataset
    tab = upload(tab, "../../etc/passwd.csv", b"")
    assert not tab.exception
    assert tab.session_state[KEY].dataset == before
    assert "could not be read" in said(tab)
    assert "empty" in said(tab)


def test_the_name_of_a_refused_file_is_text_and_not_markdown(open_page):
    tab = upload(open_page("data"), "![x](http://x.example/a.png) $x$ :red[y].csv", b"")
    shown = next(element.value for element in tab.markdown if "could not be read" in element.value)
    assert "\\!\\[" in shown or "!\\[x\\]" in shown
    assert "\\$x\\$" in shown and "\\:red\\[y\\]" in shown


def test_a_full_disk_under_an_upload_is_a_sentence(open_page, monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device", str(self))

    tab = open_page("data")
    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    tab = upload(tab, "sales.csv", GOOD)
    assert not tab.exception
    assert "disk of the data folder is full" in said(tab)


@pytest.mark.parametrize("content", [GOOD, b""], ids=["good", "refused"])
def test_the_view_of_an_upload_is_let_go(open_page, monkeypatch, content):
    views = []

    def keep(name, view):
        views.append(view)
        return kept(name, view)

    kept = intake.keep_upload
    monkeypatch.setattr(intake, "keep_upload", keep)
    upload(open_page("data"), "sales.csv", content)
    with pytest.raises(ValueError, match="released"):
        len(views[0])


def test_the_name_of_an_upload_never_becomes_a_path(open_page, installation, tmp_path):
    upload(open_page("data"), "../../outside/evil.csv", GOOD)
    assert not list(tmp_path.rglob("*evil*"))
    assert not (tmp_path.parent / "outside").exists()


def test_fractions_of_units_stop_the_fit_until_a_treatment_is_chosen(open_page):
    tab = upload(open_page("data"), "fractions.csv", FRACTIONS)
    assert tab.button(key="fit").disabled
    picker = next(box for box in tab.selectbox if box.label == "What we do" and "round" in box.options[1].lower())
    tab = picker.set_value("round").run()
    assert not tab.exception
    assert not tab.button(key="fit").disabled


def test_a_column_taken_for_one_role_is_freed_from_the_other(open_page):
    tab = upload(open_page("data"), "sales.csv", GOOD)
    units = next(box for box in tab.selectbox if box.label.startswith("Units"))
    tab = units.set_value("price").run()
    roles = tab.session_state[KEY].roles
    assert (roles.units, roles.price) == ("price", None)
    assert tab.button(key="fit").disabled


def test_the_truth_of_a_simulated_market_names_its_products_and_categories(installation):
    dataset = keep_market(MarketPlan(products=12, periods=5, categories=3))
    sales, truth = installation.datasets.source(dataset).frame, installation.datasets.truth(dataset)
    products = truth[truth["level"] == "product"]
    assert set(products["product"]) == set(sales["product"])
    assert set(products["category"]) == set(sales["category"])


def test_another_data_set_clears_stale_roles(open_page):
    tab = open_page("data")
    next(box for box in tab.selectbox if box.label.startswith("Category")).set_value("—").run()
    assert tab.session_state[KEY].roles.category is None
    tab = upload(tab, "sales.csv", GOOD)
    assert tab.session_state[KEY].roles is None


def test_one_click_fits_with_the_defaults(open_page, installation):
    tab = open_page("data")
    tab.button(key="fit").click().run()
    run_id = tab.session_state[KEY].run
    done = installation.wait(run_id, timeout=60)
    assert done.state is RunState.FINISHED
    assert done.plan.engine == "structured"
    assert tab.query_params["run"] == run_id


def test_a_lost_data_set_in_the_address_is_said_and_the_demo_is_shown(open_page):
    tab = open_page("data", data="0123456789ab")
    assert not tab.exception
    assert "not on this server any more" in said(tab)
    assert figures(tab)["Products"] == "60"
