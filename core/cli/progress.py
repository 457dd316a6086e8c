"""Say how a fit goes: one line that renews itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from core.inference.fit import Chunk, Ending, Watcher
from core.report import wording

SECONDS_BETWEEN_LINES = 5.0


def say_outcome(sentence: str) -> None:
    """Print on stderr how a fit ended, as a warning where it ended before it had converged."""
    if Ending.NOT_CONVERGED.tells(sentence):
        sentence = f"warning: {sentence} The results are where it stood then: do not rely on them."
    print(sentence, file=sys.stderr)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collect a first Ctrl-C instead of dying of it, so that work can be stopped and kept; a second interrupts."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class Narrator:
    """Watches a fit and tells it on `stream`. `total` is the number of steps planned, 0 where the engine decides."""

    def __init__(self, total: int, n_obs: int, stream: TextIO | None = None):
        self.total = total
        self.n_obs = max(n_obs, 1)
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self._started = self._last = time.monotonic()
        self._untold: Chunk | None = None

    def watcher(self, should_stop: Callable[[], bool]) -> Watcher:
        """The watcher to hand to a fit."""
        return Watcher(on_phase=self.phase, on_chunk=self.chunk, should_stop=should_stop)

    def phase(self, name: str) -> None:
        self._tell_last()
        self._write(name, renew=False)
        self._last = time.monotonic() - SECONDS_BETWEEN_LINES

    def chunk(self, chunk: Chunk) -> None:
        now = time.monotonic()
        if not self.live and now - self._last < SECONDS_BETWEEN_LINES:
            self._untold = chunk
            return
        self._last, self._untold = now, None
        self._write(self._sentence(chunk, now - self._started), renew=self.live)

    def close(self) -> None:
        """Tell the last step, and end a line that renews itself."""
        self._tell_last()
        if self.live:
            print(file=self.stream)

    def _tell_last(self) -> None:
        """Where a phase came to, if that has not been told."""
        if self._untold is not None:
            self._write(self._sentence(self._untold, time.monotonic() - self._started), renew=False)
            self._untold = None

    def _sentence(self, chunk: Chunk, elapsed: float) -> str:
        done = chunk.first_step + len(chunk.losses)
        of_total = f" of {self.total:,}" if self.total else ""
        loss = f"loss {wording.loss(chunk.losses[-1] / self.n_obs)} nats per observation" if len(chunk.losses) else ""
        estimate = chunk.estimates
        elasticity = f"elasticity {estimate.global_mean:.2f} (sd {estimate.global_sd:.2f})" if estimate else ""
        return ", ".join(part for part in (f"step {done:,}{of_total}", loss, elasticity, f"{elapsed:.1f} s") if part)

    def _write(self, text: str, renew: bool) -> None:
        if renew:
            print(f"\r\x1b[2K{text}", end="", file=self.stream, flush=True)
        else:
            print(text, file=self.stream, flush=True)
