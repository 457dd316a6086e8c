"""A tab in the background says by itself that the run which it shows was discarded elsewhere."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from core.data.choices import Choices
from core.data.roles import Roles
from core.inference.plan import FitPlan
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunState
from core.runs.values import to_text
from core.settings import Settings
from tests.browser.conftest import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_tab_says_at_its_next_look_that_its_run_was_discarded(server: Server, tab: Page):
    tab.goto(server.address)
    expect(tab.get_by_test_id("stMetric").first).to_be_visible()
    with closing(RunManager(Settings(data_dir=server.data_dir), adopt=False)) as elsewhere:
        data = elsewhere.datasets.list()[0].id
        roles = Roles(product="product", price="price", units="units")
        elsewhere.store.add(
            id="0123456789ab", name="watched", owner="", dataset_id=data, state=RunState.RUNNING, phase="running",
            request=to_text(RunRequest(data, roles, Choices(), FitPlan())), process=elsewhere._alive.process,
            lane="cpu", created=0.0, steps_total=100,
        )  # fmt: skip
        tab.goto(f"{server.address}/model?run=0123456789ab")
        expect(tab.get_by_role("button", name="Stop and keep")).to_be_visible()
        elsewhere.store.delete("0123456789ab")
        expect(tab.get_by_text("has been discarded")).to_be_visible()
        expect(tab.get_by_role("button", name="Stop and keep")).to_have_count(0)
