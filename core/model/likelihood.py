"""Turn a linear predictor and a panel into the log likelihood of its units, value and gradients in one pass.

Units enter through sums taken once (`UnitSums`) where log demand is linear in the unknowns; each call then needs only
sum exp(eta) and its margins. The pass computes value and gradients together and keeps the gradients for the backward
sweep (`jax.custom_vjp`). Particles run one after another (`sequential_vmap`): vectorising over them would write every
intermediate panel to memory. Divided panels sum within each device; only sums of shared unknowns cross devices.

Precision: values are taken relative to each series' mean (`UnitSums.log_mean`), so that float32 sums add differences;
sums run over slots, then rows of a block, then blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Bool, Float, Int

from core.model.dispersion import dispersion_term
from core.model.shards import AXIS, panel_specs
from core.panel import Panel

Clip = tuple[float, float] | None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Predictor:
    """What log demand is made of. A part that the model has not is None."""

    level: Float[Array, "series"]
    elasticity: Float[Array, "product"]
    time: Float[Array, "category period"] | None
    covariate: Float[Array, "category covariate"] | None
    log_concentration: Float[Array, "category"] | None


def log_likelihood(
    predictor: Predictor, panel: Panel, likelihood: str, clip: Clip = None, fused: bool = True
) -> Float[Array, ""]:
    """Log likelihood of all units in nats; `likelihood` is 'poisson' or 'negbin', `clip` bounds log demand.

    Equals the sum over observed cells of numpyro's Poisson or NegativeBinomial2 log_prob. A panel with shards > 1 needs
    a mesh with axis 'shard' in force (`jax.set_mesh`). A panel without slots is a market without data: 0.
    `fused=False` leaves gradients to JAX, slower, so that they can be differentiated again (one device).
    """
    if panel.n_slots == 0:
        return jnp.float32(0)
    cells = _cells if fused else _cells_plain
    total = cells(likelihood, clip, predictor, panel) + _shared_units(predictor, panel) + panel.sums.constant
    if predictor.log_concentration is not None:
        total += dispersion_term(predictor.log_concentration, panel.sums.histogram)
    return total


def linear_predictor(predictor: Predictor, panel: Panel) -> Float[Array, "row slot"]:
    """Log demand of each cell of a panel on one device."""
    blocks, height, slots = panel.n_blocks, panel.block_rows, panel.n_slots
    level = predictor.level[panel.series_of_row].reshape(blocks, height, 1)
    slope = predictor.elasticity[panel.product_of_series[panel.series_of_row]].reshape(blocks, height, 1)
    eta = level + slope * panel.log_price.reshape(blocks, height, slots)
    if predictor.time is not None:
        if panel.period is None:
            eta += predictor.time[panel.category_of_block][:, None, :]
        else:
            eta += predictor.time.ravel()[_time_cells(panel)].reshape(blocks, height, slots)
    if predictor.covariate is not None:
        effects = predictor.covariate[panel.category_of_block]
        for k in range(panel.n_covariates):
            eta += effects[:, k, None, None] * panel.covariates[k].reshape(blocks, height, slots)
    return eta.reshape(panel.n_rows, slots)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _cells(likelihood: str, clip: Clip, predictor: Predictor, panel: Panel) -> Float[Array, ""]:
    return _pass(likelihood, clip)(predictor, panel)[0]


def _cells_plain(likelihood: str, clip: Clip, predictor: Predictor, panel: Panel) -> Float[Array, ""]:
    return _local_pass(likelihood, clip, predictor, panel)[0]


def _cells_forward(likelihood: str, clip: Clip, predictor: Predictor, panel: Panel) -> tuple[Array, Predictor]:
    return _pass(likelihood, clip)(predictor, panel)


def _cells_backward(likelihood: str, clip: Clip, gradients: Predictor, cotangent: Array) -> tuple[Predictor, None]:
    return jax.tree.map(lambda gradient: cotangent * gradient, gradients), None


_cells.defvjp(_cells_forward, _cells_backward)


def _pass(likelihood: str, clip: Clip) -> Any:
    """The pass (predictor, panel) -> (value without constants, gradients), whole panels or divided ones."""

    def run(predictor: Predictor, panel: Panel) -> tuple[Array, Predictor]:
        local = partial(_local_pass, likelihood, clip)
        if panel.shards == 1:
            return local(predictor, panel)
        divided, whole = PartitionSpec(AXIS), PartitionSpec()
        specs = replace(jax.tree.map(lambda _: whole, predictor), level=divided, elasticity=divided)
        divided_pass = jax.shard_map(
            partial(local, axis=AXIS), in_specs=(specs, panel_specs(panel)), out_specs=(whole, specs)
        )
        return divided_pass(predictor, panel)

    return jax.custom_batching.sequential_vmap(run)


def _local_pass(
    likelihood: str, clip: Clip, predictor: Predictor, panel: Panel, axis: str | None = None
) -> tuple[Array, Predictor]:
    """Value and gradients over the rows of one device; over `axis`, if there is one, shared unknowns are summed."""
    poisson = likelihood == "poisson"
    value, gradients = _poisson(predictor, panel, clip) if poisson else _negative_binomial(predictor, panel)
    if axis is None:
        return value, gradients
    shared = (value, gradients.time, gradients.covariate, gradients.log_concentration)
    value, time, covariate, log_concentration = jax.lax.psum(shared, axis)
    return value, replace(gradients, time=time, covariate=covariate, log_concentration=log_concentration)


def _poisson(predictor: Predictor, panel: Panel, clip: Clip) -> tuple[Array, Predictor]:
    """Only exp(eta) is computed per cell; units come from sums. The clip costs only where it might bind."""
    if clip is None:
        return _unclipped(predictor, panel)
    return jax.lax.cond(_clear_of(clip, predictor, panel), _unclipped, partial(_clipped, clip=clip), predictor, panel)


def _unclipped(predictor: Predictor, panel: Panel) -> tuple[Array, Predictor]:
    return _from_sums(predictor, panel, panel.weight * jnp.exp(linear_predictor(predictor, panel)))


def _clipped(predictor: Predictor, panel: Panel, clip: tuple[float, float]) -> tuple[Array, Predictor]:
    """A clipped cell is a correction to the sums of value and gradients."""
    eta = linear_predictor(predictor, panel)
    inside = (eta > clip[0]) & (eta < clip[1])
    rate = jnp.where(inside, panel.weight * jnp.exp(jnp.clip(eta, *clip)), panel.units)
    value, gradients = _from_sums(predictor, panel, rate)
    bound = jnp.where(eta <= clip[0], clip[0], clip[1])
    mean = jnp.where(eta <= clip[0], jnp.exp(clip[0]), jnp.exp(clip[1]))
    excess = mean - panel.units * (bound - eta + 1.0)
    return value - jnp.sum(_block_sums(jnp.where(inside, 0.0, panel.weight * excess), panel)), gradients


def _clear_of(clip: tuple[float, float], predictor: Predictor, panel: Panel) -> Bool[Array, ""]:
    """True only where no cell can reach the clip, by the largest price, time and covariate effect in each row."""
    level = predictor.level[panel.series_of_row]
    slope = predictor.elasticity[panel.product_of_series[panel.series_of_row]]
    reach = jnp.abs(slope) * jnp.max(jnp.abs(panel.log_price), axis=1)
    if predictor.time is not None:
        reach += _by_row(jnp.max(jnp.abs(predictor.time), axis=1), panel)[:, 0]
    if predictor.covariate is not None:
        largest = jnp.max(jnp.abs(panel.covariates), axis=2, initial=0.0)
        effects = jnp.repeat(jnp.abs(predictor.covariate)[panel.category_of_block], panel.block_rows, axis=0)
        reach += jnp.sum(effects * largest.T, axis=1)
    return jnp.all((level - reach > clip[0]) & (level + reach < clip[1]))


def _negative_binomial(predictor: Predictor, panel: Panel) -> tuple[Array, Predictor]:
    """As Poisson with rate (y + phi) mu / (mu + phi), and one logarithm per cell for the normaliser."""
    assert predictor.log_concentration is not None
    phi = _by_row(jnp.exp(predictor.log_concentration), panel)
    distance = linear_predictor(predictor, panel) - _by_row(predictor.log_concentration, panel)
    softplus, share = _softplus(distance)
    softplus = panel.weight * softplus
    rate = panel.weight * (panel.units + phi) * share
    value, gradients = _from_sums(predictor, panel, rate)
    phi_softplus = _block_sums(phi * softplus, panel)
    rates = _block_sums(rate, panel)
    value += jnp.sum(rates - phi_softplus - _block_sums(panel.units * softplus, panel))
    bend = _sum_sorted(rates - phi_softplus, panel.category_of_block, panel.n_categories)
    return value, replace(gradients, log_concentration=bend)


def _from_sums(predictor: Predictor, panel: Panel, rate: Float[Array, "row slot"]) -> tuple[Array, Predictor]:
    """Sum of units x (log demand - log_mean) + units - rate, units of shared unknowns apart, and its gradients.

    `rate` is what each cell's slope takes off its units; `_shared_units` adds what is left out.
    """
    by = _margins(rate, predictor, panel)
    sums = panel.sums
    level = sums.series - by.level
    value = jnp.sum(sums.series * (predictor.level - sums.log_mean) + level)
    value += jnp.sum(sums.product_price * predictor.elasticity)
    gradients = jax.tree.map(jnp.negative, by)
    return value, replace(gradients, level=level, elasticity=sums.product_price - by.elasticity)


def _shared_units(predictor: Predictor, panel: Panel) -> Float[Array, ""]:
    """Units times the unknowns that a category shares: the sums are the market's, the same on every device."""
    parts = ((predictor.time, panel.sums.category_period), (predictor.covariate, panel.sums.category_covariate))
    return sum((jnp.sum(part * total) for part, total in parts if part is not None), jnp.float32(0))


def _softplus(u: Array) -> tuple[Array, Array]:
    """log(1 + exp(u)) and its slope, exact for large and small u alike."""
    small = jnp.exp(-jnp.abs(u))
    share = jnp.where(u > 0, 1.0, small) / (1.0 + small)
    return jnp.maximum(u, 0.0) + jnp.log1p(small), share


def _margins(cells: Float[Array, "row slot"], predictor: Predictor, panel: Panel) -> Predictor:
    """Sums of a quantity per cell by everything that log demand is made of, as its derivatives would weigh it."""
    product_of_row = panel.product_of_series[panel.series_of_row]
    covariate = None
    if predictor.covariate is not None:
        by_covariate = [_by_category(cells * z, panel) for z in panel.covariates]
        covariate = jnp.stack(by_covariate, axis=1)
    return Predictor(
        level=_sum_sorted(cells.sum(axis=1), panel.series_of_row, panel.n_series),
        elasticity=_sum_sorted((cells * panel.log_price).sum(axis=1), product_of_row, panel.n_products),
        time=None if predictor.time is None else _by_period(cells, panel, predictor.time.shape),
        covariate=covariate,
        log_concentration=None,
    )


def _by_row(values: Float[Array, "category"], panel: Panel) -> Float[Array, "row 1"]:
    return jnp.repeat(values[panel.category_of_block], panel.block_rows)[:, None]


def _by_category(cells: Float[Array, "row slot"], panel: Panel) -> Float[Array, "category"]:
    return _sum_sorted(_block_sums(cells, panel), panel.category_of_block, panel.n_categories)


def _by_period(
    cells: Float[Array, "row slot"], panel: Panel, shape: tuple[int, ...]
) -> Float[Array, "category period"]:
    if panel.period is not None:
        sums = jax.ops.segment_sum(cells.ravel(), _time_cells(panel), shape[0] * shape[1])
        return sums.reshape(shape)
    blocks = cells.reshape(panel.n_blocks, panel.block_rows, panel.n_slots).sum(axis=1)
    return _sum_sorted(blocks, panel.category_of_block, shape[0])


def _time_cells(panel: Panel) -> Int[Array, "cell"]:
    """Packed layout: where each cell's time effect lies in the flattened category x period table."""
    assert panel.period is not None
    category = jnp.repeat(panel.category_of_block, panel.block_rows)[:, None]
    return (category * panel.n_periods + panel.period).ravel()


def _block_sums(cells: Float[Array, "row slot"], panel: Panel) -> Float[Array, "block"]:
    return cells.sum(axis=1).reshape(panel.n_blocks, panel.block_rows).sum(axis=1)


def _sum_sorted(values: Array, index: Array, length: int) -> Array:
    return jax.ops.segment_sum(values, index, length, indices_are_sorted=True)
