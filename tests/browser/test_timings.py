"""The Timings page in a browser: a race started, seen to move and to end; a benchmark started, followed, cancelled."""

import pytest
from playwright.sync_api import expect

from core.benchmark.jobs import running
from core.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.slow]
RACE_MS = 240_000
"""Two processes importing JAX and compiling at once on two busy cores, and the race itself."""


def test_a_race_moves_and_ends_with_what_both_reached(server, tab):
    tab.goto(f"{server.address}/timings")
    tab.get_by_text("Live race").click()
    for label, value in (("Products", "60"), ("Periods", "30"), ("Time (s)", "5")):
        field = tab.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Enter")
    tab.get_by_role("button", name="Start the race").click()
    expect(tab.locator(".st-key-race-stop")).to_be_visible()
    expect(tab.get_by_text("Isoelastic · done")).to_be_visible(timeout=RACE_MS)
    expect(tab.get_by_text("The article's recipe · done")).to_be_visible(timeout=RACE_MS)
    expect(tab.locator(".st-key-race-stop")).to_be_hidden()


def test_a_benchmark_is_followed_and_called_off(server, tab):
    tab.goto(f"{server.address}/timings")
    tab.get_by_role("button", name="Run on this machine").click()
    tab.get_by_role("button", name="Start", exact=True).click()
    expect(tab.locator(".st-key-time-cancel")).to_be_visible()
    expect(tab.get_by_text("0 of")).to_be_visible()
    tab.get_by_role("button", name="Cancel").click()
    expect(tab.locator(".st-key-time-cancel")).to_be_hidden()
    assert running(Settings(data_dir=server.data_dir)) == ""
