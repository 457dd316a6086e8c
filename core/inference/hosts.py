"""Let several processes, on one host or many, run one fit together: an address in, agreement between them out.

Every process reads the same file and runs the same program on its own share of the devices (jax.distributed). What
depends on a clock or a person, the length of a chunk and a wish to stop, is decided by the first process for all.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from core.errors import Problem, UserError

WAIT_SECONDS = 120
"""How long a process waits for the others to start."""
LEAVING_SECONDS = 2
"""How long the first process lets the others say what they have to say, where a team breaks up."""


@dataclass(frozen=True)
class Team:
    """How a process finds the others. `address` is HOST:PORT of process 0."""

    address: str
    processes: int
    number: int

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        found = []
        if not host or not port.isdigit():
            found.append(
                ("--coordinator", f"'{self.address}' is not HOST:PORT", "Name process 0, as in 10.0.0.1:9876.")
            )
        if self.processes < 1:
            found.append(("--processes", f"{self.processes} processes are none", "Give 1 or more."))
        elif not 0 <= self.number < self.processes:
            found.append(
                ("--process-id", f"there is no process {self.number} of {self.processes}", "Count from 0.")
            )  # fmt: skip
        if found:
            raise UserError(Problem("team", what, remedy, where=where) for where, what, remedy in found)


def join(team: Team) -> None:
    """Work with the others from here on. Call it before anything asks JAX for devices.

    Raises UserError when the others are not to be found.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # It would catch SIGTERM, which then ends nobody.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            team.address, team.processes, team.number, initialization_timeout=WAIT_SECONDS
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        first_line = (str(error).splitlines() or ["no message"])[0]
        raise UserError(
            Problem(
                "team",
                f"the {team.processes} processes did not meet at {team.address}: {first_line}",
                "Start every process with the same --coordinator and --processes, each with its own --process-id.",
                where="--coordinator",
            )
        ) from None


def parted(status: int) -> int:
    """The first process' exit status, once all have come here; from here on each works alone again."""
    # For what the first still writes the others may wait longer here than in a shutdown.
    status = agreed(status)
    jax.distributed.shutdown()
    return status


def leave(status: int) -> int:
    """The exit status again; of a process that has not parted from its team, the end.

    It does not wait for the others: they may be gone, or wait for it. The first process ends last, for its end ends
    all.
    """
    if jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        if first():
            time.sleep(LEAVING_SECONDS)
        os._exit(status)
    return status


def line_broken(error: Exception) -> UserError | None:
    """What to say of an error that comes of the line to another process having broken; None of any other.

    Between GPUs nobody notices, until JAX ends all after 100 s.
    """
    if not several() or "gloo" not in str(error).lower():
        return None
    remedy = "See what that process says, then start all of them again."
    return UserError(Problem("team", "the line to another process broke", remedy, where="--coordinator"))


def several() -> bool:
    """Whether this process is one of several."""
    return jax.process_count() > 1


def first() -> bool:
    """Whether this process talks and writes; alone, it does."""
    return jax.process_index() == 0


def agreed(value: int) -> int:
    """The first process' value. Every process must call it at the same point."""
    return int(multihost_utils.broadcast_one_to_all(np.int32(value))) if several() else value


def refuse_different(what: str, sha256: str) -> None:
    """Raise UserError in every process unless all hold the same `what`, known by its sha256."""
    if not several():
        return
    mine = np.frombuffer(bytes.fromhex(sha256)[:28], np.int32)
    everyone = np.asarray(multihost_utils.process_allgather(mine))
    if (everyone != everyone[0]).any():
        raise UserError(Problem("team", f"the processes do not have the same {what}", "Give all of them the same."))


def put(leaf: Any, sharding: NamedSharding) -> jax.Array:
    """An array that every process holds whole, on the devices of all: each process fills its own."""
    if not several():
        return jax.device_put(leaf, sharding)
    values = np.asarray(leaf)
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def fetched(tree: Any) -> Any:
    """Arrays as NumPy, whole, in every process. Every process must call it at the same point."""

    def whole(leaf: Any) -> np.ndarray:
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable and not leaf.is_fully_replicated:
            return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
        return np.asarray(jax.device_get(leaf))

    return jax.tree.map(whole, tree) if several() else jax.device_get(tree)
