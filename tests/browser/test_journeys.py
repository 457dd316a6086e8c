"""What people come to do, done in a browser, with the numbers on screen held against the files they download."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FIT_MS = 240_000
"""A fit with its compilation, on a loaded machine with two cores; on an idle one it takes seconds."""
DEMO_RMSE = 0.5
"""How far products lie from their category in the demo market: knowing only the categories would leave this error."""
OJ_POISSON = {"dominicks": -3.25, "minute.maid": -3.81, "tropicana": -3.15}
OJ_TOLERANCE = 0.1


def figure(tab: Page, label: str) -> Locator:
    """The value of a figure by its label; what is expected of it is waited for, as a page may still be on its way."""
    card = tab.get_by_test_id("stMetric").filter(has=tab.get_by_text(label, exact=True)).first
    return card.get_by_test_id("stMetricValue")


def download(tab: Page, button: str) -> bytes:
    """What a button of the Export menu gives."""
    tab.get_by_role("button", name="Export").click()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=button).click()
    return Path(waiting.value.path()).read_bytes()


def choose(tab: Page, label: str, option: str) -> None:
    """Pick an option of a list by its label."""
    tab.get_by_role("combobox", name=re.compile(f"^(Selected .*)?{re.escape(label)}")).first.click()
    tab.get_by_role("option", name=option, exact=True).click()


def test_demo_market_to_elasticities_to_download(server: Server, tab: Page):
    tab.goto(server.address)
    expect(tab.get_by_role("heading", name="Data")).to_be_visible()
    expect(figure(tab, "Products")).to_have_text("500", timeout=FIT_MS)
    tab.get_by_role("button", name="Fit with the defaults").click()
    expect(tab.get_by_role("heading", name="Elasticities")).to_be_visible(timeout=FIT_MS)
    table = pd.read_csv(io.BytesIO(download(tab, "Elasticities, CSV")))
    market = table[table["level"] == "global"].iloc[0]
    told = f"{market['mean']:.2f} [{market['lower']:.2f}, {market['upper']:.2f}]"
    expect(figure(tab, "Market elasticity")).to_have_text(told)
    assert (table["level"] == "product").sum() == 500
    verdicts = table[table["level"] == "product"]["verdict"].value_counts()
    expect(figure(tab, "Elastic")).to_have_text(f"{verdicts['elastic']:,}")
    errors = tab.get_by_test_id("stMetric").filter(has_text="typical error").get_by_test_id("stMetricValue")
    expect(errors).to_have_count(2)
    assert float(errors.first.inner_text()) < DEMO_RMSE


@pytest.mark.data
def test_a_real_file_to_roles_to_fit_to_table(server: Server, tab: Page, shared_data: Path):
    tab.goto(server.address)
    tab.get_by_role("button", name="Upload").click()
    tab.locator("input[type=file]").set_input_files(shared_data / "dominicks_oj.csv")
    expect(tab.get_by_text("28,947 rows read").first).to_be_visible()
    choose(tab, "Product", "brand")
    choose(tab, "Units", "sales")
    choose(tab, "Category", "—")
    choose(tab, "Store", "—")
    choose(tab, "Period", "—")
    expect(tab.get_by_text("28,947 used").first).to_be_visible()
    tab.get_by_role("button", name="Choose the model").click()
    choose(tab, "Likelihood", "Poisson")
    expect(tab.get_by_text("Counts that vary as much as their mean", exact=False)).to_be_visible()
    tab.get_by_role("button", name="Start").click()
    tab.get_by_role("button", name="See the elasticities").click(timeout=FIT_MS)
    expect(tab.get_by_role("heading", name="Elasticities")).to_be_visible()
    expect(figure(tab, "Products")).to_have_text("3", timeout=FIT_MS)
    found = pd.read_csv(io.BytesIO(download(tab, "Elasticities, CSV")))
    means = found[found["level"] == "product"].set_index("product")["mean"]
    assert means.to_dict() == pytest.approx(OJ_POISSON, abs=OJ_TOLERANCE)


def test_a_reload_finds_the_run_and_stopping_keeps_a_result(server: Server, tab: Page):
    tab.goto(f"{server.address}/model")
    tab.get_by_text("SVI", exact=True).click()
    steps = tab.get_by_role("spinbutton", name="Steps")
    steps.fill("2000000")
    steps.press("Enter")
    tab.get_by_role("button", name="Start").click()
    expect(tab.get_by_text(re.compile(r"Fitting · step [1-9]"))).to_be_visible(timeout=FIT_MS)
    tab.reload()
    expect(tab.get_by_text(re.compile(r"Fitting · step [1-9]"))).to_be_visible()
    expect(tab.get_by_text("Loss per observation went from", exact=False).first).to_be_visible()
    tab.get_by_role("button", name="Stop and keep").click()
    tab.get_by_role("button", name="See the elasticities").click(timeout=FIT_MS)
    expect(figure(tab, "Products")).to_have_text("500", timeout=FIT_MS)
    expect(tab.get_by_text("Stopped by you", exact=False).first).to_be_visible()


def test_a_bad_file_is_told_in_words_and_the_next_good_one_works(server: Server, tab: Page, tmp_path: Path):
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_bytes(b"\x00\x01\x02 not a table \xff\xfe" * 100)
    good.write_text("sku,price,units\n" + "\n".join(f"a{n % 3},{1 + n % 5},{9 - n % 5}" for n in range(60)))
    tab.goto(server.address)
    tab.get_by_role("button", name="Upload").click()
    tab.locator("input[type=file]").set_input_files(bad)
    expect(tab.get_by_text("could not be read", exact=False)).to_be_visible()
    tab.get_by_role("button", name="Dismiss").click()
    expect(tab.get_by_role("button", name="Dismiss")).to_have_count(0)
    expect(tab.locator("[data-test-script-state=notRunning]")).to_be_visible()
    tab.get_by_role("button", name="Upload").click()
    expect(tab.get_by_text("It is kept on this server only")).to_be_visible()
    expect(tab.locator("[data-test-script-state=notRunning]")).to_be_visible()
    tab.locator("input[type=file]").set_input_files(good)
    expect(tab.get_by_text("60 rows read").first).to_be_visible()
    expect(figure(tab, "Products")).to_have_text("3", timeout=FIT_MS)
