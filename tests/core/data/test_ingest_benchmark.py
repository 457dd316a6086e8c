"""The ingest benchmark measures the real way to the panel and reports the best of its rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.benchmark import ingest
from core.data.markets import write_market
from core.simulation import MarketPlan, simulate


@pytest.mark.parametrize("task", ingest.TASKS)
def test_every_task_runs_on_a_written_market(tmp_path: Path, task: str) -> None:
    path = tmp_path / "market.csv"
    write_market(simulate(MarketPlan(products=20, periods=10, categories=2)), path)
    record = ingest._measure(task, str(path))
    assert record["task"] == task
    assert record["later"] > 0 and record["first"] > 0
    assert record["peak"] >= record["before"] > 0


def test_the_report_keeps_the_best_round_and_its_ratios() -> None:
    one = {"first": 2.0, "later": 1.0, "cpu": 1.0, "peak": 3e8, "before": 1e8}
    records = [{"task": task, **one} for task in ingest.TASKS]
    records += [{"task": task, **one, "first": 6.0 if task == "panel" else 1.0} for task in ingest.TASKS]
    text = ingest.report(records, size=100_000_000, rows=5)
    assert "2.0 (first call), 1.0 (later calls)" in text
    assert "over the file's size: 3.0" in text
