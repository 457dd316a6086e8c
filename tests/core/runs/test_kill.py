"""`kill -9` at any moment of a run loses nothing: found interrupted, resumed, and equal bit for bit in the end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.runs.manager import RunManager
from core.runs.snapshots import RunState
from core.settings import Settings

SEED = 20_26
LATEST = 3
"""A stretch is killed at its first to third step of a kind, so that all kills do not see the run to its end."""
MOMENTS = {
    "svi": ("writing", "chunk", "writing", "result"),
    "mini-batches": ("chunk", "writing", "result"),
    "structured": ("writing", "chunk", "result"),
}
"""What each engine is killed at: between two chunks, while a checkpoint or the result is being written."""


class Server:
    """The other process: answers it until it ends, or kills it at a moment of its choice."""

    def __init__(self, folder: Path, engine: str, wanted: str, cache: Path):
        command = [sys.executable, "-m", "tests.core.runs.server", str(folder), engine, wanted]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
            env={**os.environ, **KEPT_PROGRAMS, "JAX_COMPILATION_CACHE_DIR": str(cache)},
        )  # fmt: skip
        self.found = self.run_id = self.ended = ""

    def go(self, moment: str = "", times: int = 1) -> None:
        """Let it work and kill it when it comes to `moment` for the so many-th time; '': let it end."""
        assert self.process.stdout is not None and self.process.stdin is not None
        with self.process:
            for line in map(str.strip, self.process.stdout):
                kind, _, rest = line.partition(" ")
                if kind in ("found", "run", "ended"):
                    setattr(self, "run_id" if kind == "run" else kind, rest)
                    continue
                times -= kind == moment
                if moment and not times:
                    return self.process.kill()
                self.process.stdin.write("\n")
                self.process.stdin.flush()
        return None


KEPT_PROGRAMS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
"""Each process of an engine needs the same programs: compiled once, by the undisturbed run."""


def only_run(folder: Path) -> str:
    manager = RunManager(Settings(data_dir=folder), adopt=False)
    try:
        (run,) = manager.runs()
        assert run.state is RunState.INTERRUPTED
        assert "Interrupted" in run.outcome and run.resumable
        return run.run_id
    finally:
        manager.close()


def kept_losses(folder: Path, run_id: str) -> tuple[np.ndarray, np.ndarray]:
    manager = RunManager(Settings(data_dir=folder), adopt=False)
    try:
        result = manager.result(run_id)
        return result.fit.losses, result.posterior.draws.elasticity_product
    finally:
        manager.close()


@pytest.mark.slow
@pytest.mark.parametrize("engine", MOMENTS)
def test_ten_kills_of_real_runs_change_no_bit(tmp_path: Path, engine: str):
    def server(folder: str, wanted: str) -> Server:
        return Server(tmp_path / folder, engine, wanted, tmp_path / "programs")

    whole = server("whole", "submit")
    whole.go()
    assert whole.ended == "finished"
    draw, wanted = random.Random(SEED), "submit"
    for moment in MOMENTS[engine]:
        killed = server("killed", wanted)
        killed.go(moment, 1 if moment == "result" else draw.randint(1, LATEST))
        assert killed.ended == "", f"killed at {moment}"
        assert killed.found in ("", "interrupted")
        wanted = only_run(tmp_path / "killed")
    last = server("killed", wanted)
    last.go()
    assert last.ended == "finished"
    losses, draws = kept_losses(tmp_path / "killed", wanted)
    expected_losses, expected_draws = kept_losses(tmp_path / "whole", whole.run_id)
    assert losses.tobytes() == expected_losses.tobytes()
    assert draws.tobytes() == expected_draws.tobytes()


def test_the_kills_are_ten():
    assert sum(map(len, MOMENTS.values())) == 10
