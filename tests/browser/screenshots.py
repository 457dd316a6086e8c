"""Take the pictures of docs/screenshots anew: every page, light and dark, 1440 x 900.

    python -m tests.browser.screenshots

Serves the dashboard with a data folder of its own, fits the demo market twice, and photographs what a visitor sees.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.conftest import BROWSER_ARGUMENTS, ROOT, browser_path, start_server

FOLDER = ROOT / "docs" / "screenshots"
FIT_MS = 300_000
THEMES = ("light", "dark")
SETTLE_MS = 4_000
"""Charts draw themselves after the page is there."""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = start_server(Path(folder))
        browser = playwright.chromium.launch(executable_path=browser_path(), args=BROWSER_ARGUMENTS)
        try:
            run = _fit_demo(browser, server.address)
            _live(browser, server.address)
            for theme in THEMES:
                _photograph(browser, server.address, theme, run)
        finally:
            browser.close()
            server.stop()


def _tab(browser: Browser, theme: str = "light") -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    return context.new_page()


def _fit_demo(browser: Browser, address: str) -> str:
    """Fit the demo market with the defaults; the query that leads to the run."""
    tab = _tab(browser)
    tab.goto(address)
    tab.get_by_role("button", name="Fit with the defaults").click()
    expect(tab.get_by_role("heading", name="Elasticities")).to_be_visible(timeout=FIT_MS)
    return tab.url.split("?")[1]


def _live(browser: Browser, address: str) -> None:
    """Start a long fit by SVI, photograph it while it goes on, and stop it."""
    tab = _tab(browser)
    tab.goto(f"{address}/model")
    tab.get_by_text("SVI", exact=True).click()
    steps = tab.get_by_role("spinbutton", name="Steps")
    steps.fill("100000")
    steps.press("Enter")
    tab.get_by_role("button", name="Start").click()
    expect(tab.get_by_text("Loss per observation went from", exact=False).first).to_be_visible(timeout=FIT_MS)
    for theme in THEMES:
        other = _tab(browser, theme)
        other.goto(tab.url)
        expect(other.locator("canvas, svg.marks").first).to_be_visible()
        _take(other, f"fit-{theme}")
    tab.get_by_role("button", name="Stop and keep").click()
    expect(tab.get_by_role("button", name="See the elasticities")).to_be_visible(timeout=FIT_MS)


def _photograph(browser: Browser, address: str, theme: str, run: str) -> None:
    tab = _tab(browser, theme)
    for name in ("data", "model", "timings"):
        _open(tab, f"{address}/{name}")
        _take(tab, f"{name}-{theme}")
    _open(tab, f"{address}/runs")
    _click_row(tab, 0)
    _click_row(tab, 1)
    _wait_for_charts(tab)
    _take(tab, f"runs-{theme}")
    _open(tab, f"{address}/elasticities?{run}")
    _wait_for_charts(tab)
    _take(tab, f"elasticities-{theme}")
    _click_row(tab, 0)
    message = tab.get_by_text("the model expects", exact=False)
    expect(message).to_be_visible()
    message.scroll_into_view_if_needed()
    _take(tab, f"product-{theme}")


def _open(tab: Page, address: str) -> None:
    tab.goto(address)
    expect(tab.get_by_role("heading", level=1)).to_be_visible()


def _wait_for_charts(tab: Page) -> None:
    expect(tab.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def _take(tab: Page, name: str) -> None:
    # Away from the charts, whose tools show under the pointer.
    tab.mouse.move(5, 5)
    tab.wait_for_timeout(SETTLE_MS)
    tab.screenshot(path=FOLDER / f"{name}.png")


def _click_row(tab: Page, row: int) -> None:
    """Choose a row of the table; a grid drawn on canvas has no element to click."""
    grid = tab.get_by_test_id("stDataFrame").first
    expect(grid).to_be_visible()
    grid.scroll_into_view_if_needed()
    tab.wait_for_timeout(SETTLE_MS)
    box = grid.bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + 15, box["y"] + 52 + 35 * row)
    tab.wait_for_timeout(SETTLE_MS)


if __name__ == "__main__":
    main()
