"""The study of checkpoints counts those on the way apart from the one at the end."""

import pytest

from core.benchmark.checkpoint_study import NEVER, measure, table
from core.data.markets import market_source
from core.inference.engines import ENGINES
from core.inference.plan import FitPlan, plan_with
from core.simulation import MarketPlan, simulate
from tests.core.runs.engine import Walk


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "svi", Walk().engine())


def test_checkpoints_on_the_way_are_counted_and_that_at_the_end_apart(walk):
    source = market_source(simulate(MarketPlan(products=6, periods=20, categories=2)), "Small market")
    plan = plan_with(FitPlan(), engine="svi", steps=100, draws=100)
    often, never = (measure(source, plan, gap) for gap in (0.0, NEVER))
    assert (len(often.costs), len(never.costs)) == (10, 0)
    assert often.steps == never.steps == 100
    assert never.share == 0.0 < often.share
    assert "| at the end only | 100 |" in table([often, never])
