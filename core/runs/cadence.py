"""Decide when a run is due for its next checkpoint, so that all of them together stay cheap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.02
"""Most of a run's time that its checkpoints may take; the first one's cost is not known before and is paid back."""


class Cadence:
    """At most one checkpoint every `gap` seconds, and rarer where that would take more than 2 % of the time so far.

    A gap of 0 asks for one after every chunk, whatever it costs.
    """

    def __init__(self, gap: float, clock: Callable[[], float]):
        self._gap = gap
        self._clock = clock
        self._began = self._saved = clock()
        self._spent = 0.0
        self.last = 0.0
        """Seconds that the last checkpoint took."""

    def due(self) -> bool:
        """Whether a checkpoint that costs as much as the last one is affordable now."""
        if not self._gap:
            return True
        now = self._clock()
        affordable = SHARE * (now - self._began) >= self._spent + self.last
        return now - self._saved >= self._gap and (self._spent == 0.0 or affordable)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what happens inside as the cost of a checkpoint."""
        began = self._clock()
        try:
            yield
        finally:
            self._saved = self._clock()
            self.last = self._saved - began
            self._spent += self.last
