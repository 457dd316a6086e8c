"""Draw from a guide that has been fitted: a Fit and its panel in, joint posterior draws out, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from core.inference.checkpointing import from_arrays
from core.inference.dividing import cut_fillers, divide
from core.inference.fit import Draws, Fit
from core.inference.memory import unknowns_by_site
from core.inference.minibatch import first_batch_state, params_of
from core.inference.placement import Site
from core.inference.plan import FitPlan
from core.inference.program import Program, build_program
from core.inference.starts import DECENTRED, first_start
from core.model import sites
from core.model.tracing import TRACING_LOCK
from core.panel import Panel

CHUNK_BYTES = 256 * 2**20
"""Memory that the draws of one chunk may take, all sites together."""


def draw(fit: Fit, panel: Panel, n_draws: int, seed: int) -> Draws:
    """Joint draws of every site, fillers cut off. Runs on the CPU, wherever the fit ran; `panel` is the host panel.

    Raises ValueError for a fit that is not usable.
    """
    if not fit.outcome.usable:
        raise ValueError(f"there is no posterior to draw from: {fit.outcome.sentence}")
    devices = int(fit.diagnostics.get("devices", 1))
    divided = divide(panel, int(fit.diagnostics.get("parts", devices)))
    plan = replace(fit.plan, svi=replace(fit.plan.svi, start="prior"))
    with Site(tuple(jax.local_devices(backend="cpu")[:1]), None).in_force():
        start = first_start(plan, panel, divided)
        size = chunk_size(divided, plan, n_draws)
        with TRACING_LOCK:
            program = build_program(plan, divided, start)
            params = _params(fit, program, (devices, divided.shards // devices))
            lowered = jax.jit(partial(_sample, program, size)).lower(params, jax.random.PRNGKey(0))
        sample, key = lowered.compile(), jax.random.PRNGKey(seed)
        chunks = [
            _named(jax.device_get(sample(params, jax.random.fold_in(key, first))), divided, plan)
            for first in range(0, n_draws, size)
        ]
    return _together(chunks, n_draws)


def chunk_size(panel: Panel, plan: FitPlan, n_draws: int) -> int:
    """Draws made at once, so that all their sites stay within CHUNK_BYTES."""
    per_draw = 4 * 2 * sum(unknowns_by_site(panel, plan.model).values())
    return int(max(1, min(n_draws, CHUNK_BYTES // per_draw)))


def _params(fit: Fit, program: Program, grid: tuple[int, int]) -> dict[str, Any]:
    """The fitted parameters; `grid` counts devices and batches of each."""
    if grid[1] == 1:
        return program.params(from_arrays(fit.state, program.first)[0])
    return params_of(program, from_arrays(fit.state, first_batch_state(fit.plan, program, grid))[0])


def _sample(program: Program, size: int, params: dict[str, Any], key: Any) -> dict[str, Any]:
    drawn = program.guide.sample_posterior(key, params, program.small, sample_shape=(size,))
    return {name: value for name, value in drawn.items() if not name.endswith(DECENTRED)}


def _named(drawn: Mapping[str, Any], divided: Panel, plan: FitPlan) -> dict[str, np.ndarray]:
    """Sites without fillers, levels as log units at a series' own mean price."""
    values = {name: np.asarray(value, np.float32) for name, value in drawn.items()}
    real_product, real_series = np.asarray(divided.real_product), np.asarray(divided.real_series)
    values[sites.PRODUCT] = cut_fillers(values[sites.PRODUCT], real_product)
    values[sites.LEVEL_SERIES] = cut_fillers(values[sites.LEVEL_SERIES], real_series)
    if plan.model.preset == "article":
        product = product_of_real_series(divided)
        reference = np.asarray(divided.reference)[real_series]
        values[sites.LEVEL_SERIES] = values[sites.LEVEL_SERIES] + values[sites.PRODUCT][:, product] * reference
    return values


def product_of_real_series(divided: Panel) -> np.ndarray:
    """Product of each series of a divided panel, fillers cut off, counted over the whole market."""
    real_product = np.asarray(divided.real_product).reshape(divided.shards, -1)
    before = np.cumsum(real_product.sum(axis=1)) - real_product.sum(axis=1)
    local = np.asarray(divided.product_of_series).reshape(divided.shards, -1)
    return (local + before[:, None]).ravel()[np.asarray(divided.real_series)]


def _together(chunks: list[dict[str, np.ndarray]], n_draws: int) -> Draws:
    drawn = {name: np.concatenate([chunk[name] for chunk in chunks])[:n_draws] for name in chunks[0]}
    return Draws(
        elasticity_global=drawn.pop(sites.GLOBAL),
        elasticity_category=drawn.pop(sites.CATEGORY),
        elasticity_product=drawn.pop(sites.PRODUCT),
        level_series=drawn.pop(sites.LEVEL_SERIES),
        others=drawn,
    )
