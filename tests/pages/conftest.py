"""A dashboard of its own for each test: its data folder, its manager, and an engine that answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.data.markets import market_source, truth_frame
from core.inference.engines import ENGINES
from core.runs.manager import RunManager
from core.simulation import MarketPlan, simulate
from pages.components import intake, services
from tests.core.runs.engine import Walk

FRAME = Path(__file__).parents[2] / "pages" / "frame.py"
VIEWS = FRAME.parent / "views"
PATIENCE_SECONDS = 60
"""For importing JAX on a loaded machine; nothing here takes long by itself."""


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunManager]:
    """The manager behind the pages, with a small market in place of the demo and `Walk` in place of the engines."""
    monkeypatch.setenv("ISOELASTIC_DATA_DIR", str(tmp_path))
    walk = Walk()
    for name in ("svi", "structured"):
        monkeypatch.setitem(ENGINES, name, walk.engine())
    market = simulate(MarketPlan(products=60, periods=30, categories=3, seed=4))
    made = (market_source(market, "Small market"), truth_frame(market, shop=True))
    monkeypatch.setattr(intake, "demo_market", lambda: made)
    _forget()
    manager = services.manager()
    yield manager
    manager.close()
    _forget()


def _forget() -> None:
    services.settings.cache_clear()
    st.cache_resource.clear()


@pytest.fixture
def open_page(installation: RunManager) -> Callable[..., AppTest]:
    """Opens a page in a new tab, as its address would: `open_page("model", run=...)`."""

    def opened(name: str, **query: str) -> AppTest:
        tab = AppTest.from_file(str(FRAME), default_timeout=PATIENCE_SECONDS)
        for key, value in query.items():
            tab.query_params[key] = value
        tab.run()
        return tab if name == "data" else tab.switch_page(str(VIEWS / f"{name}.py")).run()

    return opened


def said(tab: AppTest) -> str:
    """All words on the page."""
    kinds = (tab.title, tab.markdown, tab.caption, tab.info, tab.warning, tab.error)
    return "\n".join(str(part.value) for kind in kinds for part in kind)
