"""Say what a run's steps read: from which step on and how many in, what lies on the devices for them out, in pieces.

Of mini-batches, an epoch visits each once, in an order that seed and epoch alone decide: it is the same for any length
of chunk, in every process, and wherever the data are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Int

from core.inference.batches import Batches, batch_specs, cells_of, with_cells, without_cells
from core.inference.placement import Site
from core.model.shards import AXIS

LONGEST = 16_384
"""Steps per chunk at most: the length of the loss buffer on the device."""
ORDERED_STEPS = 4_096
"""Steps, at least, whose batches are drawn at once: an epoch may have two."""


class Visits(NamedTuple):
    """Mini-batches on their devices, and which of them each step takes."""

    batches: Batches
    numbers: Int[Array, "step"] | Int[np.ndarray, "step"]


class Supply(Protocol):
    """Data for steps."""

    @property
    def data(self) -> Any:
        """All of them, wherever they lie."""

    def piece(self, step: int) -> Any:
        """A piece for a chunk that begins with `step`, for a look at shapes and places."""

    def pieces(self, first: int, steps: int) -> Iterator[tuple[Any, int]]:
        """What a chunk of `steps` steps from `first` on reads: piece after piece, each with the step of the chunk
        before which it ends."""


@dataclass(frozen=True)
class Whole:
    """All data in every step."""

    data: Any

    def piece(self, step: int) -> Any:
        return self.data

    def pieces(self, first: int, steps: int) -> Iterator[tuple[Any, int]]:
        yield self.data, steps


@dataclass(frozen=True)
class Resident:
    """Mini-batches, all of them on their devices."""

    data: Batches
    seed: int

    def piece(self, step: int) -> Visits:
        return Visits(self.data, visited(self.seed, self.data.count, step, LONGEST))

    def pieces(self, first: int, steps: int) -> Iterator[tuple[Visits, int]]:
        yield self.piece(first), steps


@dataclass
class Streamed:
    """Mini-batches whose cells stay in host memory: a piece is one of them, put on its devices one step ahead."""

    data: Batches
    """Leaves are NumPy arrays."""
    rest: Batches
    """The same without cells, on the devices."""
    site: Site
    seed: int
    steps: int
    """Of the whole run: nothing is put on the devices for a step beyond."""
    _ahead: tuple[int, Batches] | None = None

    def piece(self, step: int) -> Visits:
        return Visits(self._block(step), self._numbers(step))

    def pieces(self, first: int, steps: int) -> Iterator[tuple[Visits, int]]:
        numbers = self._numbers(first)
        for step in range(first, first + steps):
            yield Visits(self._block(step), numbers), step - first + 1
            if step + 1 < self.steps:
                self._block(step + 1)

    def _numbers(self, first: int) -> Int[Array, "step"]:
        numbers = visited(self.seed, self.data.count, first, LONGEST)
        return self.site.put(numbers, PartitionSpec())

    def _block(self, step: int) -> Batches:
        """The batch of a step: the one put ahead, if it is that; no other stays."""
        if self._ahead is None or self._ahead[0] != step:
            self._ahead = None
            self._ahead = step, self._put(step)
        return self._ahead[1]

    def _put(self, step: int) -> Batches:
        number = int(visited(self.seed, self.data.count, step, 1)[0])
        cells = {name: leaf[:, number : number + 1] for name, leaf in cells_of(self.data).items()}
        return with_cells(self.rest, self.site.put(cells, dict.fromkeys(cells, PartitionSpec(AXIS))))


def stream(batches: Batches, site: Site, seed: int, steps: int) -> Streamed:
    """Mini-batches of a host market, to be streamed: all but their cells is put on the devices now."""
    rest = without_cells(batches)
    return Streamed(batches, site.put(rest, batch_specs(rest)), site, seed, steps)


def visited(seed: int, count: int, first: int, steps: int) -> Int[np.ndarray, "step"]:
    """Which of an epoch's `count` batches each of `steps` steps takes, from step `first` of the run on."""
    length = count * -(-ORDERED_STEPS // count)
    reels = range(first // length, (first + steps - 1) // length + 1)
    numbers = np.concatenate([_reel(seed, count, length, reel) for reel in reels])
    return numbers[first - reels.start * length :][:steps]


@lru_cache(maxsize=16)
def _reel(seed: int, count: int, length: int, reel: int) -> Int[np.ndarray, "step"]:
    """The batches of some whole epochs, one after another."""
    epochs = np.tile(np.arange(count, dtype=np.int32), (length // count, 1))
    return np.random.default_rng((seed, reel)).permuted(epochs, axis=1).ravel()
