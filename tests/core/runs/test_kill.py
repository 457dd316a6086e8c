"""`kill -9` at any moment of a run loses nothing: found interrupted, resumed, and equal bit for bit in the end."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.runs.manager import RunManager
from core.runs.snapshots import RunState
from core.settings import Settings

KILLS = 10
SEED = 20_26


class Server:
    """The other process: answers it until it ends, or kills it after so many steps."""

    def __init__(self, folder: Path, engine: str, wanted: str):
        command = [sys.executable, "-m", "tests.core.runs.server", str(folder), engine, wanted]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )
        self.found = self.run_id = self.ended = ""
        self.steps: list[str] = []

    def go(self, steps: int | None = None) -> None:
        """Let it take `steps` steps and kill it in the middle of the next; None: let it end."""
        assert self.process.stdout is not None and self.process.stdin is not None
        with self.process:
            for line in map(str.strip, self.process.stdout):
                kind, _, rest = line.partition(" ")
                if kind in ("found", "run", "ended"):
                    setattr(self, "run_id" if kind == "run" else kind, rest)
                    continue
                self.steps.append(line)
                if steps is not None and len(self.steps) > steps:
                    return self.process.kill()
                self.process.stdin.write("\n")
                self.process.stdin.flush()
        return None


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


def killed_and_undisturbed(tmp_path: Path, engine: str, kills: int) -> set[str]:
    """Kill a run so many times, resume it, compare; says at which kinds of steps it was killed."""
    whole = Server(tmp_path / "whole", engine, "submit")
    whole.go()
    assert whole.ended == "finished"
    moments = random.Random(SEED)
    wanted, kinds = "submit", set[str]()
    for _ in range(kills):
        server = Server(tmp_path / "killed", engine, wanted)
        # Short stretches, so that all kills together do not see the run to its end.
        server.go(moments.randrange(len(whole.steps) // kills))
        assert server.ended == ""
        kinds.add(server.steps[-1].split()[0])
        assert server.found in ("", "interrupted")
        wanted = only_run(tmp_path / "killed")
    last = Server(tmp_path / "killed", engine, wanted)
    last.go()
    assert last.ended == "finished"
    losses, draws = kept_losses(tmp_path / "killed", wanted)
    expected_losses, expected_draws = kept_losses(tmp_path / "whole", whole.run_id)
    assert losses.tobytes() == expected_losses.tobytes()
    assert draws.tobytes() == expected_draws.tobytes()
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["svi", "structured"])
def test_kills_of_the_real_engines_change_no_bit(tmp_path: Path, engine: str):
    killed_and_undisturbed(tmp_path, engine, kills=2)


@pytest.mark.slow
def test_ten_kills_change_no_bit(tmp_path: Path):
    kinds = killed_and_undisturbed(tmp_path, "walk", KILLS)
    assert kinds == {"chunk", "writing"}, "killed while computing and while writing"
