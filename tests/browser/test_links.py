"""A link to any page opens that page, on a server never visited before, inside the frame and its access check."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import new_tab, start_server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = {"data": "Data", "model": "Model & fit", "elasticities": "Elasticities", "runs": "Runs", "timings": "Timings"}
AUTH = """
[auth]
redirect_uri = "http://127.0.0.1/oauth2callback"
cookie_secret = "only for this test"
client_id = "x"
client_secret = "x"
server_metadata_url = "http://127.0.0.1:9/none"
"""


def sidebar(tab: Page) -> Locator:
    """Where the frame says what the reader works on; pages may use the same words."""
    return tab.get_by_test_id("stSidebarUserContent")


@pytest.mark.parametrize("name", PAGES)
def test_a_link_opens_its_page_on_a_fresh_server(browser: Browser, tmp_path, name):
    server = start_server(tmp_path)
    try:
        with new_tab(browser) as tab:
            tab.goto(f"{server.address}/{name}")
            expect(tab.get_by_role("heading", name=PAGES[name], level=1)).to_be_visible()
            expect(tab).to_have_url(re.compile(f"/{name}"))
            expect(tab.get_by_text("Page not found")).to_have_count(0)
            expect(sidebar(tab).get_by_text("DATA SET")).to_be_visible()
    finally:
        server.stop()
    server.require_clean_log()


def test_with_sign_in_configured_no_link_shows_a_stranger_anything(browser: Browser, tmp_path):
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(AUTH)
    server = start_server(tmp_path, secrets=secrets)
    try:
        for name in PAGES:
            with new_tab(browser) as tab:
                tab.goto(f"{server.address}/{name}")
                expect(tab.get_by_role("button", name="Sign in")).to_be_visible()
                expect(sidebar(tab).get_by_text("DATA SET")).to_have_count(0)
                expect(tab.get_by_role("heading", name=PAGES[name], level=1)).to_have_count(0)
    finally:
        server.stop()
