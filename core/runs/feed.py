"""Gather the chunks of a running fit into the losses kept on disk and the progress shown on screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from core.inference.fit import Chunk
from core.runs.curves import convergence_verdict, whole_and_tail
from core.runs.snapshots import History, Progress

HISTORY = 300
"""Points kept of the history of an estimate."""
RATE_MEMORY = 0.7
"""Weight of the past in the running mean of steps per second; about the last three chunks count."""


class LossBuffer:
    """Losses of a run from its first step on, float32 or as the engine has them; grows by doubling."""

    def __init__(self, begun: Float[np.ndarray, "step"] | None = None):
        self._values = np.array(begun) if begun is not None else np.zeros(0, np.float32)
        self._size = self._values.size

    def put(self, first_step: int, losses: Float[np.ndarray, "step"]) -> None:
        """Write a chunk at its place: what an earlier attempt had computed beyond `first_step` is dropped."""
        end = first_step + losses.size
        if end > self._values.size:
            grown = np.full(max(end, 2 * self._values.size), np.nan, losses.dtype)
            grown[: self._size] = self._values[: self._size]
            self._values = grown
        self._values[first_step:end] = losses
        self._size = end

    @property
    def values(self) -> Float[np.ndarray, "step"]:
        """A view, valid until the next `put`."""
        return self._values[: self._size]

    @property
    def size(self) -> int:
        return self._size


class Feed:
    """What one stretch of work on a run has shown; used by its worker alone."""

    def __init__(self, begun: Progress, losses: Float[np.ndarray, "step"] | None, clock: Callable[[], float]):
        self.losses = LossBuffer(losses)
        self.n_obs = 0
        self.rate = 0.0
        self._progress = begun
        self._clock = clock
        self._history = _until(begun.global_history, self.losses.size)
        self._every = 1
        self._seen = 0
        self.phases: dict[str, float] = {}
        self._phase, self._since = "", clock()

    def enter(self, phase: str) -> None:
        """A phase of the work begins."""
        now = self._clock()
        if self._phase:
            self.phases[self._phase] = self.phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def name(self, categories: tuple[str, ...], pinned: tuple[str, ...]) -> None:
        """Names of what estimates are about."""
        self._progress = replace(self._progress, categories=categories, pinned=pinned)

    def remark(self, *sentences: str) -> None:
        """Things to know; each is told once."""
        new = tuple(sentence for sentence in sentences if sentence not in self._progress.remarks)
        self._progress = replace(self._progress, remarks=self._progress.remarks + new)

    def take(self, chunk: Chunk) -> None:
        """A chunk has run."""
        self.losses.put(chunk.first_step, np.asarray(chunk.losses))
        if chunk.seconds > 0 and len(chunk.losses):
            rate = len(chunk.losses) / chunk.seconds
            self.rate = rate if self.rate == 0 else RATE_MEMORY * self.rate + (1 - RATE_MEMORY) * rate
        notes: Mapping[str, float] = chunk.notes or self._progress.notes
        self._progress = replace(self._progress, estimates=chunk.estimates or self._progress.estimates, notes=notes)
        if chunk.estimates is not None:
            self._remember(chunk.estimates.global_mean, chunk.estimates.global_sd)

    def progress(self) -> Progress:
        """All that is to be shown now."""
        whole, tail = whole_and_tail(self.losses.values, self.n_obs)
        self._progress = replace(
            self._progress,
            whole=whole,
            tail=tail,
            verdict=convergence_verdict(self.losses.values, self.n_obs),
            global_history=self._history,
        )
        return self._progress

    def _remember(self, mean: float, sd: float) -> None:
        self._seen += 1
        if self._seen % self._every:
            return
        old = self._history
        self._history = History(np.append(old.step, self.losses.size), np.append(old.mean, mean), np.append(old.sd, sd))
        if self._history.step.size >= 2 * HISTORY:
            self._every *= 2
            self._history = History(
                *(values[::2] for values in (self._history.step, self._history.mean, self._history.sd))
            )


def _until(history: History, step: int) -> History:
    keep = history.step <= step
    return History(history.step[keep], history.mean[keep], history.sd[keep])


def last_loss(losses: np.ndarray, n_obs: int, averaged: int) -> float | None:
    """Mean of the last `averaged` losses that are numbers, nats per observation; None where there is none."""
    finite = losses[-2 * averaged :]
    finite = finite[np.isfinite(finite)][-averaged:]
    return float(finite.astype(np.float64).mean()) / max(n_obs, 1) if finite.size else None


NOISY = {"svi": 100, "nuts": 100}
"""Steps in the last loss of an engine whose losses are noisy: enough to calm it. Others tell their very last one."""
