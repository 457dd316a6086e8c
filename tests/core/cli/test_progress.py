"""What a fit tells where no terminal renews a line: every phase, and where each came to."""

from __future__ import annotations

import io

import numpy as np

from core.cli.progress import Narrator
from core.inference.fit import Chunk


def told(chunks: int) -> list[str]:
    stream = io.StringIO()
    narrator = Narrator(total=0, n_obs=10, stream=stream)
    watcher = narrator.watcher(lambda: False)
    watcher.on_phase("running")
    for step in range(chunks):
        watcher.on_chunk(Chunk(step, np.array([20.0 - step]), 0.01))
    watcher.on_phase("checking")
    narrator.close()
    return [line.rsplit(", ", 1)[0] for line in stream.getvalue().splitlines()]


def test_a_short_fit_tells_its_first_step_its_last_and_every_phase():
    assert told(9) == [
        "running",
        "step 1, loss 2.000 nats per observation",
        "step 9, loss 1.200 nats per observation",
        "checking",
    ]


def test_a_step_is_told_once():
    assert told(1) == ["running", "step 1, loss 2.000 nats per observation", "checking"]
