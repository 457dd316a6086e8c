"""Keep mean and sd of arrays that come in batches, at a cost that does not grow with what came before."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class RunningMoments:
    """Running sums by name, counted from the first value so that little is lost to rounding."""

    def __init__(self) -> None:
        self.count = 0
        self._origin: dict[str, np.ndarray] = {}
        self._sums: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def add(self, values: Mapping[str, np.ndarray]) -> None:
        """Take in arrays [draw, ...], all of one length; none for a length of 0."""
        n = len(next(iter(values.values())))
        if not n:
            return
        for name, array in values.items():
            origin = self._origin.setdefault(name, np.asarray(array[0], np.float64))
            distance = np.asarray(array, np.float64) - origin
            first, second = self._sums.get(name, (np.zeros_like(origin), np.zeros_like(origin)))
            self._sums[name] = first + distance.sum(axis=0), second + np.square(distance).sum(axis=0)
        self.count += n

    def mean(self) -> dict[str, np.ndarray]:
        """Means by name, of at least one draw."""
        return {name: self._origin[name] + first / self.count for name, (first, _) in self._sums.items()}

    def sd(self) -> dict[str, np.ndarray]:
        """Standard deviations by name, divided by the count."""
        return {
            name: np.sqrt(np.maximum(second / self.count - np.square(first / self.count), 0.0))
            for name, (first, second) in self._sums.items()
        }
