"""Turn a call into its times: the first call with compilation in it, then warm ones until the time given is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.benchmark.records import StepSeconds

FEWEST_WARM_CALLS = 3


@dataclass(frozen=True)
class Times:
    """Seconds of the first call and of each warm one, every call doing `steps` steps."""

    first: float
    warm: tuple[float, ...]
    steps: int

    def fields(self, n_obs: int) -> dict[str, Any]:
        """The time fields of a record."""
        return time_fields([seconds / self.steps for seconds in self.warm], self.steps, n_obs) | {
            "compile_seconds": max(self.first - min(self.warm), 0.0)
        }


def time_fields(seconds_per_step: Sequence[float], steps: int, n_obs: int) -> dict[str, Any]:
    """Time fields from the seconds a step took in each observation; the run is the best one's."""
    ordered = sorted(seconds_per_step)
    return {
        "run_seconds": ordered[0] * steps,
        "step_seconds": StepSeconds(ordered[0], ordered[len(ordered) // 2], ordered[-1]),
        "ns_per_obs_step": ordered[0] / n_obs * 1e9,
        "steps": steps,
    }


def time_calls(call: Callable[[], object], steps: int, seconds: float, fewest: int = FEWEST_WARM_CALLS) -> Times:
    """Time `call`, which must wait for its own result: once cold, then `fewest` times warm and on for `seconds`."""
    first = _timed(call)
    warm: list[float] = []
    until = time.perf_counter() + seconds
    while len(warm) < fewest or time.perf_counter() < until:
        warm.append(_timed(call))
    return Times(first, tuple(warm), steps)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
