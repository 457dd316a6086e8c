"""Run an SVI in chunks: one compiled `advance(state, data, n)`, its losses and estimates fetched once per chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from core.inference.live import Moments, live_moments
from core.inference.minibatch import AnyProgram
from core.model.tracing import TRACING_LOCK

LONGEST = 16_384
"""Steps per chunk at most: the length of the loss buffer on the device."""
CHUNK_SECONDS = 0.24
"""Time a chunk should take: the page hears of a run four times a second."""
FIRST_STEPS = 4
GROWTH = 4
"""A chunk is at most so many times longer than the one before: one slow chunk must not stall the page."""

Advance = Callable[[Any, Any, Any], tuple[Any, Array, Moments]]


def compile_chunks(program: AnyProgram, state: Any, data: Any, pinned: np.ndarray) -> Advance:
    """Trace (under the lock) and compile once, ahead of time; every chunk length runs on the one executable.

    `data` is what the program steps on: a placed panel, or batches. What comes back takes (state, data, steps) and
    gives the new state, the loss buffer and the live moments. The new state lies on devices as the given one does:
    left to itself, XLA divides whatever divides evenly, and the next chunk would be refused.
    """
    where = jax.tree.map(lambda leaf: leaf.sharding, state)
    mesh = next((at.mesh for at in jax.tree.leaves(where) if isinstance(at, NamedSharding)), None)
    whole = None if mesh is None else NamedSharding(mesh, PartitionSpec())
    advance = jax.jit(partial(_advance, program, pinned), out_shardings=(where, whole, whole))
    with TRACING_LOCK:
        lowered = advance.lower(state, data, np.int32(1))
    return lowered.compile()


def _advance(
    program: AnyProgram, pinned: np.ndarray, state: Any, data: Any, steps: Array
) -> tuple[Any, Array, Moments]:
    def step(number: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, losses = carry
        state, loss = program.step(state, data)
        return state, losses.at[number].set(loss)

    state, losses = jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(LONGEST, jnp.float32)))
    return state, losses, live_moments(program, state, jnp.asarray(pinned, jnp.int32))


@dataclass
class Pace:
    """How long the next chunk should be, from how long the last one took."""

    steps: int = FIRST_STEPS

    def after(self, steps: int, seconds: float) -> None:
        """Learn from a chunk of `steps` that took `seconds`."""
        wanted = CHUNK_SECONDS * steps / max(seconds, 1e-9)
        self.steps = int(min(max(wanted, 1), GROWTH * self.steps, LONGEST))
