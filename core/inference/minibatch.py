"""Run SVI on mini-batches of products: every step takes one batch, its unknowns and the shared ones, all on the device.

A batch's likelihood, and prior and guide of its own products and series, count as often as an epoch has batches, so
that the mean gradient over an epoch is that of the whole market. Products outside the batch have no part in the step:
neither draws nor optimiser touch them. Each batch's optimiser keeps its own count, and its learning rate is that of the
step at which its epoch began.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import UInt32
from numpyro.infer import autoguide

from core.inference.batches import Batches, flat, take, without_cells
from core.inference.optimizers import OPTIMIZERS, SCHEDULES
from core.inference.plan import FitPlan
from core.inference.program import Program, build_program, is_own
from core.inference.starts import Start
from core.inference.supply import Visits
from core.model.shards import AXIS
from core.panel import Panel

Params = dict[str, Array]


class BatchState(NamedTuple):
    """What a run on mini-batches carries from step to step."""

    rng_key: UInt32[Array, "2"]
    shared: tuple[Params, Any]
    """Unconstrained parameters and optimiser of what products share."""
    own: tuple[Params, Any]
    """The same of products and series; leaves have axes device and batch in front."""


@dataclass(frozen=True)
class BatchProgram:
    """An SVI on mini-batches, ready to run; `first` is the state before any step."""

    whole: Program
    """Every unknown of the market: what draws and live estimates read."""
    one: Program
    """Of a single batch: what a step evaluates."""
    rule: optax.GradientTransformation
    own_rule: optax.GradientTransformation
    first: BatchState

    @property
    def guide(self) -> autoguide.AutoGuide:
        return self.whole.guide

    @property
    def small(self) -> Panel:
        return self.whole.small

    def params(self, state: BatchState) -> Params:
        """The guide's parameters by name, of all products."""
        return params_of(self.whole, state)

    def step(self, state: BatchState, visits: Visits, at: Array | int) -> tuple[BatchState, Array]:
        """The state after visit `at` and the loss, on the scale of the whole market; as it was but for its random
        numbers, and not a number, where loss or slopes are not finite."""
        key, key_step = jax.random.split(state.rng_key)
        number = visits.numbers[at]
        own = jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, number, 1, keepdims=False), state.own)
        value, (slopes, own_slopes) = self._slopes(state.shared[0], own[0], key_step, take(visits.batches, number))
        good = _finite((value, slopes, own_slopes))
        shared, own = jax.lax.cond(
            good,
            lambda: (_updated(self.rule, slopes, state.shared), self._own_updated(own_slopes, own)),
            lambda: (state.shared, own),
        )
        own = jax.tree.map(lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, number, 1), state.own, own)
        return BatchState(key, shared, own), jnp.where(good, value, jnp.nan)

    def _own_updated(self, slopes: Params, own: tuple[Params, Any]) -> tuple[Params, Any]:
        return jax.vmap(partial(_updated, self.own_rule))(slopes, own)

    def _slopes(self, shared: Params, own: Params, key: Array, panel: Panel) -> tuple[Array, tuple[Params, Params]]:
        svi = self.one.svi

        def loss(shared: Params, own: Params) -> Array:
            unconstrained = {**shared, **{name: flat(value, axes=2) for name, value in own.items()}}
            return svi.loss.loss(key, svi.constrain_fn(unconstrained), svi.model, svi.guide, panel)

        # Left to itself, XLA fuses slopes into what reads them, and computes them once for each reader.
        return jax.lax.optimization_barrier(jax.value_and_grad(loss, argnums=(0, 1))(shared, own))


AnyProgram = Program | BatchProgram


def build_batch_program(plan: FitPlan, divided: Panel, batches: Batches, start: Start) -> BatchProgram:
    """Set up SVI for the batches of a divided host panel. Hold TRACING_LOCK: it runs the model twice, without data."""
    whole = build_program(plan, divided, start)
    grid = (batches.devices, batches.count)
    one = build_program(plan, jax.jit(take)(without_cells(batches), 0), _start_of_first(start, grid))
    return BatchProgram(whole, one, *_rules(plan, batches.count), first_batch_state(plan, whole, grid))


def first_batch_state(plan: FitPlan, whole: Program, grid: tuple[int, int]) -> BatchState:
    """The state before any step, from the program of the whole market; `grid` counts devices and batches of each."""
    rule, own_rule = _rules(plan, grid[1])
    params = whole.svi.optim.get_params(whole.first.optim_state)
    shared = {name: value for name, value in params.items() if not is_own(name)}
    own = {name: value.reshape(*grid, -1) for name, value in params.items() if is_own(name)}
    return BatchState(
        rng_key=whole.first.rng_key,
        shared=(shared, rule.init(shared)),
        own=(own, jax.vmap(jax.vmap(own_rule.init))(own)),
    )


def params_of(whole: Program, state: BatchState) -> Params:
    """The guide's parameters by name, of all products."""
    own = {name: flat(value, axes=3) for name, value in state.own[0].items()}
    constrained: Params = whole.svi.constrain_fn({**state.shared[0], **own})
    return constrained


def batch_state_specs(state: BatchState) -> BatchState:
    """PartitionSpecs like `state`: what belongs to products and series is divided by device."""
    whole = jax.tree.map(lambda _: PartitionSpec(), state)
    return whole._replace(own=jax.tree.map(lambda _: PartitionSpec(AXIS), state.own))


def _rules(plan: FitPlan, count: int) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """Optimisers of shared unknowns, which every step moves, and of a batch's own, which one step an epoch does."""
    schedule = SCHEDULES[plan.svi.schedule].build(plan.svi.learning_rate, plan.svi.steps)
    optimizer = OPTIMIZERS[plan.svi.optimizer]
    return optimizer.build(schedule, count), optimizer.build(lambda visits: schedule(visits * count), count)


def _start_of_first(start: Start, grid: tuple[int, int]) -> Start:
    def part(name: str, value: np.ndarray) -> np.ndarray:
        return value.reshape(*grid, -1)[:, 0].ravel() if is_own(name) else value

    return Start(
        {name: part(name, value) for name, value in start.loc.items()},
        {name: part(name, value) for name, value in start.scale.items()},
    )


def _updated(rule: optax.GradientTransformation, slopes: Params, state: tuple[Params, Any]) -> tuple[Params, Any]:
    params, memory = state
    updates, memory = rule.update(slopes, memory, params)
    return optax.apply_updates(params, updates), memory


def _finite(tree: Any) -> Array:
    return jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]))
