"""A process of its own that works on a run and waits, after every step that could be its last, for leave to go on.

    python -m tests.core.runs.server FOLDER ENGINE submit|RUN

It prints `run ID`, then a line at each such step, and reads a line before it goes on; at the end it prints `ended`.
Steps are `chunk N`, one after N steps of the fit, `writing`, while a checkpoint is half on disk, and `result`, while
the result is.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.data.validation import Choices
from core.inference.engines import ENGINES, Engine
from core.inference.fit import Chunk, Fit, Watcher
from core.inference.plan import FitPlan, plan_with
from core.panel import Panel
from core.runs.manager import RunManager
from core.runs.requests import RunRequest
from core.settings import Settings
from tests.core.runs.conftest import ROLES, small_source

PLANS: dict[str, dict[str, Any]] = {
    "svi": {"engine": "svi", "steps": 600, "draws": 100},
    "mini-batches": {"engine": "svi", "steps": 600, "batch_products": 2, "draws": 100},
    "structured": {"engine": "structured", "draws": 100},
}
TALK = threading.Lock()


def plan_for(engine: str) -> FitPlan:
    """The plan that both the process that is killed and the undisturbed one follow."""
    return plan_with(FitPlan(), **PLANS[engine])


def ask(step: str) -> None:
    """Say where we are; go on when told to."""
    with TALK:
        print(step, flush=True)
        sys.stdin.readline()


def halting(engine: Engine) -> Engine:
    """The engine with a halt after each chunk."""

    def fit(plan: FitPlan, panel: Panel, watcher: Watcher, resume: Mapping[str, np.ndarray] | None) -> Fit:
        def on_chunk(chunk: Chunk) -> None:
            watcher.on_chunk(chunk)
            ask(f"chunk {chunk.first_step + len(chunk.losses)}")

        return engine.fit(plan, panel, replace(watcher, on_chunk=on_chunk), resume)

    return Engine(fit, engine.draw)


def halt_while_writing(folder: Path) -> None:
    """Halt when a file is half on disk, before it is synced, and before its new name is."""
    sync = os.fsync

    def halting_sync(handle: int) -> None:
        ask("result" if next(folder.rglob("result.npz*"), None) else "writing")
        sync(handle)

    os.fsync = halting_sync


def serve(folder: Path, engine: str, wanted: str) -> None:
    """Submit a run or resume one, and see it through."""
    plan = plan_for(engine)
    ENGINES[plan.engine] = halting(ENGINES[plan.engine])
    manager = RunManager(Settings(data_dir=folder, checkpoint_seconds=0.0), pulse_seconds=0.0)
    if wanted == "submit":
        dataset = manager.datasets.add(small_source())
        halt_while_writing(folder)
        run_id = manager.submit(RunRequest(dataset, ROLES, Choices(), plan))
    else:
        halt_while_writing(folder)
        run_id = wanted
        with TALK:
            print(f"found {manager.snapshot(run_id).state}", flush=True)
        manager.resume(run_id)
    with TALK:
        print(f"run {run_id}", flush=True)
    print("ended", manager.wait(run_id).state, flush=True)
    manager.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
