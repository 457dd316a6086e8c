"""Cut a market into mini-batches that lie on the devices, and take one out: a divided host panel in, batches out.

A batch is a run of neighbouring products with all their rows, cut on every device alike, and is itself a panel: its
sums are its own, its index arrays count from its first product and series. All batches have one shape, so that one
compiled step serves them all; taking one out is a slice of memory that lies together, never a gather.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Float, Int

from core.model.shards import AXIS
from core.panel import Panel, UnitSums
from core.panel_sums import sum_units

CELLS = ("log_price", "weight", "units", "covariates", "period")
"""Arrays of a panel with an entry for every slot."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Batches:
    """All batches of a market. Leaves are NumPy arrays until placed on devices."""

    parts: Panel
    """Every leaf has two more axes in front, device and batch. `category_period` and `category_covariate` have a row
    for each of `categories` only."""
    categories: Int[Array, "device batch listed"]
    """Categories of a batch; the last is repeated to make lists equally long."""
    market_log_mean: Float[Array, ""]

    @property
    def devices(self) -> int:
        return int(self.categories.shape[0])

    @property
    def count(self) -> int:
        """Batches in an epoch."""
        return self.parts.batches


def count_batches(n_products: int, batch_products: int) -> int:
    """Batches in an epoch, each of about `batch_products` products; 1 where that is 0 or all of them."""
    return 1 if batch_products == 0 else max(1, -(-n_products // batch_products))


def cut(divided: Panel, devices: int) -> Batches:
    """The batches of a host panel divided into `devices` times as many parts as an epoch has batches."""
    count = divided.shards // devices
    if count * devices != divided.shards or count < 2:
        raise ValueError(f"{divided.shards} parts do not make mini-batches on {devices} devices")
    flat = _stacked(divided)
    parts = [jax.tree.map(lambda leaf, k=k: leaf[k], flat) for k in range(divided.shards)]
    listed = _listed([np.unique(part.category_of_block) for part in parts])
    sums = [_compact(_sums(part), categories) for part, categories in zip(parts, listed, strict=True)]
    bins = max(1, *(part.histogram.units.size for part in sums))
    sums = [replace(part, histogram=jax.tree.map(lambda leaf: _filled(leaf, bins), part.histogram)) for part in sums]
    together = replace(flat, sums=jax.tree.map(lambda *leaves: np.stack(leaves), *sums), shards=devices, batches=count)
    parts, categories = jax.tree.map(lambda leaf: leaf.reshape(devices, count, *leaf.shape[1:]), (together, listed))
    return Batches(parts, categories, divided.sums.market_log_mean)


def take(batches: Batches, number: Array | int) -> Panel:
    """Batch `number` of every device as one panel with as many shards: the only one, where cells of one are at hand.
    Traceable; moves nothing between devices but sums over a category."""
    own, listed = jax.tree.map(
        lambda leaf: (
            leaf[:, 0] if leaf.shape[1] == 1 else jax.lax.dynamic_index_in_dim(leaf, number, 1, keepdims=False)
        ),
        (batches.parts, batches.categories),
    )
    merged = jax.tree.map(lambda leaf: flat(leaf, axes=2), own)

    def by_category(rows: Array) -> Array:
        return jax.ops.segment_sum(rows, listed.ravel(), own.n_categories)

    sums = replace(
        merged.sums,
        category_period=by_category(merged.sums.category_period),
        category_covariate=by_category(merged.sums.category_covariate),
        log_factorial=jnp.sum(own.sums.log_factorial),
        constant=jnp.sum(own.sums.constant),
        market_log_mean=batches.market_log_mean,
    )
    covariates = jnp.moveaxis(flat(jnp.moveaxis(own.covariates, 1, 2), axes=2), 1, 0)
    return replace(merged, covariates=covariates, sums=sums)


def without_cells(batches: Batches) -> Batches:
    """The same batches with no slots: every unknown, no data."""
    cells: dict[str, Any] = {name: leaf[..., :0] for name, leaf in cells_of(batches).items()}
    return with_cells(batches, {**cells, "period": None})


def cells_of(batches: Batches) -> dict[str, Array]:
    """What grows with slots, by name."""
    held = {name: getattr(batches.parts, name) for name in CELLS}
    return {name: leaf for name, leaf in held.items() if leaf is not None}


def with_cells(batches: Batches, cells: dict[str, Any]) -> Batches:
    """The same batches with these `cells` of them all, or of the one that is to be taken."""
    return replace(batches, parts=replace(batches.parts, **cells))


def flat(values: Array, axes: int) -> Array:
    """The leading `axes` axes as one."""
    return values.reshape(prod(values.shape[:axes]), *values.shape[axes:])


def batch_specs(batches: Batches) -> Batches:
    """PartitionSpecs like `batches`: everything divided by device."""
    specs = jax.tree.map(lambda _: PartitionSpec(AXIS), batches)
    return replace(specs, market_log_mean=PartitionSpec())


def _stacked(divided: Panel) -> Panel:
    """The divided panel with an axis of parts in front of every leaf but the sums', which are left as they are."""
    count = divided.shards
    covariates = np.asarray(divided.covariates)
    covariates = covariates.reshape(len(covariates), count, divided.n_rows // count, divided.n_slots).swapaxes(0, 1)
    by_part = jax.tree.map(
        lambda leaf: np.asarray(leaf).reshape(count, -1, *np.shape(leaf)[1:]),
        replace(divided, covariates=np.zeros((count, 1)), sums=None),  # type: ignore[arg-type]
    )
    return replace(by_part, covariates=covariates)


def _sums(part: Panel) -> UnitSums:
    return sum_units(
        log_price=np.asarray(part.log_price),
        weight=np.asarray(part.weight),
        units=np.asarray(part.units),
        covariates=np.asarray(part.covariates),
        period=None if part.period is None else np.asarray(part.period),
        series_of_row=np.asarray(part.series_of_row),
        product_of_series=np.asarray(part.product_of_series),
        category_of_product=np.asarray(part.category_of_product),
        n_categories=part.n_categories,
        n_periods=part.n_periods,
    )


def _compact(sums: UnitSums, categories: Int[np.ndarray, "listed"]) -> UnitSums:
    """Only the rows of `categories`; repetitions at the list's end are 0."""
    first = np.append(True, categories[1:] != categories[:-1])[:, None]
    rows: dict[str, Any] = {
        name: np.where(first, np.asarray(getattr(sums, name))[categories], np.float32(0))
        for name in ("category_period", "category_covariate")
    }
    return replace(sums, **rows)


def _listed(lists: list[np.ndarray]) -> Int[np.ndarray, "part listed"]:
    longest = max(one.size for one in lists)
    return np.stack([np.append(one, np.full(longest - one.size, one[-1])) for one in lists]).astype(np.int32)


def _filled(values: Any, length: int) -> np.ndarray:
    """Zeros at the end: bins without cells."""
    return np.append(values, np.zeros(length - len(values), np.asarray(values).dtype)).astype(np.asarray(values).dtype)
