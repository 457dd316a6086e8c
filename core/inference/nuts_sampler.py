"""Compile the No-U-Turn sampler of one market and plan, and run it a few steps at a time.

Chains start at draws of the structured engine's posterior, with the inverse of its variances as mass matrix; warm-up
tunes the step size alone.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS, init_to_value

from core.errors import Problem, UserError
from core.inference.engines import ENGINES
from core.inference.fit import Draws, Watcher
from core.inference.placement import site_of
from core.inference.plan import FitPlan
from core.inference.program import model_of
from core.inference.starts import draws_start
from core.model.demand import site_names
from core.model.tracing import TRACING_LOCK
from core.panel import Panel

BUFFER = 50
"""Most steps of one chunk."""
START_DRAWS = 400


class Sampler:
    """The compiled sampler of one market and plan."""

    def __init__(self, plan: FitPlan, panel: Panel):
        self.plan, self.host = plan, panel
        self.device = site_of(plan.placement).devices[0]
        self.panel: Panel = jax.device_put(panel, self.device)
        self.names = site_names(panel, plan.model)
        self.compile_seconds = 0.0
        self._starts = self._structured_starts()
        with TRACING_LOCK:
            self.kernel = self._kernel(0)
            self.state = self._first(0)
            began = perf_counter()
            arguments = self.state, self.panel, jnp.int32(1)
            self._advance = jax.jit(self._steps).lower(*arguments).compile()
            self.compile_seconds += perf_counter() - began

    def _structured_starts(self) -> Draws:
        structured = ENGINES["structured"]
        plan = replace(self.plan, engine="structured", placement="cpu")
        found = structured.fit(plan, self.host, Watcher(), None)
        if not found.outcome.usable:
            told = f"the structured engine, where chains start, gave no start: {found.outcome.sentence}"
            raise UserError(Problem("start", told, "Simplify the model.", where="start"))
        return structured.draw(found, self.host, START_DRAWS, self.plan.seed)

    def _kernel(self, chain: int) -> NUTS:
        decentred = self.plan.svi.parameterisation == "noncentred"
        whole = draws_start(self._starts, self.host, self.plan.model, decentred)
        first = draws_start(_one(self._starts, chain), self.host, self.plan.model, decentred)
        mass = {(name,): jnp.asarray(np.square(scale)).reshape(-1) for name, scale in whole.scale.items()}
        values = {name: jnp.asarray(value) for name, value in first.loc.items()}
        model = model_of(self.plan)
        return NUTS(
            model, init_strategy=init_to_value(values=values), inverse_mass_matrix=mass, adapt_mass_matrix=False
        )

    def _first(self, chain: int) -> Any:
        key = jax.random.fold_in(jax.random.PRNGKey(self.plan.seed), chain)
        return self.kernel.init(key, self.plan.nuts.warmup, None, model_args=(self.panel,), model_kwargs={})

    def restart(self, chain: int) -> None:
        """Begin a chain at its own draw of the structured posterior."""
        with TRACING_LOCK:
            other = self._kernel(chain)
            key = jax.random.fold_in(jax.random.PRNGKey(self.plan.seed), chain)
            self.state = other.init(key, self.plan.nuts.warmup, None, model_args=(self.panel,), model_kwargs={})

    def advance(self, n: int) -> dict[str, np.ndarray]:
        """Run `n` steps of the running chain: sites by name, energy and divergences, step first."""
        self.state, kept = self._advance(self.state, self.panel, jnp.int32(n))
        return {name: np.asarray(values)[:n] for name, values in kept.items()}

    def _steps(self, state: Any, panel: Panel, n: Any) -> tuple[Any, dict[str, Any]]:
        def record(at: Any) -> dict[str, Any]:
            values = self.kernel.postprocess_fn((panel,), {})(at.z)
            return {
                **{name: values[name] for name in self.names},
                "energy": at.potential_energy,
                "divergent": at.diverging,
            }

        def one(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            at = self.kernel.sample(carry[0], (panel,), {})
            kept = jax.tree.map(lambda buffer, value: buffer.at[i].set(value), carry[1], record(at))
            return at, kept

        shapes = jax.eval_shape(record, state)
        buffers = jax.tree.map(lambda leaf: jnp.zeros((BUFFER, *leaf.shape), leaf.dtype), shapes)
        after: tuple[Any, dict[str, Any]] = jax.lax.fori_loop(0, n, one, (state, buffers))
        return after


def _one(draws: Draws, number: int) -> Draws:
    """One draw alone, draw axis kept."""
    at = slice(number, number + 1)
    return Draws(
        draws.elasticity_global[at], draws.elasticity_category[at], draws.elasticity_product[at],
        draws.level_series[at], {name: values[at] for name, values in draws.others.items()},
    )  # fmt: skip
