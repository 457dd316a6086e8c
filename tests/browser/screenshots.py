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
SETTLE_MS = 3_000
"""Charts draw themselves after the page is there."""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = start_server(Path(folder))
        browser = playwright.chromium.launch(executable_path=browser_path(), args=BROWSER_ARGUMENTS)
        try:
            run = _fit_demo(browser, server.address)
            live = _start_svi(browser, server.address)
            for theme in ("light", "dark"):
                _photograph(browser, server.address, theme, run, live)
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


def _start_svi(browser: Browser, address: str) -> str:
    """Start a long fit by SVI and let it get going; the query that leads to it."""
    tab = _tab(browser)
    tab.goto(f"{address}/model")
    tab.get_by_text("SVI", exact=True).click()
    steps = tab.get_by_role("spinbutton", name="Steps")
    steps.fill("400000")
    steps.press("Enter")
    tab.get_by_role("button", name="Start").click()
    expect(tab.get_by_text("Loss per observation went from", exact=False).first).to_be_visible(timeout=FIT_MS)
    return tab.url.split("?")[1]


def _photograph(browser: Browser, address: str, theme: str, run: str, live: str) -> None:
    tab = _tab(browser, theme)
    for name, path in {
        "data": "data", "model": "model", "live": f"model?{live}", "elasticities": f"elasticities?{run}",
        "runs": "runs", "timings": "timings",
    }.items():  # fmt: skip
        tab.goto(f"{address}/{path}")
        expect(tab.get_by_role("heading", level=1)).to_be_visible()
        tab.wait_for_timeout(SETTLE_MS)
        tab.screenshot(path=FOLDER / f"{name}-{theme}.png")
    tab.goto(f"{address}/elasticities?{run}")
    tab.get_by_role("radio", name="By category").click()
    tab.wait_for_timeout(SETTLE_MS)
    _open_first_product(tab)
    tab.screenshot(path=FOLDER / f"product-{theme}.png")


def _open_first_product(tab: Page) -> None:
    """Click the first row of the table; a grid drawn on canvas has no element to click."""
    grid = tab.get_by_test_id("stDataFrame").last
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + 15, box["y"] + 52)
    expect(tab.get_by_text("the model expects", exact=False)).to_be_visible()
    tab.get_by_text("the model expects", exact=False).scroll_into_view_if_needed()
    tab.wait_for_timeout(SETTLE_MS)


if __name__ == "__main__":
    main()
