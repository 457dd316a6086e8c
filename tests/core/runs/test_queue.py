"""The queue is first come first served for one person and fair between several."""

from dataclasses import replace

from core.inference.plan import FitPlan
from core.runs.queue import lane_of, waiting
from core.runs.snapshots import RunState
from core.runs.store import COLUMNS, RunRow

BLANK = RunRow(**{**dict.fromkeys(COLUMNS, 0), "state": RunState.QUEUED, "lane": "cpu"})  # type: ignore[arg-type]


def queued(*owners: str) -> list[RunRow]:
    return [replace(BLANK, id=f"{owner}{n}", owner=owner, place=n) for n, owner in enumerate(owners)]


def order(rows: list[RunRow], turns: dict[str, int]) -> list[str]:
    return [row.id for row in waiting(rows, "cpu", turns)]


def test_without_owners_it_is_first_come_first_served():
    assert order(queued("", "", ""), {"": 7}) == ["0", "1", "2"]


def test_a_person_with_many_runs_does_not_shut_out_another():
    assert order(queued("a", "a", "a", "b"), {"a": 1}) == ["b3", "a0", "a1", "a2"]
    assert order(queued("a", "a", "b", "b"), {}) == ["a0", "b2", "a1", "b3"]


def test_only_waiting_runs_of_the_device_count():
    rows = queued("a", "b", "c")
    rows[0] = replace(rows[0], lane="gpu")
    rows[1] = replace(rows[1], state=RunState.PAUSED)
    assert order(rows, {}) == ["c2"]


def test_placements_share_a_device():
    assert lane_of(FitPlan(placement="cpu:4")) == lane_of(FitPlan(placement="cpu")) == "cpu"
    assert lane_of(FitPlan(placement="all-gpus")) == lane_of(FitPlan(placement="gpu")) == "gpu"
