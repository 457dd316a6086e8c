"""Run an SVI in chunks of compiled steps; losses and estimates are fetched once per chunk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Float

from core.inference.live import Moments, live_moments
from core.inference.minibatch import AnyProgram
from core.inference.supply import LONGEST, Supply
from core.model.tracing import TRACING_LOCK

CHUNK_SECONDS = 0.24
"""Time a chunk should take: the page hears of a run four times a second."""
FIRST_STEPS = 4
GROWTH = 8
"""A chunk is at most so many times longer than the one before: the first few are too short to be timed well."""
LIGHT = {"xla_backend_optimization_level": 1}
LITTLE_BYTES = 64 * 2**10
"""State and data up to which a program on the CPU is compiled lightly: its loops are too short to gain what a third of
the compilation costs. On much data the same would make steps with several particles take half as long again."""


@dataclass(frozen=True)
class Advance:
    """Compiled for one state and supply; every chunk length runs on the one executable."""

    run: Any
    """(state, losses, data, begin, end) -> (state, losses, end); state and losses given are used up."""
    begun: Any
    """(state) -> a copy, and a buffer of losses."""
    look: Any
    """(state) -> live moments."""

    def __call__(
        self, state: Any, supply: Supply, first: int, steps: int
    ) -> tuple[Any, Float[np.ndarray, "step"], Moments]:
        """The state `steps` steps after `state`, which is step `first`'s and stays good; losses and moments, fetched.

        Waits for the last piece but one before it asks for the next: data of two pieces lie on the devices at most.
        """
        (state, losses), begin, before = self.begun(state), 0, None
        for data, end in supply.pieces(first, steps):
            state, losses, done = self.run(state, losses, data, np.int32(begin), np.int32(end))
            jax.block_until_ready(before)
            begin, before = end, done
        losses, moments = jax.device_get((losses, self.look(state)))
        return state, np.array(losses[:steps]), moments


def compile_chunks(program: AnyProgram, state: Any, supply: Supply, pinned: np.ndarray, first: int = 0) -> Advance:
    """Trace (under the lock) and compile once, ahead of time, to go on from `state`, which is step `first`'s.

    The new state lies on devices as the given one does: left to itself, XLA divides whatever divides evenly, and the
    next chunk would be refused.
    """
    where = jax.tree.map(lambda leaf: leaf.sharding, state)
    mesh = next((at.mesh for at in jax.tree.leaves(where) if isinstance(at, NamedSharding)), None)
    whole = None if mesh is None else NamedSharding(mesh, PartitionSpec())
    run = jax.jit(partial(_advance, program), out_shardings=(where, whole, whole), donate_argnums=(0, 1))
    begun = jax.jit(_begun, out_shardings=(where, whole))
    look = jax.jit(partial(live_moments, program, pinned=jnp.asarray(pinned, jnp.int32)), out_shardings=whole)
    with TRACING_LOCK:
        compiled = begun.lower(state).compile()
        losses = compiled(state)[1]
        lowered = run.lower(state, losses, supply.piece(first), np.int32(0), np.int32(1)), look.lower(state)
    ready = [one.compile(compiler_options=_effort(state, supply.data)) for one in lowered]
    return Advance(ready[0], compiled, ready[1])


def _effort(state: Any, data: Any) -> dict[str, Any] | None:
    """Compiler options for a program on a state and data, wherever the data lie; None: XLA's own."""
    on_cpu = all(device.platform == "cpu" for leaf in jax.tree.leaves(state) for device in leaf.devices())
    little = sum(leaf.nbytes for leaf in jax.tree.leaves((state, data))) < LITTLE_BYTES
    return LIGHT if on_cpu and little else None


def _begun(state: Any) -> tuple[Any, Array]:
    return jax.tree.map(jnp.copy, state), jnp.zeros(LONGEST, jnp.float32)


def _advance(
    program: AnyProgram, state: Any, losses: Array, data: Any, begin: Array, end: Array
) -> tuple[Any, Array, Array]:
    def step(at: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, losses = carry
        state, loss = program.step(state, data, at)
        return state, losses.at[at].set(loss)

    return *jax.lax.fori_loop(begin, end, step, (state, losses)), end + 0


@dataclass
class Pace:
    """How long the next chunk should be, from how long the last one took."""

    steps: int = FIRST_STEPS

    def after(self, steps: int, seconds: float) -> None:
        """Learn from a chunk of `steps` that took `seconds`."""
        wanted = CHUNK_SECONDS * steps / max(seconds, 1e-9)
        self.steps = int(min(max(wanted, 1), GROWTH * self.steps, LONGEST))
