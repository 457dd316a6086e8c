"""Decide which waiting run is next on a device: first come first served, and fair between people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.inference.plan import FitPlan
from core.runs.snapshots import RunState
from core.runs.store import RunRow


def lane_of(plan: FitPlan) -> str:
    """The device a plan waits for: 'cpu' or 'gpu'. Simulated devices are the CPU; all GPUs are taken together."""
    return "gpu" if "gpu" in plan.placement else "cpu"


def waiting(rows: Iterable[RunRow], lane: str, last_turns: Mapping[str, int]) -> tuple[RunRow, ...]:
    """Runs that wait for `lane`, next first.

    Who was served longest ago comes first; among the runs of one person the order of submission holds. With one
    person, or without owners, that is plain first come first served.
    """
    left = sorted((row for row in rows if row.state is RunState.QUEUED and row.lane == lane), key=lambda row: row.place)
    served = dict(last_turns)
    turn = max(served.values(), default=0)
    order: list[RunRow] = []
    while left:
        row = min(left, key=lambda candidate: (served.get(candidate.owner, 0), candidate.place))
        left.remove(row)
        order.append(row)
        turn += 1
        served[row.owner] = turn
    return tuple(order)
