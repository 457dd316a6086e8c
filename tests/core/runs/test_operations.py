"""What docs/operations.md says holds, and fits one after another leave nothing behind."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from core.environment import resident_bytes
from core.inference.plan import plan_with
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.shelf import RESULTS_KEPT
from core.runs.snapshots import RunState
from core.settings import Settings, variable
from tests.core.runs.conftest import PLAN, finish
from tests.core.runs.engine import Walk

DOCS = Path(__file__).parents[3] / "docs" / "operations.md"
ROOM = 12_000_000
"""Bytes that the allocator may keep by itself; every result holds 0.4 MB of draws and its file in memory as much."""


def test_every_setting_stands_in_the_docs_with_its_default():
    text = DOCS.read_text(encoding="utf-8")
    for field in fields(Settings):
        default = {int: "{:,}", float: "{:g}"}.get(type(field.default), "{}").format(field.default)
        row = next((line for line in text.splitlines() if f"`{variable(field.name)}`" in line), "")
        assert default in row, f"{variable(field.name)} with its default {default}"


def test_every_state_stands_in_the_docs():
    text = DOCS.read_text(encoding="utf-8")
    assert [state for state in RunState if state not in text and state is not RunState.DISCARDED] == []


def test_results_in_memory_are_bounded(manager: RunManager, request_for: RunRequest):
    ids = [manager.submit(request_for) for _ in range(RESULTS_KEPT + 3)]
    for run_id in ids:
        finish(manager, run_id)
        manager.result(run_id)
    assert len(manager._shelf.results) == RESULTS_KEPT
    assert manager._board.live == {}


@pytest.mark.slow
def test_memory_is_flat_over_twenty_fits_after_the_third(manager: RunManager, walk: Walk, request_for: RunRequest):
    held: list[int] = []
    walk.after_chunk = lambda step: None
    for _ in range(20):
        run_id = manager.submit(replace(request_for, plan=plan_with(PLAN, draws=4_000)))
        finish(manager, run_id)
        manager.result(run_id)
        held.append(resident_bytes())
    assert max(held[3:]) - held[2] < ROOM
