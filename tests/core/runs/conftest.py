"""A data folder, a small market in it, and a manager whose engine the test holds in hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.data.markets import market_frame
from core.data.roles import Roles
from core.data.source import Source
from core.data.validation import Choices
from core.inference.engines import ENGINES
from core.inference.plan import FitPlan, plan_with
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.runs.snapshots import RunSnapshot
from core.settings import Settings
from core.simulation import MarketPlan, simulate
from tests.core.runs.engine import PATIENCE, Gate, Walk

ROLES = Roles(product="product", price="price", units="units", period="period", category="category")
PLAN = plan_with(FitPlan(), engine="svi", steps=100, draws=100)


def small_source(seed: int = 0) -> Source:
    frame = market_frame(simulate(MarketPlan(products=6, periods=20, categories=2, seed=seed)))
    digest = hashlib.sha256(frame.to_csv().encode()).hexdigest()
    return Source(frame=frame, name="small market", size=1_000, sha256=digest)


@pytest.fixture(scope="session")
def source() -> Source:
    return small_source()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", checkpoint_seconds=0.0)


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Walk:
    """The engine behind every plan with engine='svi'."""
    walk = Walk()
    monkeypatch.setitem(ENGINES, "svi", walk.engine())
    return walk


@pytest.fixture
def manager(settings: Settings, walk: Walk) -> Iterator[RunManager]:
    manager = RunManager(settings, pulse_seconds=0.0)
    yield manager
    manager.close()


@pytest.fixture
def request_for(manager: RunManager, source: Source) -> RunRequest:
    """A request for the small market; tests change it with `replace`."""
    return RunRequest(manager.datasets.add(source), ROLES, Choices(), PLAN, name="a run")


def finish(manager: RunManager, run_id: str) -> RunSnapshot:
    """Wait for the end of a run."""
    snapshot = manager.wait(run_id, PATIENCE)
    assert not snapshot.state.active, snapshot
    return snapshot


@contextmanager
def held(manager: RunManager, walk: Walk, request: RunRequest, step: int) -> Iterator[str]:
    """A run of `request` that stands still after `step` inside the block; its id."""
    gate = Gate(walk, step)
    run_id = manager.submit(request)
    gate.wait()
    try:
        yield run_id
    finally:
        gate.open()
