"""Compile the passes ahead of time for one market, on one device or with its blocks divided over several.

Everything here runs with 64-bit types switched on for this thread alone; cells stay float32 because they come so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from core.inference import hosts
from core.inference.structured.blocks import Blocks
from core.inference.structured.columns import Columns
from core.inference.structured.moments import log_ratio, moments_of
from core.inference.structured.passes import Coupling, Position, Precisions, Shared, Step, couple, move
from core.inference.structured.sampling import log_ratios, sample_leaves

AXIS = "shard"
BLOCK, SUM, MAX = "block", "sum", "max"
"""How an output of several devices comes together: kept by block, summed, or the largest taken."""

KEPT = 64
"""Compiled passes that the process remembers: drawing from a fit, or fitting a like market, compiles nothing anew."""
_COMPILED: dict[Any, Any] = {}


class Kernels:
    """The compiled passes of one market. Call within `jax.enable_x64(True)`."""

    def __init__(self, columns: Columns, likelihood: str, clip: Any, devices: Sequence[Any], blocks: Blocks):
        self.columns, self.likelihood, self.clip = columns, likelihood, clip
        self.devices = tuple(devices)
        self.mesh = jax.make_mesh((len(devices),), (AXIS,), (AxisType.Auto,), devices=self.devices)
        self.blocks: Blocks = self.put(blocks, divided=True)
        self.compile_seconds = 0.0

    def put(self, values: Any, divided: bool = False) -> Any:
        """Arrays onto the devices: divided by block, or whole on each."""
        sharding = NamedSharding(self.mesh, PartitionSpec(AXIS) if divided else PartitionSpec())
        return jax.tree.map(lambda leaf: hosts.put(leaf, sharding), values)

    def couple(self, prior: Precisions, position: Position, shared: np.ndarray) -> Coupling:
        """`passes.couple` over all blocks."""
        by_block = Coupling(SUM, SUM, SUM, BLOCK, BLOCK)
        return self._run("couple", partial(_couple, self.columns), by_block, (prior, shared), position)

    def move(
        self, prior: Precisions, position: Position, step: Step, log_phi: np.ndarray
    ) -> tuple[Position, Any, Shared]:
        """`passes.move` over all blocks."""
        moments = moments_of(self.likelihood, self.clip)
        by_block = (Position._make([BLOCK] * 5), BLOCK, Shared._make([SUM] * 8 + [MAX]))
        whole = (prior, step.shared, step.change, step.covariance, log_phi, np.float64(step.damping))
        divided = (position, step.rest_level, step.rest_elasticity)
        return self._run("move", partial(_move, self.columns, moments), by_block, whole, divided)

    def sample(
        self, prior: Precisions, position: Position, change: np.ndarray, seeds: Sequence[int]
    ) -> tuple[Any, Any]:
        """`sampling.sample_leaves` over all blocks. Each has a key of its own: draws do not depend on how blocks are
        divided."""
        words = np.random.SeedSequence(seeds).generate_state(2 * len(self.blocks.category)).reshape(-1, 2)
        keys = self.put(words, divided=True)
        return self._run("sample", partial(_sample, self.columns), (BLOCK, BLOCK), (prior, change), (position, keys))

    def log_ratios(
        self, prior: Precisions, position: Position, shared: np.ndarray, covariance: np.ndarray,
        log_phi: np.ndarray, change: np.ndarray, leaves: tuple[Any, Any],
    ) -> Any:  # fmt: skip
        """`sampling.log_ratios` over all blocks; `leaves` as `sample` has drawn them."""
        moments, ratio = moments_of(self.likelihood, self.clip), log_ratio(self.likelihood, self.clip)
        function = partial(_log_ratios, self.columns, moments, ratio)
        return self._run(
            "log_ratios", function, BLOCK, (prior, shared, covariance, log_phi, change), (position, *leaves)
        )

    def _run(self, name: str, function: Callable[..., Any], out: Any, whole: Any, divided: Any) -> Any:
        """Call `function(blocks, whole, divided)`, compiled once; `out` says how each output is joined."""
        whole = self.put(whole)
        arguments = (self.blocks, whole, divided)
        key = (name, self.columns, self.likelihood, self.clip, self.devices, _signature(arguments))
        compiled = _COMPILED.get(key)
        if compiled is None:
            began = perf_counter()
            compiled = self._compile(function, out, whole, divided)
            # Fits of several devices share the memory: what is in hand here may leave it at any moment.
            for old in list(_COMPILED)[: max(0, len(_COMPILED) + 1 - KEPT)]:
                _COMPILED.pop(old, None)
            _COMPILED[key] = compiled
            self.compile_seconds += perf_counter() - began
        return compiled(*arguments)

    def _compile(self, function: Callable[..., Any], out: Any, whole: Any, divided: Any) -> Any:
        if len(self.devices) > 1:
            function = _over_devices(function, out, self.mesh)
        # Random bits that need not be divided over devices compile in a third of the time; blocks are never divided.
        # Products of matrices at full precision: by default a GPU rounds their float32 factors to 10 bits.
        with jax.threefry_partitionable(False), jax.default_matmul_precision("highest"):
            return jax.jit(function).lower(self.blocks, whole, divided).compile()


def _signature(arguments: Any) -> Any:
    leaves, tree = jax.tree.flatten(arguments)
    return tree, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _couple(columns: Columns, blocks: Blocks, whole: Any, position: Position) -> Coupling:
    prior, shared = whole
    return couple(columns, blocks, prior, position, shared)


def _move(columns: Columns, moments: Any, blocks: Blocks, whole: Any, divided: Any) -> Any:
    prior, shared, change, covariance, log_phi, damping = whole
    position, rest_level, rest_elasticity = divided
    step = Step(shared, change, covariance, rest_level, rest_elasticity, damping)
    return move(columns, moments, blocks, prior, position, step, log_phi)


def _sample(columns: Columns, blocks: Blocks, whole: Any, divided: Any) -> Any:
    prior, change = whole
    position, keys = divided
    return sample_leaves(columns, blocks, prior, position, change, keys)


def _log_ratios(columns: Columns, moments: Any, ratio: Any, blocks: Blocks, whole: Any, divided: Any) -> Any:
    prior, shared, covariance, log_phi, change = whole
    position, turns, rises = divided
    return log_ratios(
        columns, moments, ratio, blocks, prior, position, shared, covariance, log_phi, change, turns, rises
    )


JOIN: dict[str, Callable[[Any], Any]] = {
    SUM: lambda value: jax.lax.psum(value, AXIS),
    MAX: lambda value: jax.lax.pmax(value, AXIS),
}


def _over_devices(function: Callable[..., Any], out: Any, mesh: Any) -> Callable[..., Any]:
    split, same = PartitionSpec(AXIS), PartitionSpec()

    def local(blocks: Blocks, whole: Any, divided: Any) -> Any:
        results = function(blocks, whole, divided)

        def joined(how: str, value: Any) -> Any:
            return value if how == BLOCK else JOIN[how](value)

        return jax.tree.map(joined, out, results)

    specs = jax.tree.map(lambda how: split if how == BLOCK else same, out)
    return jax.shard_map(local, mesh=mesh, in_specs=(split, same, split), out_specs=specs, check_vma=False)
