"""People sign in with a provider, own what they start, and see of others only what these share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from core.runs.manager import RunManager
from core.settings import Settings
from tests.browser.conftest import Server, _free_port, new_tab, start_server
from tests.browser.provider import CLIENT, SECRETS, email, provider
from tests.browser.test_journeys import FIT_MS
from tests.browser.test_links import sidebar

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def signing_in(tmp_path) -> Iterator[Server]:
    """A dashboard whose people a provider of ours knows."""
    port = _free_port()
    with provider() as address:
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(SECRETS.format(app=f"http://127.0.0.1:{port}", provider=address, client=CLIENT))
        server = start_server(tmp_path, port, secrets)
        yield server
        server.stop()
    server.require_clean_log()


def sign_in(tab: Page, server: Server, name: str) -> None:
    """Go through the provider's page and come back as `name`."""
    tab.goto(server.address)
    tab.get_by_role("button", name="Sign in").click()
    tab.get_by_role("link", name=name).click()
    expect(sidebar(tab).get_by_text(email(name))).to_be_visible()


def see_nothing_of(tab: Page, server: Server, run_id: str) -> None:
    """The address of a run shows no more than one that never was."""
    tab.goto(f"{server.address}/elasticities?run={run_id}")
    expect(tab.get_by_text("is not on this server any more")).to_be_visible()
    expect(tab.get_by_text("No elasticities yet")).to_be_visible()


def test_a_run_is_its_owners_until_it_is_shared(browser: Browser, signing_in: Server):
    with new_tab(browser) as ann:
        sign_in(ann, signing_in, "ann")
        ann.get_by_role("button", name="Fit with the defaults").click()
        expect(ann.get_by_role("heading", name="Elasticities")).to_be_visible(timeout=FIT_MS)
        expect(ann).to_have_url(re.compile("run="))
        run_id = ann.url.partition("run=")[2][:12]
    with closing(RunManager(Settings(data_dir=signing_in.data_dir), adopt=False)) as runs, new_tab(browser) as bob:
        (run,) = runs.runs()
        assert (run.run_id, run.owner, run.shared) == (run_id, email("ann"), False)
        sign_in(bob, signing_in, "bob")
        see_nothing_of(bob, signing_in, run_id)
        runs.share(run_id, True, viewer=email("ann"))
        bob.goto(f"{signing_in.address}/elasticities?run={run_id}")
        expect(bob.get_by_test_id("stMetric").filter(has_text="Market elasticity")).to_be_visible()
        runs.share(run_id, False, viewer=email("ann"))
        see_nothing_of(bob, signing_in, run_id)
        bob.get_by_role("button", name="Sign out").click()
        expect(bob.get_by_role("button", name="Sign in")).to_be_visible()
    with new_tab(browser) as stranger:
        stranger.goto(f"{signing_in.address}/elasticities?run={run_id}")
        expect(stranger.get_by_role("button", name="Sign in")).to_be_visible()
        expect(stranger.get_by_test_id("stMetric")).to_have_count(0)
